"""A guest: a machine that has booted, how to reach it, and what it says of itself."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes import holder, local_host
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.ssh.address import Ssh
from tailtrim.laboratory.nodes.ssh.connection import CALL_S, Connection
from tailtrim.laboratory.nodes.ssh.session import SshSession
from tailtrim.laboratory.nodes.ssh.shell import facts
from tailtrim.laboratory.nodes.vm.machine import (
    COMMON,
    CONTROL,
    GuestPort,
    Hardware,
    Machine,
    Wired,
    accelerator,
)
from tailtrim.laboratory.nodes.vm.pci import PassedPort
from tailtrim.laboratory.nodes.vm.vfio import BoundDevices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tailtrim.laboratory.nodes.vm.image import Image

#: Ports of the device, and the names of their taps while no testbed has them.
PORTS = {"d0": Wired("tap0", "02:00:00:00:00:02"), "d1": Wired("tap1", "02:00:00:00:00:03")}
#: The ports by their names in plans.
NAMED = {"in": "d0", "out": "d1"}
AGENT = "/usr/local/sbin/tailtrim-agent"
_FOLDER = "/run/tailtrim"
_BOOT_ID, _LINE = "/proc/sys/kernel/random/boot_id", "/proc/cmdline"
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#: A machine that dies ends a moment after its connection.
_DYING_S = 1.0
#: So often a guest is asked whether it is there, and so many answers may be missing: more often
#: than from hosts, because emulated CPUs that are busy answer late.
_ALIVE_S, _ALIVE_COUNT = 5, 6

# The client of SSH gets the socket to the guest itself, not a program in between.
_PROXY = (
    "import socket; guest = socket.socket(socket.AF_UNIX); guest.connect(chr(0) + {name!r});"
    " socket.send_fds(socket.socket(fileno=1), [bytes(1)], [guest.fileno()])"
)
# It ends with this process, and removes what is left of the connection.
_TIDY = 'cat >/dev/null; rm -rf "$1"'
_RENAME = """
for port; do
    found=
    for known in /sys/class/net/*; do
        [ "$(cat "$known/address")" = "${port#*=}" ] || continue
        ip link set "${known##*/}" name "${port%%=*}" && found=yes
    done
    [ "$found" ] || { echo "no interface has the MAC address ${port#*=}" >&2; exit 1; }
