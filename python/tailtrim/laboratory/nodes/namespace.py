"""A node that is a network namespace of this host."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self, TypeVar

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.nodes import agent, local_host, xdp
from tailtrim.laboratory.nodes.holder import Holder
from tailtrim.laboratory.nodes.host import Facts, ReservedHost
from tailtrim.laboratory.nodes.node import Clocks, Node
from tailtrim.laboratory.nodes.ports import REMEMBER
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from subprocess import CompletedProcess, Popen

T = TypeVar("T")

_NEWNET = 0x40000000  # CLONE_NEWNET of <sched.h>
_ALL = 0x0003  # ETH_P_ALL
_FRAME = 2_048

#: Programs that make nodes, and that set each up.
TOOLS = (
    Tool("ip", "iproute2"),
    Tool("tc", "iproute2"),
    Tool("ethtool", "ethtool"),
    Tool("unshare", "util-linux"),
    Tool("nsenter", "util-linux"),
    Tool("setpriv", "util-linux"),
    Tool("taskset", "util-linux"),
)
_END_S = 15.0
# The kernel ends what still runs when this process is gone.
_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_HOLD = "echo $$; exec cat >/dev/null"

# Descriptor 7 is where the ports were. What is told to a connection that is gone must not end the
# shell that brings them back.
_MAKE = f"""{REMEMBER}
inner=$1; shift
remember "$@"
exec 7</proc/self/ns/net
exec unshare --net -- sh -c "$inner" sh "$restore" "$@"
"""
_HOLD_PORTS = """
restore=$1; shift
trap '' HUP INT TERM PIPE
come() {
    for named; do
        port=${named%%=*} here=${named#*=}
        nsenter --net=/proc/self/fd/7 -- ip link set dev "$port" netns $$ || return 1
        [ "$port" = "$here" ] || ip link set dev "$port" name "$here" || return 1
    done
}
come "$@" && echo $$ && cat >/dev/null
for named; do
    port=${named%%=*} here=${named#*=}
    if [ "$port" != "$here" ] && ip link set dev "$here" down 2>/dev/null; then
        ip link set dev "$here" name "$port"
    fi
    ip link set dev "$port" netns /proc/self/fd/7 2>/dev/null
done
exec nsenter --net=/proc/self/fd/7 -- sh -c "$restore"
"""


def making(ports: Sequence[str]) -> tuple[str, ...]:
    """Return a command that holds a network namespace with ports, and prints its process.

    It ends with its standard input: the ports go back to where they came from, and are as they
    were. If it is killed, the kernel brings ports of hardware back.

    Args:
        ports: names of interfaces; as ``old=new`` where one has another name in the namespace.

    """
    return ("sh", "-c", _MAKE, "sh", _HOLD_PORTS, *ports)


class Namespace(Node):
    """A network namespace, for as long as the context lasts.

    A process holds it, and ends when its standard input does: with this process, whatever ends it.
    Without ports, the kernel does the same when the thread ends that made the node, so that thread
    has to stay. Files are this host's: one folder is that of the run here and on the node.

    Args:
        role: what it is for, such as loadgen, timestamper or dut.
        folder: where files of the run go; the current one by default.
        facts: of this host, if they are known.
        cpus: those that an experiment may use for it.
        spared: those for what only waits.
        ports: interfaces of this host that come into it, and go back as they were.

    Raises:
        HostError: this host cannot.

    """

    def __init__(  # noqa: PLR0913 - each is named
        self,
        role: str,
        folder: Path | None = None,
        facts: Facts | None = None,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
        ports: Sequence[str] = (),
    ) -> None:
        """Make the namespace."""
        known = facts or local_host.facts()
        super().__init__(role, known, cpus=cpus, spared=spared, folder=folder)
        local_host.require(*TOOLS)
        words = making(ports) if ports else (*_WITH_US, "unshare", "--net", "--", "sh", "-c", _HOLD)
        self._holder = Holder(
            partial(local_host.start, words),
            f"no network namespace for the {role}",
            grace_s=_END_S if ports else 0,
        )
        self.pid = int(self._holder.line)

    @property
    def _file(self) -> str:
        return f"/proc/{self.pid}/ns/net"

    def __exit__(self, *_: object) -> None:
        """Give the namespace up; the kernel removes it with everything in it."""
        self._holder.end()

    @property
    def prefix(self) -> list[str]:
        """Words before a command that runs in here, and ends with this process."""
        return [*_WITH_US, *self._within]

    @property
    def _within(self) -> list[str]:
        return ["nsenter", f"--net={self._file}", "--"]

    @property
    def agent(self) -> str:
        """The path of the agent, which is this host's."""
        return agent.program()

    def call(self, *command: str, given: str | None = None) -> CompletedProcess[str]:
        """Run a command in here to its end."""
        return local_host.run([*self.prefix, *command], given=given or "")

    def open(
        self,
        *command: str,
        output: int | IO[str],
        errors: int | IO[str],
        environment: Mapping[str, str] | None = None,
        tidies_up: bool = False,
    ) -> Popen[str]:
        """Start a command in here."""
        words = [*(self._within if tidies_up else self.prefix), *command]
        return local_host.start(words, output=output, errors=errors, more=environment)

    def path(self, name: str = "") -> str:
        """Return where a file of the run is."""
        return str(self._folder / name)

    def put(self, name: str, text: str) -> str:
        """Write a file of the run."""
        (self._folder / name).write_text(text, encoding="utf-8")
        return self.path(name)

    def get(self, name: str) -> Path | None:
        """Return a file of the run: it is here already."""
        path = self._folder / name
        return path if path.exists() else None

    def clocks(self) -> Clocks:
        """Read the clocks, which are this host's."""
        return time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime(time.CLOCK_MONOTONIC)

    def frames(self, port: str) -> PacketSocket:
        """Open a port for whole frames."""

        def opened() -> socket.socket:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
            try:
                raw.bind((port, _ALL))
            except OSError:
                raw.close()
                raise
            return raw

        try:
            return PacketSocket(port, self.inside(opened))
        except OSError as error:
            raise RunError(f"{self.role}: {port}: {error.strerror}") from error

    @contextmanager
    def attach_xdp(self, port: str, program: bytes) -> Iterator[None]:
        """Attach an XDP program to a port; it goes with the context."""
        descriptors: list[int] = []
        try:
            try:
                descriptors.append(xdp.load(program))
                link = self.inside(lambda: xdp.attach(descriptors[0], socket.if_nametoindex(port)))
                descriptors.append(link)
            except OSError as error:
                told = f"xdp: the program cannot be attached: {error.strerror}"
                refused = HostError(told)
                if isinstance(error, PermissionError):
                    refused.add_note("loading an XDP program needs root, not only a user namespace")
                raise refused from error
            yield
        finally:
            for descriptor in reversed(descriptors):
                os.close(descriptor)

    def inside(self, action: Callable[[], T]) -> T:
        """Call something in here: in a thread that goes there, and that ends afterwards.

        Raises:
            OSError: from the action, or when the namespace is gone.

        """
        results: list[T] = []
        problems: list[BaseException] = []

        def go() -> None:
            try:
                libc = ctypes.CDLL(None, use_errno=True)
                with Path(self._file).open("rb") as namespace:
                    if libc.setns(namespace.fileno(), _NEWNET) != 0:
                        number = ctypes.get_errno()
                        raise OSError(number, os.strerror(number))  # noqa: TRY301 - told below
                results.append(action())
            except BaseException as problem:  # noqa: BLE001 - raised again where it belongs
                problems.append(problem)

        thread = threading.Thread(target=go)
        thread.start()
        thread.join()
        if problems:
            raise problems[0]
        return results[0]


class LocalHost(ReservedHost):
    """A host of a testbed that is this machine. Nothing is reserved: others may use it, too."""

    def __init__(self, name: str = "local", known: Facts | None = None) -> None:
        """Take its name in errors, and its facts if they are known."""
        self.role, self.facts, self.agent = name, known or local_host.facts(), agent.program()

    def call(self, *command: str, given: str | None = None) -> CompletedProcess[str]:
        """Run a command to its end."""
        return local_host.run(command, given=given or "")

    def find(self, tool: Tool) -> str | None:
        """Return the path of a tool, as namespaces find it."""
        return local_host.find(tool)

    def start(self, *command: str) -> Popen[str]:
        """Start a command that ends with this process."""
        words = (*_WITH_US, *command)
        return local_host.start(words, output=subprocess.PIPE, errors=subprocess.DEVNULL)

    def node(
        self,
        role: str,
        ports: Sequence[str],
        folder: Path,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
    ) -> Namespace:
        """Make a network namespace with ports of this machine."""
        made = Namespace(role, folder, self.facts, cpus=cpus, spared=spared, ports=ports)
        made.host_name = self.role
        return made


class PacketSocket:
    """A raw socket on a port; it stays in the namespace that it was opened in."""

    def __init__(self, port: str, raw: socket.socket) -> None:
        """Take a socket that is bound to the port."""
        self._port, self._raw = port, raw

    def __enter__(self) -> Self:
        """Return the socket itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._raw.close()

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        try:
            self._raw.send(frame)
        except OSError as error:
            raise RunError(f"{self._port}: {error.strerror}") from error

    def receive(self, within_s: float) -> bytes | None:
        """Return the next frame, if one comes in time."""
        self._raw.settimeout(within_s)
        try:
            return self._raw.recv(_FRAME)
        except TimeoutError:
            return None
        except OSError as error:
            raise RunError(f"{self._port}: {error.strerror}") from error


def link(  # noqa: PLR0913 - two ends and what lies between
    one: Namespace, name: str, other: Namespace, peer: str, *, macs: Sequence[str], mtu: int
) -> None:
    """Lay a fibre between two nodes: a pair of virtual interfaces."""
    one.run(
        *("ip", "link", "add", name, "mtu", str(mtu), "address", macs[0], "type", "veth"),
        *("peer", "name", peer, "mtu", str(mtu), "address", macs[1], "netns", str(other.pid)),
    )
