"""Hosts: facts, programs and commands of a machine, and its reservation for an experiment."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from subprocess import CompletedProcess

    from tailtrim.laboratory.nodes.node import Node, Process
    from tailtrim.tool import Tool


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
