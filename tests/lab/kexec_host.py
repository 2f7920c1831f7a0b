"""A host that really boots: a virtual machine with sshd on a network, which kexec starts anew.

Its image is that of guests; what is appended to its first file system replaces their first program.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

from hosts import mac, make_key
from shell_guest import archive, with_libraries

from tailtrim.errors import HostError
from tailtrim.nodes import host
from tailtrim.nodes.boot.kexec import KEXEC
from tailtrim.nodes.namespace import Namespace
from tailtrim.nodes.ssh.address import Ssh
from tailtrim.nodes.ssh.connection import Connection
from tailtrim.nodes.vm.image import Image
from tailtrim.nodes.vm.machine import COMMON, Hardware, Machine, Wired

if TYPE_CHECKING:
    from pathlib import Path

    from hosts import Hosts

ADDRESS, _OURS = "192.0.2.102", "192.0.2.101/30"
_CONTROL = "02:00:00:00:08:01"
#: Its boot line when it starts. With two emulated CPUs and the kernel's check of the timer, the
#: kernel that kexec started found no timer at the IO-APIC and stalled.
LINE = f"{COMMON} no_timer_check"
_CPUS = 1
_GUEST = """#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620 devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs tmp /tmp
modprobe -q virtio_net
modprobe -q virtio_rng
mkdir -p /run/sshd /boot /var/tmp
hostname dut
ip link set lo up
for port in /sys/class/net/*; do
    case $(cat "$port/address") in
    CONTROL) name=control ;; LEFT) name=left ;; RIGHT) name=right ;; *) continue ;;
    esac
    ip link set "${port##*/}" name "$name"
done
ip address add ADDRESS/30 dev control
ip link set control up
more=/usr/lib/modules/more
chmod 600 "$more/host_key"
cat >/usr/local/sbin/kexec <<END
#!/bin/sh
LD_LIBRARY_PATH=$more/lib exec $more/bin/kexec "\\$@"
END
chmod 755 /usr/local/sbin/kexec
cat >/run/sshd_config <<END
HostKey $more/host_key
AuthorizedKeysFile $more/keys
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin yes
END
echo "tailtrim: sshd starts"
/usr/sbin/sshd -D -e -f /run/sshd_config
"""


class KexecHost:
    """The device's host of three, of which the others are :mod:`hosts`."""

    def __init__(self, hosts: Hosts, image: Image, folder: Path) -> None:
        self.console = folder / "console"
        self._stack = ExitStack()
        prepared = _prepared(hosts, image, folder)
        parking = self._stack.enter_context(Namespace("vm"))
        ports = {
            "tapc": (_CONTROL, hosts.controller, "cvm"),
            "tap0": (mac("dut", "left"), hosts.hosts["stamp"].pid, "a1"),
            "tap1": (mac("dut", "right"), hosts.hosts["stamp"].pid, "b0"),
        }
        self._machine = self._stack.enter_context(
            Machine(
                parking,
                prepared,
                Hardware(cpus=_CPUS, on=[0], memory_mib=1024, accelerator="tcg"),
                cmdline=LINE,
                ports=[Wired(name, port[0]) for name, port in ports.items()],
                console=self.console,
            )
        )
        for name, (_, pid, called) in ports.items():
            parking.run("ip", "link", "set", name, "netns", str(pid), "name", called)
        for called in ("a1", "b0"):
            pid = hosts.hosts["stamp"].pid
            _net(pid, "ip", "link", "set", called, "address", mac("stamp", called))
        _net(hosts.controller, "ip", "address", "add", _OURS, "dev", "cvm")
        _net(hosts.controller, "ip", "link", "set", "cvm", "up")
        public = (folder / "host_key.pub").read_text().split()
        with (hosts.folder / "known_hosts").open("a") as known:
            known.write(f"{ADDRESS} {public[0]} {public[1]}\n")
        stub: Any = SimpleNamespace(address=ADDRESS)
        hosts.hosts["dut"] = stub
        self._files = {
            f"/boot/vmlinuz-{image.kernel}": prepared.folder / "vmlinuz",
            f"/boot/initrd.img-{image.kernel}": prepared.folder / "initramfs",
        }
        self._ssh = Ssh(**hosts.ssh("dut"))

    def has_booted(self, within_s: float) -> None:
        """Wait until it can be reached, and give it the kernel that it is to boot."""
        ends = time.monotonic() + within_s
        while True:
            try:
                with Connection("dut", self._ssh) as connection:
                    for name, file in self._files.items():
                        sent = connection.send(file.read_bytes(), "sh", "-c", f"cat >{name}")
                        assert sent.returncode == 0, sent.stderr
                    return
            except HostError as error:
                if time.monotonic() > ends:
                    error.add_note(self.console.read_text(errors="replace")[-3_000:])
                    raise
                time.sleep(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _net(pid: int, *command: str) -> None:
    subprocess.run(["/usr/bin/env", "nsenter", "-t", str(pid), "--net", "--", *command], check=True)


def _prepared(hosts: Hosts, image: Image, folder: Path) -> Image:
    make_key(folder / "host_key")
    script = _GUEST.replace("CONTROL", _CONTROL).replace("ADDRESS", ADDRESS)
    script = script.replace("LEFT", mac("dut", "left")).replace("RIGHT", mac("dut", "right"))
    (folder / "guest.sh").write_text(script)
    within = {
        f"lib/modules/more/{name}": file
        for name, file in with_libraries(host.find(KEXEC) or "").items()
    }
    within |= {
        "guest.sh": folder / "guest.sh",
        "lib/modules/more/keys": hosts.folder / "key.pub",
        "lib/modules/more/host_key": folder / "host_key",
    }
    made = folder / "image"
    made.mkdir()
    for name in ("vmlinuz", "root.squashfs"):
        (made / name).symlink_to(image.folder / name)
    more = archive(folder / "more", within).read_bytes()
    with (made / "initramfs").open("wb") as file, (image.folder / "initramfs").open("rb") as own:
        shutil.copyfileobj(own, file)
        # The kernel skips zeros between archives, which begin at multiples of four bytes.
        file.write(bytes(-file.tell() % 4))
        file.write(more)
    return Image(made, image.record)
