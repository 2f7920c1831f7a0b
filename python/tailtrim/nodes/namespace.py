"""A node that is a network namespace of this host."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self, TypeVar

from tailtrim.errors import HostError, RunError
from tailtrim.nodes import agent, host, xdp
from tailtrim.nodes.node import Clocks, Facts, Node
from tailtrim.nodes.program import Contained
from tailtrim.nodes.tool import Tool
from tailtrim.rundir.layout import LOGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")

_NEWNET = 0x40000000  # CLONE_NEWNET of <sched.h>
_ALL = 0x0003  # ETH_P_ALL
_FRAME = 2_048

#: What makes nodes, and what is done on each.
TOOLS = (
    Tool("ip", "iproute2"),
    Tool("tc", "iproute2"),
    Tool("ethtool", "ethtool"),
    Tool("unshare", "util-linux"),
    Tool("nsenter", "util-linux"),
    Tool("setpriv", "util-linux"),
    Tool("taskset", "util-linux"),
)
_START_S = 5.0
# The kernel ends what still runs when this process is gone.
_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Namespace(Node):
    """A network namespace, for as long as the context lasts.

    A process holds it, and ends when its standard input does: with this process, whatever ends it.
    The kernel does the same when the thread ends that made the node, so that thread has to stay.
    Files are this host's: one folder is that of the run here and on the node.
    """

    def __init__(
        self,
        role: str,
        folder: Path | None = None,
        facts: Facts | None = None,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
    ) -> None:
        """Make the namespace.

        Args:
            role: what it is for, such as loadgen, timestamper or dut.
            folder: where files of the run go; the current one by default.
            facts: of this host, if they are known.
            cpus: those that an experiment may use for it.
            spared: those for what only waits.

        Raises:
            HostError: this host cannot.

        """
        super().__init__(role, facts or host.facts(), cpus, spared)
        self._folder = folder or Path()
        self.logs = folder and folder / LOGS
        for tool in TOOLS:
            if host.find(tool) is None:
                raise tool.missing()
        self._holder = subprocess.Popen(
            [*_WITH_US, "unshare", "--net", "--", "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=host.environment(),
            # Ctrl-C is for this process, which ends the node last.
            start_new_session=True,
        )
        self.pid = self._holder.pid
        ours = Path("/proc/self/ns/net").readlink()
        until_s = time.monotonic() + _START_S
        while self._namespace() in {ours, None}:
            if self._holder.poll() is not None or time.monotonic() > until_s:
                self._holder.kill()
                problem = self._holder.communicate()[1].strip()
                raise HostError(f"no network namespace for the {role}: {problem or 'no answer'}")
            time.sleep(0.001)

    def _namespace(self) -> Path | None:
        try:
            return Path(self._file).readlink()
        except OSError:
            return None

    @property
    def _file(self) -> str:
        return f"/proc/{self.pid}/ns/net"

    def __enter__(self) -> Self:
        """Return the node itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the namespace up; the kernel removes it with everything in it."""
        self._holder.kill()
        self._holder.wait()
        for stream in (self._holder.stdin, self._holder.stderr):
            if stream:
                stream.close()

    @property
    def prefix(self) -> list[str]:
        """What to start a command with so that it runs in here, and ends with this process."""
        return [*_WITH_US, *self._within]

    @property
    def _within(self) -> list[str]:
        return ["nsenter", f"--net={self._file}", "--"]

    @property
    def agent(self) -> str:
        """The path of the agent, which is this host's."""
        return agent.program()

    def call(self, *command: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in here to its end."""
        return subprocess.run(
            [*self.prefix, *command],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            env=host.environment(),
        )

    def open(
        self,
        *command: str,
        output: int | IO[str],
        errors: int | IO[str],
        environment: Mapping[str, str] | None = None,
        tidies_up: bool = False,
    ) -> subprocess.Popen[str]:
        """Start a command in here."""
        return subprocess.Popen(
            [*(self._within if tidies_up else self.prefix), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            text=True,
            env=host.environment() | dict(environment or {}),
            # Ctrl-C is for this process, which ends what it started. And the scheduler shares the
            # CPU out among sessions first: only in one of its own can the agent be preferred.
            start_new_session=True,
        )

    def start(
        self,
        *command: str,
        log: str,
        environment: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
    ) -> Contained:
        """Start a program in here."""
        return Contained(self, command, self._folder / log, environment, around)

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
