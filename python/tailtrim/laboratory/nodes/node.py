"""A node: a machine, or a part of one, and what an experiment can do there."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, Self

from tailtrim.laboratory.nodes.holder import errors_file
from tailtrim.laboratory.nodes.host import Shell
from tailtrim.laboratory.nodes.program import Contained
from tailtrim.results.layout import LOGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from tailtrim.laboratory.nodes.host import Facts

#: CLOCK_REALTIME, which stamps packets, and CLOCK_MONOTONIC, which never steps, both in s.
Clocks = tuple[float, float]


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
        folder: where files of the run are here.

    """

    #: The name of the machine that it is a part of, as a testbed file has it.
    host_name = "local"

    def __init__(
        self,
        role: str,
        facts: Facts,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
        folder: Path | None = None,
    ) -> None:
        """Take what is known of it."""
        self.role, self.facts = role, facts
        self.cpus, self.spared = list(cpus), list(spared)
        self._folder = folder or Path()
        #: The folder here for what programs write to standard error, if that is to stay.
        self.logs = folder and folder / LOGS

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
        return Contained(self, command, self._folder / log, more=environment, around=around)

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
