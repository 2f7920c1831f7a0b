"""Nodes of this host, and the cables between them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.laboratory.nodes import agent, local_host, namespace
from tailtrim_pos import cabling, programs
from tailtrim_pos.local_node import LocalNode
from tailtrim_pos.node import TOOLS
from tailtrim_pos.provider import Provider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import Facts
    from tailtrim.tool import Tool
    from tailtrim_pos.cabling import Cable
    from tailtrim_pos.node import PosNode
    from tailtrim_pos.provider import Boot


class LocalNodes(Provider):
    """Makes nodes of this host."""

    testbed = "local"
    #: Programs of this host that make nodes.
    tools: tuple[Tool, ...] = (*namespace.TOOLS, *TOOLS)

    def __init__(self, cables: Sequence[Cable] = ()) -> None:
        """Use the given cables; without any, the usual ones."""
        self._given = list(cables)

    def check(self, name: str) -> None:
        """Make sure that the name is one."""
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise PlanError(f"invalid name of a node {name!r}")

    def reserve(self, names: Sequence[str]) -> None:
        """Make sure that this host has what makes nodes."""
        del names
        local_host.require(*self.tools)

    def unbootable(self, name: str) -> None:
        """Accept all boot parameters: they are recorded."""
        del name

    def ignores(self, parameters: Sequence[str]) -> str | None:
        """Return all of them: the kernel is that of this host."""
        return " ".join(parameters) or None

    async def prepare(self, name: str, wanted: Boot, old: PosNode | None) -> None:
        """Do nothing."""

    def boot(
        self, name: str, shared: Path, old: PosNode | None, others: Mapping[str, PosNode | None]
    ) -> PosNode:
        """Make a node; the cables of the one before move to it."""
        python, program = map(os.path.realpath, (sys.executable, agent.program()))
        if not (shared / "bin").exists():
            programs.write_tools(shared, python, program)
        self.write_repositories(name, others, shared, python)
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
        """Return the ports of a node, and the ports that they are cabled to."""
        return cabling.topology(self._cables(allocated) if allocated else [], name)

    def facts(self, name: str) -> Facts:
        """Return the facts of this host."""
        del name
        return local_host.facts()

    def meter(self, name: str) -> None:
        """Return none: this host's meter is not that of one of its nodes."""
        del name

    def clock(self, name: str) -> str:
        """Return the same for all nodes."""
        del name
        return "this host"

    def close(self) -> None:
        """Do nothing."""
