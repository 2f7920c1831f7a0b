"""Nodes of this host, and the cables between them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.nodes import agent, host
from tailtrim.pos import cabling, programs
from tailtrim.pos.grammar import TOOLS
from tailtrim.pos.local_node import LocalNode
from tailtrim.pos.node import SHARED
from tailtrim.pos.provider import Provider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.nodes.node import Facts
    from tailtrim.pos.cabling import Cable
    from tailtrim.pos.node import PosNode
    from tailtrim.pos.provider import Boot


class LocalNodes(Provider):
    """Makes nodes of this host."""

    testbed = "local"

    def __init__(self, cables: Sequence[Cable] = ()) -> None:
        """Take the cables that are given; without, there are the usual ones."""
        self._given = list(cables)

    def check(self, name: str) -> None:
        """Make sure that the name is one."""
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise PlanError(f"invalid name of a node {name!r}")

    def lacks(self, program: str) -> str | None:
        """Say why nodes do not have a program."""
        if host.which(program) is not None:
            return None
        return "not installed on this host, whose programs local nodes have"

    def unbootable(self, name: str) -> None:
        """Let all be given: they are recorded."""
        del name

    def ignores(self, parameters: Sequence[str]) -> str | None:
        """Say that all are ignored: the kernel is that of this host."""
        return " ".join(parameters) or None

    async def prepare(self, name: str, wanted: Boot, old: PosNode | None) -> None:
        """Do nothing."""

    def boot(
        self, name: str, shared: Path, old: PosNode | None, others: Mapping[str, PosNode | None]
    ) -> PosNode:
        """Make a node; the cables of the one before move to it."""
        if not (shared / "bin").exists():
            programs.write(shared, list(TOOLS), os.path.realpath(sys.executable), seen=SHARED)
            (shared / "bin" / "tailtrim-agent").symlink_to(Path(agent.program()).resolve())
        cables, new = self._cables(list(others)), LocalNode(name, shared)
        if isinstance(old, LocalNode):
            cabling.moved(cables, old, new)
            old.end()
        else:
            there = {key: one for key, one in others.items() if isinstance(one, LocalNode)}
            cabling.connect(cables, there | {name: new}, name)
        return new

    def _cables(self, allocated: Sequence[str]) -> list[Cable]:
        return self._given or cabling.usual(allocated)

    def interfaces(self, name: str, allocated: Sequence[str]) -> list[dict[str, str]]:
        """Return the ports of a node, and what they are cabled to."""
        return cabling.topology(self._cables(allocated) if allocated else [], name)

    def facts(self, name: str) -> Facts:
        """Return what this host is."""
        del name
        return host.facts()

    def meter(self, name: str) -> None:
        """Have none: this host's is not that of one of its nodes."""
        del name

    def clock(self, name: str) -> str:
        """Return the same for all nodes."""
        del name
        return "this host"

    def close(self) -> None:
        """Do nothing."""
