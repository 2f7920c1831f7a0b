"""Hosts with a real sshd each, in namespaces of this machine, and cables between them.

Each has a network, processes and temporary folders of its own; anything left there is gone
with it. The client of SSH runs in one more network namespace.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
import yaml
from fetched import FETCHED
from tools import KEYGEN, SSHD, need

from tailtrim.laboratory.nodes.namespace import Namespace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BOOT = """
mount --make-rprivate /
mount -t proc proc /proc
[ ! -d "$6" ] || mount --bind "$6" /mnt
for place in /run /var/tmp /root; do mount -t tmpfs tmpfs "$place"; done
mkdir /run/sshd
mount --bind "$3" /etc/passwd
mount --bind "$5" /etc/shadow
mkdir /run/tester && chown 65533 /run/tester
if [ -d /etc/sudoers.d ]; then
    mount -t tmpfs -o mode=755 tmpfs /etc/sudoers.d
    echo 'tester ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/tester
fi
cp "$4" /run/keys && chmod 644 /run/keys
while :; do
    [ -e /run/off ] || "$1" -D -e -f "$2"
    sleep 0.2
done
"""
#: Where a host has the user's cache folder, which its own hides.
CACHE = "/mnt"
_CONFIGURATION = """\
Port 22
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile /run/keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
"""


class Host:
    """A host with sshd, until it is closed."""

    def __init__(self, name: str, folder: Path, keys: Path, number: int) -> None:
        self.name, self.address = name, f"192.0.2.{4 * number + 2}"
        self.folder = folder / name
        self.folder.mkdir()
        make_key(self.folder / "host_key")
        configuration = self.folder / "sshd_config"
        configuration.write_text(_CONFIGURATION.format(folder=self.folder))
        users = str(self.folder / "passwd")
        more = "tester:x:65533:65533::/run/tester:/bin/sh\nguest:x:65532:65532::/tmp:/bin/sh\n"
        Path(users).write_text(Path("/etc/passwd").read_text() + more)
        passwords = str(self.folder / "shadow")
        more = "tester:*:19000:0:99999:7:::\nguest:*:19000:0:99999:7:::\n"
        Path(passwords).write_text(Path("/etc/shadow").read_text() + more)
        sshd = shutil.which("sshd") or SSHD.places[0]
        self._log = (self.folder / "sshd.log").open("w")
        self._process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid"),
                *(
                    "--fork",
                    "--kill-child",
                    "sh",
                    "-c",
                    _BOOT,
                    "sh",
                    sshd,
                    str(configuration),
                    users,
                    str(keys),
                    passwords,
                    str(FETCHED.parent),
                ),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"},
            start_new_session=True,
        )
        self.pid = self._first()

    def _first(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        until_s = time.monotonic() + 10
        while time.monotonic() < until_s:
            log = (self.folder / "sshd.log").read_text()
            if (found := children.read_text().split()) and "listening" in log:
                return int(found[0])
            time.sleep(0.01)
        raise AssertionError((self.folder / "sshd.log").read_text())

    def run(self, *command: str) -> str:
        """Run a command on it, past SSH."""
        return subprocess.run(
            [
                "/usr/bin/env",
                "nsenter",
                "-t",
                str(self.pid),
                "--net",
                "--mount",
                "--pid",
                "--",
                *command,
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def processes(self) -> dict[int, str]:
        """Return its processes except sshd and process 1, with numbers of this machine."""
        found = {}
        ours = Path(f"/proc/{self.pid}/ns/pid").readlink()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "ns/pid").readlink() != ours and not self._nested(process):
                    continue
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            plain = "sshd -D" in command or command.startswith("sleep 0.2")
            if command and not plain and int(process.name) != self.pid:
                found[int(process.name)] = command
        return found

    def _nested(self, process: Path) -> bool:
        status = (process / "status").read_text()
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid")).split()
        return len(numbers) > 3 and str(self.folder) in (process / "environ").read_text()

    def serving(self) -> list[int]:
        """Return the processes of sshd that serve connections."""
        return [pid for pid, command in self.processes().items() if command.startswith("sshd:")]

    def find(self, part: str) -> int | None:
        """Return a process there by a part of its command."""
        return next((pid for pid, told in self.processes().items() if part in told), None)

    def left(self) -> list[str]:
        """Return what is there of sessions: processes, reservations, folders."""
        files = self.run("sh", "-c", "ls -d /run/tailtrim-reservation /var/tmp/* 2>/dev/null || :")
        return [*self.processes().values(), *files.split()]

    def close(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


class Hosts:
    """Hosts by name, with the network over which they are reached, until the context is left."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder / "hosts"
        self.folder.mkdir()
        self._stack = ExitStack()
        make_key(self.folder / "key")
        controller = self._stack.enter_context(Namespace("controller", self.folder))
        self.controller = controller.pid
        self.hosts: dict[str, Host] = {}
        known = []
        for number, name in enumerate(names):
            host = Host(name, self.folder, self.folder / "key.pub", number)
            self._stack.callback(host.close)
            self.hosts[name] = host
            ours = f"192.0.2.{4 * number + 1}/30"
            link(self.controller, f"c{number}", host.pid, "control")
            _net(self.controller, "ip", "address", "add", ours, "dev", f"c{number}")
            _net(host.pid, "ip", "address", "add", f"{host.address}/30", "dev", "control")
            public = (host.folder / "host_key.pub").read_text().split()
            known.append(f"{host.address} {public[0]} {public[1]}")
        (self.folder / "known_hosts").write_text("\n".join(known) + "\n")
        # The client of SSH is started where its network is.
        (self.folder / "bin").mkdir()
        client = self.folder / "bin" / "ssh"
        real = shutil.which("ssh")
        where = f"--net=/proc/{self.controller}/ns/net"
        client.write_text(f'#!/bin/sh\nexec nsenter {where} -- {real} "$@"\n')
        client.chmod(0o755)

    @property
    def path(self) -> str:
        """A PATH with the client first."""
        return f"{self.folder / 'bin'}:{os.environ['PATH']}"

    def ssh(self, name: str) -> dict[str, Any]:
        """Return how a testbed file says where a host is."""
        return {
            "host": self.hosts[name].address,
            "user": "root",
            "key": str(self.folder / "key"),
            "known_hosts": str(self.folder / "known_hosts"),
        }

    def cable(self, one: str, port: str, other: str, peer: str, macs: tuple[str, str]) -> None:
        """Join two ports of hosts."""
        link(self.hosts[one].pid, port, self.hosts[other].pid, peer, macs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def make_key(path: Path) -> None:
    words = ["-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(["/usr/bin/env", "ssh-keygen", *words], check=True)


def link(one: int, port: str, other: int, peer: str, macs: tuple[str, str] | None = None) -> None:
    """Lay a cable between network namespaces, by a process in each."""
    first, second = macs or (None, None)
    _net(
        one,
        *("ip", "link", "add", port, *(("address", first) if first else ()), "type", "veth"),
        *("peer", "name", peer, *(("address", second) if second else ()), "netns", str(other)),
    )
    for pid, name in ((one, port), (other, peer)):
        _net(pid, "ip", "link", "set", name, "up")


def _net(pid: int, *command: str) -> None:
    subprocess.run(["/usr/bin/env", "nsenter", "-t", str(pid), "--net", "--", *command], check=True)


EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts"
#: Cables of three hosts with an inline timestamper: ends, and their MAC addresses.
CABLES = {
    ("gen", "out"): ("stamp", "a0"),
    ("stamp", "a1"): ("dut", "left"),
    ("dut", "right"): ("stamp", "b0"),
    ("stamp", "b1"): ("gen", "back"),
}


def mac(host: str, port: str) -> str:
    """Return the MAC address of a port of three hosts."""
    ends = [end for cable in CABLES.items() for end in cable]
    return f"02:00:00:00:07:{ends.index((host, port)) + 1:02x}"


def by_ssh() -> None:
    """Skip the calling test loudly where there can be no hosts with sshd."""
    if os.geteuid() != 0:
        pytest.skip("hosts with sshd need root here")
    need(SSHD, KEYGEN)


def cabled(folder: Path, fewer: Mapping[str, str] | None = None) -> Hosts:
    """Return three hosts with cables, or ``fewer``, some of which are others at the same time."""
    same = fewer or {}
    names = dict.fromkeys(same.get(name, name) for name in ("gen", "stamp", "dut"))
    hosts = Hosts(folder, list(names))
    for (one, port), (other, peer) in CABLES.items():
        ends = same.get(one, one), port, same.get(other, other), peer
        hosts.cable(*ends, (mac(one, port), mac(other, peer)))
    return hosts


def described(hosts: Hosts, fewer: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the example's testbed file, with these hosts as its own.

    Their CPUs are used as the local testbed does on a machine of two.
    """
    same = fewer or {}
    text = (EXAMPLE / "testbed.yml").read_text("utf-8")
    for name, host in same.items():
        text = re.sub(rf"(node: |cable: ){name}\b", rf"\g<1>{host}", text)
    said: dict[str, Any] = yaml.safe_load(text)
    last = (os.cpu_count() or 1) - 1
    for name, node in said["nodes"].items():
        for port, told in node["ports"].items():
            told |= {"interface": port, "mac": mac(name, port)}
    for name, host in same.items():
        said["nodes"][host]["ports"] |= said["nodes"].pop(name)["ports"]
    for name, node in said["nodes"].items():
        own = list(range(last + 1)) if same else [last if name == "dut" else 0]
        node |= {"ssh": hosts.ssh(name), "spared": [0], "cpus": own}
    return said