done
"""
#: Why a guest may lack a card that was passed through.
_NO_CARD = (
    "the guest's kernel lacks the driver of the card or its firmware (see its console), or a"
    " virtual function has another MAC address there"
)


@dataclass(frozen=True, slots=True)
class GuestSettings:
    """Settings of a guest: CPUs, memory, place on this host, time to boot.

    ``pinned`` are CPUs of this host, those of the device by default.
    """

    cpus: int = 2
    memory_mib: int = 512
    pinned: Sequence[int] | None = None
    accelerator: str = "auto"
    boot_s: float = 120.0


class GuestDiedError(RunError):
    """A guest ended while it booted: its kernel panicked, or its first program did not start."""


class Guest:
    """A guest that has booted, for as long as the context lasts.

    Args:
        image: what it boots.
        cmdline: its boot line, beside what every guest has.
        settings: what it is to have.
        console: file for what its kernel prints.
        role: what it is, for errors.
        ports: those that it has, by their names in it.
        began: is called with its machine before that has booted.

    Raises:
        HostError: this host cannot have it.
        GuestDiedError: it ended while it booted; says what it printed last.
        RunError: it did not boot in time, or with another boot line.

    """

    def __init__(  # noqa: PLR0913 - each is named
        self,
        image: Image,
        cmdline: str,
        settings: GuestSettings,
        console: Path,
        *,
        role: str = "dut",
        ports: Mapping[str, GuestPort] = PORTS,
        began: Callable[[Machine], None] = lambda _: None,
    ) -> None:
        """Boot it."""
        self.image, self.ports, self._unplugged = image, ports, False
        on = list(settings.pinned or local_host.share_cpus()[1])
        how = Hardware(
            cpus=settings.cpus,
            on=on,
            memory_mib=settings.memory_mib,
            accelerator=accelerator(settings.accelerator),
        )
        asked = " ".join(cmdline.split())
        line = f"{COMMON} {asked}".strip()
        began_s = time.monotonic()
        with ExitStack() as stack:
            #: Where its taps are while no testbed has them.
            self.parking = stack.enter_context(Namespace("vm"))
            bound = [port for port in self.ports.values() if isinstance(port, PassedPort)]
            #: Settings of its virtual functions that a driver refused, and why.
            self.refused: list[str] = []
            if bound:
                held = stack.enter_context(BoundDevices(bound, self.parking.pid))
                self.refused = held.refused
            self._machine = stack.enter_context(
                Machine(
                    self.parking,
                    image,
                    how,
                    cmdline=line,
                    ports=list(ports.values()),
                    console=console,
                )
            )
            began(self._machine)
            self.session = stack.enter_context(
                GuestSession(self._machine, image.name, settings.boot_s, role)
            )
            took_s = time.monotonic() - began_s
            self._named()
            seen = self._read(_LINE)
            if seen != line:
                raise RunError(f"{role}: {image.name} booted with the line {seen!r}, not {line!r}")
            #: Record of the guest and its boot, as run directories have it.
            self.record = self._recorded(how, (asked, line, seen), took_s)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the guest itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stack.close()

    @property
    def alive(self) -> bool:
        """Whether it can be reached and has its ports."""
        return self._machine.alive and not self.session.lost and not self._unplugged

    def named(self, boot: str) -> None:
        """Take the name of the boot, which is that of the node from now on."""
        self.session.role = self.record["boot"] = boot

    def plug(self, into: Namespace, names: Sequence[str]) -> None:
        """Give the other ends of its ports to a namespace: taps under these names, cables as is."""
        self._unplugged = True
        for port, name in zip(self.ports.values(), names, strict=True):
            _move(self.parking, _end(port), into, name)

    def unplug(self, out_of: Namespace, names: Sequence[str]) -> None:
        """Take them back: taps would go with the namespace, and the guest's ports with them."""
        for port, name in zip(self.ports.values(), names, strict=True):
            _move(out_of, name, self.parking, _end(port))
        self._unplugged = False

    def last_words(self) -> str:
        """Return the end of what its console printed, in one line."""
        return self._machine.last_words()

    def audit(self) -> dict[str, Any]:
        """Return what the agent's audit says of it.

        Raises:
            HostError: it says nothing.

        """
        return self.session.audit("--duration", "0")

    def boot_line(self) -> dict[str, Any]:
        """Return what its kernel made of its boot line, as the agent's audit sees it.

        Raises:
            HostError: it says nothing.

        """
        return self.session.audit("--boot-line")

    def _named(self) -> None:
        words = [f"{name}={port.mac}" for name, port in self.ports.items()]
        ended = self.session.call("sh", "-c", _RENAME, "sh", *words)
        if ended.returncode != 0:
            told = ended.stderr.strip() or f"ports cannot be named: {ended.returncode}"
            error = RunError(f"{self.session.role}: {self.image.name}: {told}")
            if any(isinstance(port, PassedPort) for port in self.ports.values()):
                error.add_note(_NO_CARD)
            raise error

    def _read(self, path: str) -> str:
        return self.session.run("cat", path).strip()

    def _recorded(
        self, hardware: Hardware, line: tuple[str, str, str], took_s: float
    ) -> dict[str, Any]:
        placed = self._machine.pin(hardware.on)
        given = ("kernel", "root", "sha256")
        return {
            "kernel": self.session.facts.kernel,
            "boot_id": self._read(_BOOT_ID),
            "boot_line": dict(zip(("asked", "set", "seen"), line, strict=True)),
            "clock_source": self._read(_CLOCK),
            "accelerator": hardware.accelerator,
            "cpus": hardware.cpus,
            "pinned": placed,
            "memory_mib": hardware.memory_mib,
            "ports": {name: port.record for name, port in self.ports.items()},
            **({"refused": self.refused} if self.refused else {}),
            "boot_s": round(took_s, 3),
            "image": {name: self.image.record[name] for name in given},
            "facts": asdict(self.session.facts),
        }


