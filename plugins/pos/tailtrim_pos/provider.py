"""Source of the nodes of an experiment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim_pos import repositories

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import Facts
    from tailtrim.laboratory.nodes.meters import Reader
    from tailtrim_pos.node import PosNode
    from tailtrim_pos.repositories import Repository


@dataclass(frozen=True, slots=True)
class Boot:
    """Configuration with which a node is booted.

    ``allocated`` are the nodes of its allocation, ``shared`` is the folder here that it has.
    """

    image: str
    parameters: Sequence[str]
    allocated: Sequence[str]
    shared: Path


class Provider(ABC):
    """Makes nodes by the names that the script has for them."""

    #: The testbed, as the record describes it.
    testbed: Any
    #: Repositories that something stands in for on nodes.
    repositories: Sequence[Repository] = ()

    @abstractmethod
    def check(self, name: str) -> None:
        """Make sure that there can be a node of a name.

        Raises:
            PlanError: there cannot; says what is expected.

        """

    @abstractmethod
    def reserve(self, names: Sequence[str]) -> None:
        """Make sure that nodes can be made, and reserve the hosts of those names that are nodes.

        Raises:
            HostError: a program is missing here, or a host cannot be reached or is taken.

        """

    @abstractmethod
    def unbootable(self, name: str) -> str | None:
        """Return why a node cannot be booted with boot parameters; ``None`` where it can."""

    @abstractmethod
    def ignores(self, parameters: Sequence[str]) -> str | None:
        """Return the boot parameters without which nodes are booted, if any."""

    @abstractmethod
    async def prepare(self, name: str, wanted: Boot, old: PosNode | None) -> None:
        """Do the slow steps that come before a node is booted.

        Raises:
            HostError: its host cannot be booted so, or is dead.
            RunError: it was lost meanwhile.

        """

    @abstractmethod
    def boot(
        self, name: str, shared: Path, old: PosNode | None, others: Mapping[str, PosNode | None]
    ) -> PosNode:
        """Make a node, in the place of the one that was there.

        Args:
            name: its name.
            shared: the folder here that has the controller's socket for it.
            old: the node before; it is gone afterwards.
            others: the nodes of its allocation by name, in order; ``None`` where one is off.

        Raises:
            HostError: the host cannot.
            RunError: it was lost meanwhile.

        """

    @abstractmethod
    def interfaces(self, name: str, allocated: Sequence[str]) -> list[dict[str, str]]:
        """Return the ports of a node, and the ports that they are cabled to."""

    def write_repositories(
        self, name: str, allocated: Iterable[str], folder: Path, python: str
    ) -> None:
        """Write what stands in for repositories on a node.

        Args:
            name: of the node.
            allocated: the nodes of its allocation.
            folder: here, with its tools.
            python: the path of Python on the node.

        Raises:
            RunError: a folder cannot be copied.

        """
        ports = [row["port"] for row in self.interfaces(name, list(allocated))]
        repositories.write(folder, python, self.repositories, ports)

    @abstractmethod
    def facts(self, name: str) -> Facts:
        """Return the facts of a node's host."""

    @abstractmethod
    def meter(self, name: str) -> Reader | None:
        """Open the meter of a node's host; ``None`` where it has none.

        Raises:
            HostError: it cannot be read.
            MissingPackageError: the package that asks it is not installed.

        """

    @abstractmethod
    def clock(self, name: str) -> str:
        """Return the host whose clock a node has."""

    @abstractmethod
    def close(self) -> None:
        """Release the hosts of nodes."""
