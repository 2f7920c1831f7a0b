"""A host that really boots: a virtual machine with sshd on a network, by kexec or GRUB.

Its image is that of guests; an archive appended to its first file system replaces their first
program.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import grub_disk
from hosts import mac, make_key
from shell_guest import archive, with_libraries

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.boot import methods
from tailtrim.laboratory.nodes.boot.methods import KEXEC
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.ssh.address import Ssh
from tailtrim.laboratory.nodes.ssh.connection import Connection
from tailtrim.laboratory.nodes.vm.image import Image
from tailtrim.laboratory.nodes.vm.machine import COMMON, QEMU, Hardware, Machine, Wired

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hosts import Hosts

    from tailtrim.tool import Tool

ADDRESS, _OURS = "192.0.2.102", "192.0.2.101/30"
_CONTROL = "02:00:00:00:08:01"
#: Its boot line when it starts.
LINE = COMMON
_CPUS = 1
_UUID = "5e1f0c2e-6a0c-4c39-9a0e-3f4b6b0f7d11"
# Without -no-reboot, and with GRUB's own files in place of these.
_QEMU = """#!/bin/sh
drop=
for word; do
    shift
    if [ "$drop" ]; then drop=; continue; fi
    case $word in
    -no-reboot) continue ;;
    -initrd | -append) drop=yes; continue ;;
    esac
    set -- "$@" "$word"
done
exec {program} "$@" -blockdev driver=raw,node-name=boot,file.driver=file,file.filename={disk} \\
    -device virtio-blk-pci,drive=boot,bootindex=1
"""
_ON_DISK = """
mount -t ext2 /dev/vdb /boot
cat >/usr/local/sbin/reboot <<END
#!/bin/sh
mount -o remount,ro /boot
{ sleep 1; echo b >/proc/sysrq-trigger; } >/dev/null 2>&1 &
END
chmod 755 /usr/local/sbin/reboot
"""
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
for program in "$more"/bin/*; do
    cat >"/usr/local/sbin/${program##*/}" <<END
#!/bin/sh
LD_LIBRARY_PATH=$more/lib exec $program "\\$@"
END
    chmod 755 "/usr/local/sbin/${program##*/}"
done
SETUP
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


class GuestHost:
    """The device's host of three, of which the others are :mod:`hosts`.

    Args:
        hosts: the others.
        image: whose kernel and programs it has.
        folder: for its files, and the output of its console.
        tools: programs of this machine that it has beside those.
        setup: commands of its first program, before it can be reached.

    """

    def __init__(
        self, hosts: Hosts, image: Image, folder: Path, tools: Sequence[Tool], setup: str = ""
    ) -> None:
        self.console = folder / "console"
        self._stack = ExitStack()
        self._prepared = _prepared(hosts, image, folder, tools, setup)
        parking = self._stack.enter_context(Namespace("vm"))
        ports = {
            "tapc": (_CONTROL, hosts.controller, "cvm"),
            "tap0": (mac("dut", "left"), hosts.hosts["stamp"].pid, "a1"),
            "tap1": (mac("dut", "right"), hosts.hosts["stamp"].pid, "b0"),
        }
        self._machine = self._stack.enter_context(
            Machine(
                parking,
                self._loaded(folder),
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
        self._ssh = Ssh(**hosts.ssh("dut"))

    def _loaded(self, folder: Path) -> Image:
        """Return what QEMU starts."""
        del folder
        return self._prepared

    def has_booted(self, within_s: float) -> None:
        """Wait until it can be reached."""
        ends = time.monotonic() + within_s
        while True:
            try:
                with Connection("dut", self._ssh) as connection:
                    self._reached(connection)
                    return
            except HostError as error:
                assert self._machine.alive, self._machine.last_words()
                if time.monotonic() > ends:
                    error.add_note(self.console.read_text(errors="replace")[-3_000:])
                    raise
                time.sleep(1)

    def _reached(self, connection: Connection) -> None:
        """Do what there is to do on it first."""

    def run(self, *command: str) -> str:
        """Run a command on it."""
        with Connection("dut", self._ssh) as connection:
            return connection.call(*command).stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class KexecHost(GuestHost):
    """A host whose boots QEMU does not see. Its /boot is in memory."""

    def __init__(self, hosts: Hosts, image: Image, folder: Path) -> None:
        super().__init__(hosts, image, folder, [KEXEC])
        self._release = image.kernel

    def _reached(self, connection: Connection) -> None:
        """Give it the kernel that it is to boot."""
        files = {"vmlinuz": "vmlinuz", "initrd.img": "initramfs"}
        for name, file in files.items():
            write = ("sh", "-c", f"cat >/boot/{name}-{self._release}")
            sent = connection.send((self._prepared.folder / file).read_bytes(), *write)
            assert sent.returncode == 0, sent.stderr


class GrubHost(GuestHost):
    """A host that GRUB boots, from a disk with /boot; its first entry ends with ``old``."""

    def __init__(self, hosts: Hosts, image: Image, folder: Path) -> None:
        boot = folder / "boot"
        (boot / "grub").mkdir(parents=True)
        self._disk = folder / "disk"
        super().__init__(hosts, image, folder, methods.Grub.tools, _ON_DISK)

    def _loaded(self, folder: Path) -> Image:
        """Return GRUB, and have QEMU reset with a disk."""
        made, release = self._prepared, self._prepared.record["kernel"]["release"]
        boot = folder / "boot"
        kernel, initrd = f"vmlinuz-{release}", f"initrd.img-{release}"
        shutil.copy(made.folder / "vmlinuz", boot / kernel)
        shutil.copy(made.folder / "initramfs", boot / initrd)
        entry = (f"/{kernel}", f"{LINE} old", f"/{initrd}")
        (boot / "grub" / "grub.cfg").write_text(grub_disk.configuration(*entry))
        tool = local_host.find(methods.EDITENV) or ""
        subprocess.run([tool, str(boot / "grub" / "grubenv"), "create"], check=True)
        grub_disk.disk(boot, _UUID, self._disk, mib=96)
        (made.folder / "vmlinuz").unlink()
        (made.folder / "vmlinuz").symlink_to(grub_disk.loader(folder))
        _resetting(folder / "hosts" / "bin" / QEMU.program, self._disk)
        return made


def _resetting(starter: Path, disk: Path) -> None:
    """Write a QEMU that boots again where others would end, and boots from a disk."""
    starter.write_text(_QEMU.format(program=local_host.find(QEMU), disk=disk))
    starter.chmod(0o755)


def _net(pid: int, *command: str) -> None:
    subprocess.run(["/usr/bin/env", "nsenter", "-t", str(pid), "--net", "--", *command], check=True)


def _prepared(hosts: Hosts, image: Image, folder: Path, tools: Sequence[Tool], setup: str) -> Image:
    make_key(folder / "host_key")
    script = _GUEST.replace("CONTROL", _CONTROL).replace("ADDRESS", ADDRESS)
    script = script.replace("LEFT", mac("dut", "left")).replace("RIGHT", mac("dut", "right"))
    (folder / "guest.sh").write_text(script.replace("SETUP", setup))
    within = {
        f"lib/modules/more/{name}": file
        for tool in tools
        for name, file in with_libraries(local_host.find(tool) or "").items()
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
