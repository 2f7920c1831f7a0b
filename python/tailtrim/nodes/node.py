"""A node: a machine, or a part of one, and what an experiment can do there."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

from tailtrim.errors import HostError
from tailtrim.nodes.holder import errors_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from subprocess import CompletedProcess

    from tailtrim.nodes.tool import Tool

#: CLOCK_REALTIME, which stamps packets, and CLOCK_MONOTONIC, which never steps, both in s.
Clocks = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Facts:
    """A node's kernel release, machine type, CPUs, and whether its user is really root.

    Root of a user namespace is not. ``cpus`` is how many may be used, ``model`` what the kernel
    calls them, empty where it does not say.
    """

    kernel: str
    machine: str
    cpus: int
    root: bool
    model: str = ""


class Host(ABC):
    """A host, before anything is started on it: what it is, and which programs it has."""

    facts: Facts

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether it has a file."""

    @abstractmethod
    def find(self, tool: Tool) -> str | None:
        """Return the path of a tool; ``None`` where it is not installed."""

    def require(self, *tools: Tool) -> None:
        """Make sure that tools are there.

        Raises:
            HostError: one is not; says which package has it.

        """
        for tool in tools:
            if self.find(tool) is None:
                raise tool.missing()


class Shell(Host):
    """A host on which commands run to their end; ``role`` names it in errors."""

    role: str

    @abstractmethod
    def call(self, *command: str, given: str | None = None) -> CompletedProcess[str]:
        """Run a command to its end, whatever comes of it; ``given`` is its standard input."""

    def work(self, *command: str) -> CompletedProcess[str]:
        """Do the same with one that takes as long as its files are: only a lost host ends it."""
        return self.call(*command)

    def run(self, *command: str, given: str | None = None) -> str:
        """Run a command and return its output.

        Raises:
            HostError: it failed.

        """
        ended = self.call(*command, given=given)
        if ended.returncode != 0:
            problem = (ended.stderr or ended.stdout).strip().splitlines()
            told = problem[0] if problem else f"ended with {ended.returncode}"
            raise HostError(f"{self.role}: {' '.join(command)}: {told}")
        return ended.stdout

    def set(self, name: str, value: str) -> None:
        """Set a sysctl; one that the kernel lacks is left alone."""
        path = f"/proc/sys/{name}"
        self.run("sh", "-c", f"[ ! -e {path} ] || echo {value} > {path}")

    def exists(self, path: str) -> bool:
        """Return whether it has a file."""
        return self.call("test", "-e", path).returncode == 0

    def find(self, tool: Tool) -> str | None:
        """Return the path of a tool; ``None`` where it is not installed."""
        found = self.call("sh", "-c", 'command -v "$1"', "sh", tool.program).stdout.strip()
        return found or next(filter(self.exists, tool.places), None)


class ReservedHost(Shell):
    """A host of a testbed, reserved for an experiment until it is closed.

    ``agent`` is the path of the agent on it; ``stale`` tells of a reservation that was too old, if
    one was in the way.
    """

    agent: str
    stale: str | None = None

    @property
    def control_address(self) -> str:
        """The address that the connection to it ends at, which no experiment may take away."""
        return ""

    @property
    def login(self) -> str:
        """The user that commands are started as, in words."""
        return "root"

    @property
    def lost(self) -> bool:
        """Whether it is known that the host cannot be reached any more."""
        return False

    def notes(self) -> Iterator[tuple[str, str]]:
        """Yield what users should know of its state, and a command that changes it."""
        yield from ()

    def close(self) -> None:
        """Give the host up, with everything that runs there for the experiment."""

    @abstractmethod
    def start(self, *command: str) -> Process:
        """Start a command that ends with the reservation, with pipes to it.

        Raises:
            HostError: it cannot be started.

        """

    @abstractmethod
    def node(
        self,
        role: str,
        ports: Sequence[str],
        folder: Path,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
    ) -> Node:
        """Make a node of a run, with some ports of the host; they go back when it ends.

        Args:
            role: what it is for, such as loadgen, timestamper or dut.
            ports: names of interfaces of the host.
            folder: where files of the run go here.
            cpus: those that an experiment may use for it.
            spared: those for what only waits.

        Raises:
            HostError: the host cannot.
            RunError: the host was lost.

        """

    def audit(self, *arguments: str) -> dict[str, Any]:
        """Return what the agent's audit says of the host.

        Raises:
            HostError: it says nothing.
            RunError: the host was lost, or it takes too long.

        """
        ended = self.call(self.agent, "audit", *arguments, "--json")
        try:
            return dict(json.loads(ended.stdout))
        except ValueError as error:
            told = ended.stderr.strip() or f"ended with {ended.returncode}"
            raise HostError(f"{self.role}: tailtrim-agent audit: {told}") from error


class Process(Protocol):
    """A process on a node whose standard input and output this process holds."""

    @property
    def pid(self) -> int:
        """Its number on the node."""

    @property
    def stdin(self) -> IO[str] | None:
        """Its standard input."""

    @property
    def stdout(self) -> IO[str] | None:
        """Its standard output, if it was asked for."""

    def poll(self) -> int | None:
        """Return its exit code; ``None`` while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal."""

    def kill(self) -> None:
        """End it at once."""


