"""An allocation: nodes that belong together, their variables, roles and result folder."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from tailtrim.errors import OutputError, PlanError
from tailtrim_pos import layout as names
from tailtrim_pos import variables
from tailtrim_pos.barriers import Barriers, Lockstep
from tailtrim_pos.naming import now

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim_pos.layout import Layout


class Allocation:
    """Nodes with their variables: ``global``, ``loop``, and of each node by its name."""

    def __init__(
        self, number: int, nodes: list[str], layout: Layout, state: Callable[[str], str]
    ) -> None:
        """Make it, and its result folder.

        Args:
            number: its ID.
            nodes: their names.
            layout: of its result folder.
            state: says what a node does, for those who wait for it.

        """
        self.number, self.nodes, self.layout = number, nodes, layout
        self.variables: dict[str, dict[str, Any]] = {"global": {}, "loop": {}}
        self.roles: dict[str, list[str]] = {}
        self.barriers = Barriers(self._opened, state)
        self.lockstep = Lockstep()
        #: Nodes that died, and how.
        self.dead: dict[str, str] = {}
        #: Reason why no run goes on, where a node that died cannot be used again.
        self.over: str | None = None
        #: Time of its begin: older files in its result folder are of an interrupted attempt.
        self.began_s = time.time()
        self.save()

    def of(self, node: str) -> dict[str, Any]:
        """Return the variables of a node."""
        return self.variables.setdefault(node, {})

    def add(self, nodes: list[str]) -> None:
        """Add nodes."""
        self.nodes += [node for node in nodes if node not in self.nodes]
        self.save()

    def set(self, node: str, given: dict[str, Any], source: str, kind: str) -> None:
        """Set variables: ``kind`` is global, loop or local.

        Raises:
            PlanError: loop variables are not lists.

        """
        if kind == "loop":
            self.variables["loop"] |= variables.read_loop(given, source)
            variables.grid(self.variables["loop"])
        else:
            (self.of(node) if kind == "local" else self.variables["global"]).update(given)
        self.save()

    def members(self, role: str | None, nodes: list[str]) -> frozenset[str]:
        """Return the nodes of a barrier: those named, those of a role, or all.

        Raises:
            PlanError: there is no such role or node.

        """
        if role is not None:
            if role not in self.roles:
                known = ", ".join(self.roles) or "none (pos roles add makes one)"
                raise PlanError(f"unknown role {role!r}, expected one of {known}")
            return frozenset(self.roles[role])
        named = [one for node in nodes for one in self.roles.get(node, [node])]
        for node in named:
            if node not in self.nodes:
                raise PlanError(f"unknown node {node!r}, expected one of {', '.join(self.nodes)}")
        return frozenset(named or self.nodes)

    def aside(self, node: str) -> Path:
        """Return the folder for what an interrupted attempt left."""
        return self.layout.folder / names.INTERRUPTED / now() / node

    def described(self) -> dict[str, Any]:
        """Return what ``pos allocations show`` prints."""
        return {
            "id": self.number,
            "nodes": self.nodes,
            "roles": self.roles,
            "result_folder": str(self.layout.folder),
        }

    def save(self) -> None:
        """Write nodes, roles and variables to the result folder."""
        config = self.layout.config
        both = self.described() | {"variables": self.variables}
        write(config / names.ALLOCATION, both)
        if self.layout.published is names.Published.OLD:
            for node in self.nodes:
                write(config / f"{node}.json", self.of(node))

    def save_variables(self) -> None:
        """Write the variables under the time, as they are when nodes boot."""
        if self.layout.published is names.Published.NEW:
            write(self.layout.config / f"{now()}_{names.VARIABLES}", self.variables)

    def _opened(self, event: dict[str, Any]) -> None:
        place = self.layout.config / "barriers.jsonl"
        with place.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


def write(path: Path, value: Any) -> None:
    """Write a JSON file, and the folder that it is in.

    Raises:
        OutputError: it cannot be written.

    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2, default=str) + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