class GuestSession(SshSession):
    """A connection to a guest. The guest is this process's alone and ends with it.

    So nothing has to be reserved, and nothing held beyond what the connection holds.
    """

    def __init__(self, machine: Machine, image: str, boot_s: float, role: str) -> None:
        """Wait until the guest answers."""
        self.role = role
        self.agent, self.folder = AGENT, _FOLDER
        self._machine = machine
        self._sudo, self._processes, self._number = (), [], 0
        folder = Path(tempfile.mkdtemp(prefix="tailtrim-"))
        words = ("sh", "-c", _TIDY, "sh", str(folder))
        tidy = local_host.start(words, output=subprocess.DEVNULL, errors=subprocess.DEVNULL)
        with ExitStack() as stack:
            stack.callback(holder.end, tidy, None)
            self.connection = stack.enter_context(
                _connected(machine, (role, image), boot_s, folder)
            )
            self.facts = facts(self.connection)
            self._stack = stack.pop_all()

    @property
    def lost(self) -> bool:
        """Whether the guest has gone, or cannot be reached any more."""
        return not (self._machine.alive and self.connection.alive)

    def call(
        self, *command: str, given: str | None = None, within_s: float = CALL_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the guest to its end."""
        return self.connection.call(*command, given=given, within_s=within_s)

    def run(self, *command: str, given: str | None = None) -> str:
        """Run a command in the guest and return its output.

        Raises:
            RunError: it failed.

        """
        try:
            return super().run(*command, given=given)
        except HostError as error:
            raise RunError(str(error)) from error

    def held(self, command: tuple[str, ...], pid_file: str | None = None) -> list[str]:
        """Return what to start in the guest: all of it ends with the guest."""
        return self.kept(command, pid_file) if pid_file is not None else list(command)

    def kept(self, command: tuple[str, ...], pid_file: str) -> list[str]:
        """Return the same, with a file for the number of the process."""
        return ["sh", "-c", 'echo $$ >"$1"; shift; exec "$@"', "sh", pid_file, *command]

    def go_on(self) -> None:
        """Refuse: a guest ends with its connection.

        Raises:
            RunError: always.

        """
        raise RunError(f"{self.role}: the connection to the guest was lost")

    def close(self) -> None:
        """Close the connection, with which the guest ends."""
        self._stack.close()


def ports_with(passed: Mapping[str, PassedPort]) -> dict[str, GuestPort]:
    """Return the ports of a guest, of which some are passed through, by their names in plans."""
    return {name: passed.get(plan, PORTS[name]) for plan, name in NAMED.items()}


def _end(port: GuestPort) -> str:
    """Return the interface of this host at the other end of a port."""
    return port.tap if isinstance(port, Wired) else port.cable


def _connected(machine: Machine, names: tuple[str, str], boot_s: float, folder: Path) -> Connection:
    role, image = names
    program = [sys.executable, "-IS", "-c", _PROXY.format(name=CONTROL)]
    options = {
        "ProxyCommand": shlex.join(["nsenter", f"--net=/proc/{machine.pid}/ns/net", *program]),
        "ProxyUseFdpass": "yes",
        # Only this machine is at the other end: a key would prove nothing more.
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "User": "root",
        "ConnectTimeout": str(int(boot_s) + 1),
        # The end of QEMU is the end of the connection. That of a kernel that stands still is not.
        "ServerAliveInterval": str(_ALIVE_S),
        "ServerAliveCountMax": str(_ALIVE_COUNT),
    }
    until_s = time.monotonic() + boot_s
    machine.until_listening(until_s)
    try:
        return Connection(role, Ssh(host="guest"), options=options, ready_s=boot_s, folder=folder)
    except HostError as error:
        died = machine.ended(_DYING_S)
        late = not died and time.monotonic() >= until_s
        why = f"did not boot within {boot_s:g} s" if late else "did not boot"
        kind = GuestDiedError if died else RunError
        raise kind(f"{role}: {image} {why}; its console: {machine.last_words()}") from error


def _move(source: Namespace, name: str, target: Namespace, called: str) -> None:
    source.run("ip", "link", "set", name, "netns", str(target.pid), "name", called)