class Program(Protocol):
    """A program on a node with everything that it started, for as long as the context lasts."""

    def __enter__(self) -> Self:
        """Return the program itself."""

    def __exit__(self, *_: object) -> None:
        """End it and everything that it started."""

    @property
    def pid(self) -> int:
        """Its number on the node."""

    @property
    def alive(self) -> bool:
        """Whether it runs."""

    def last_words(self) -> str:
        """Return the end of what it printed, in one line."""


class Frames(Protocol):
    """Whole frames, out of a port of a node and into it, for as long as the context lasts."""

    def __enter__(self) -> Self:
        """Return the frames themselves."""

    def __exit__(self, *_: object) -> None:
        """Leave the port alone."""

    def send(self, frame: bytes) -> None:
        """Send a frame.

        Raises:
            RunError: the port is gone, as far as that is known by now.

        """

    def receive(self, within_s: float) -> bytes | None:
        """Return the next frame, cut after 2,048 bytes; ``None`` if none comes in time.

        Raises:
            RunError: the port is gone.

        """


class Node(Shell):
    """A machine, or a part of one, for as long as the context lasts.

    Everything that was started on it ends with it at the latest, and with this process, whatever
    ends that.

    Args:
        role: what it is for, such as loadgen or dut.
        facts: what it is.
        cpus: its CPUs on which an experiment may have what it measures, or measures with.
        spared: those for what only waits meanwhile.

    """

    #: The name of the machine that it is a part of, as a testbed file has it.
    host_name = "local"
    #: The folder here for what programs write to standard error, if that is to stay.
    logs: Path | None = None

    def __init__(
        self, role: str, facts: Facts, cpus: Sequence[int] = (), spared: Sequence[int] = ()
    ) -> None:
        """Take what is known of it."""
        self.role, self.facts = role, facts
        self.cpus, self.spared = list(cpus), list(spared)

    @property
    def named(self) -> str:
        """Its role, and the host where that is another one, for errors."""
        return self.role if self.host_name == "local" else f"{self.role} ({self.host_name})"

    def __enter__(self) -> Self:
        """Return the node itself."""
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None:
        """Give the node up, with everything that runs on it."""

    @property
    def lost(self) -> bool:
        """Whether it is known that the node cannot be reached any more."""
        return False

    def check(self) -> None:
        """Make sure that the node is there.

        Raises:
            RunError: it cannot be reached any more.

        """

    def log(self, name: str) -> IO[str]:
        """Open a log of a program on the node, by its name."""
        if self.logs is None:
            return errors_file()
        self.logs.mkdir(exist_ok=True)
        numbers = itertools.count(2)
        path = self.logs / f"{self.role}-{name}.log"
        while path.exists():
            path = self.logs / f"{self.role}-{name}-{next(numbers)}.log"
        return path.open("x+", encoding="utf-8", errors="replace")

    @property
    def outside(self) -> Node:
        """The node as who watches its programs sees it: another one if they are in a container."""
        return self

    def counted(self) -> dict[str, int]:
        """Return what its control group has counted: nothing, where it has none of its own."""
        return {}

    @property
    @abstractmethod
    def agent(self) -> str:
        """The path of the agent on the node.

        Raises:
            HostError: there is none.

        """

    @abstractmethod
    def open(
        self,
        *command: str,
        output: int | IO[str],
        errors: int | IO[str],
        environment: Mapping[str, str] | None = None,
        tidies_up: bool = False,
    ) -> Process:
        """Start a command whose standard input stays open as long as this process holds it.

        Args:
            command: program and arguments.
            output: where its standard output goes, as for :class:`subprocess.Popen`.
            errors: likewise for standard error.
            environment: variables beside those of this process.
            tidies_up: it takes back what it did when its standard input ends, so that it must not
                be killed where this process dies.

        """

    @abstractmethod
    def start(
        self,
        *command: str,
        log: str,
        environment: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
    ) -> Program:
        """Start a program that is to run until its context is left.

        Args:
            command: program and arguments.
            log: file of the run for what it prints.
            environment: variables beside those of this process.
            around: what starts it and all that watches it, such as :func:`allowed`.

        """

    @abstractmethod
    def path(self, name: str = "") -> str:
        """Return where a file of the run is on the node; without a name, the folder of all."""

    @abstractmethod
    def put(self, name: str, text: str) -> str:
        """Write a file of the run on the node, and return where."""

    @abstractmethod
    def get(self, name: str) -> Path | None:
        """Return a file of the run, as a file here; ``None`` if the node has none."""

    @abstractmethod
    def clocks(self) -> Clocks:
        """Read its clocks."""

    @abstractmethod
    def frames(self, port: str) -> Frames:
        """Open a port for whole frames.

        Raises:
            RunError: there is no such port.

        """

    @abstractmethod
    def attach_xdp(self, port: str, program: bytes) -> AbstractContextManager[None]:
        """Attach an XDP program to a port, as a driver's own (native mode).

        Args:
            port: where frames come in.
            program: instructions as the kernel takes them.

        Raises:
            HostError: the node's kernel, or its user, may not.

        """


def allowed(cpus: Sequence[int]) -> tuple[str, ...]:
    """Return what to start a command with so that it runs on these CPUs only."""
    return "taskset", "--cpu-list", ",".join(map(str, cpus))
