"""The nodes of an experiment: booted, cabled, and what each of them does."""

from __future__ import annotations

import asyncio
import copy
import os
import shlex
import shutil
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import PlanError
from tailtrim.nodes import agent, host
from tailtrim.pos import cabling
from tailtrim.pos.grammar import TOOLS
from tailtrim.pos.images import HOST_IMAGE
from tailtrim.pos.node import SHARED, PosNode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tailtrim.pos.allocation import Allocation
    from tailtrim.pos.background import Background
    from tailtrim.pos.cabling import Cable

SOCKET = "pos.sock"
CLIENT = "client.py"


class Machine:
    """A node of the testbed, whether it is booted or not."""

    def __init__(self, name: str, shared: Path) -> None:
        """Take its name, and the folder of its tools here."""
        self.name, self.shared = name, shared
        self.image = HOST_IMAGE
        self.boot_parameters: list[str] = []
        self.allocation: Allocation | None = None
        self.node: PosNode | None = None
        #: The variables as they were when it booted.
        self.cached: dict[str, dict[str, Any]] = {}
        #: Commands wait here for the one before.
        self.queue = asyncio.Lock()
        #: The number and the loop variables of the current run, and how names tell it.
        self.run: tuple[int, dict[str, Any], str] | None = None
        #: Is called with each file that the current run leaves.
        self.left: Callable[[Path], None] = _nothing
        self.background: dict[tuple[str, int | None], Background] = {}
        #: What was done there since it booted, for a node that has to be booted again.
        self.done: list[Callable[[], Awaitable[None]]] = []
        #: Whether it does that again: others do not wait for it, its uploads replace those before.
        self.catching_up = False

    @property
    def state(self) -> str:
        """What pos calls the state of a node."""
        return "off" if self.node is None else "booted" if self.node.alive else "dead"

    def allocated(self) -> Allocation:
        """Return its allocation.

        Raises:
            PlanError: it has none.

        """
        if self.allocation is None:
            raise PlanError(f"{self.name}: not allocated (pos allocations allocate {self.name})")
        return self.allocation

    def bootstrap(self) -> None:
        """Let the node know the variables as they are now."""
        allocation = self.allocated()
        own = {"hostname": self.name} | allocation.of(self.name)
        known = {"global": allocation.variables["global"], "local": own}
        self.cached = copy.deepcopy(known)


def _nothing(_: Path) -> None:
    """Take a file that is of no run."""


class Machines:
    """All nodes, by name; they are made when a script names them first."""

    def __init__(self, folder: Path, cables: Sequence[Cable]) -> None:
        """Take the folder for sockets and tools, and the cables that are given."""
        self._folder, self._given = folder, list(cables)
        self._all: dict[str, Machine] = {}
        client = resources.files("tailtrim.pos.library.poslib").joinpath("_client.py")
        self._client = client.read_text("utf-8")
        self.programs(folder / "bin", ["pos"], folder / CLIENT)

    def __iter__(self) -> Any:
        """Return all of them."""
        return iter(self._all.values())

    def programs(self, folder: Path, names: Sequence[str], client: Path | str) -> None:
        """Write programs that ask the controller."""
        folder.mkdir(parents=True)
        (folder.parent / CLIENT).write_text(self._client, "utf-8")
        python = shlex.quote(os.path.realpath(sys.executable))
        for name in names:
            place = folder / name
            text = f'#!/bin/sh\nexec {python} -I -S {shlex.quote(str(client))} {name} "$@"\n'
            place.write_text(text, "utf-8")
            place.chmod(0o755)

    def machine(self, name: str) -> Machine:
        """Return a node; it is made if there is none of this name.

        Raises:
            PlanError: the name is not one.

        """
        if name not in self._all:
            if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
                raise PlanError(f"invalid name of a node {name!r}")
            shared = self._folder / "nodes" / name
            self.programs(shared / "bin", list(TOOLS), f"{SHARED}/{CLIENT}")
            (shared / "bin" / "tailtrim-agent").symlink_to(Path(agent.program()).resolve())
            self._all[name] = Machine(name, shared)
        return self._all[name]

    def described(self, machine: Machine) -> dict[str, Any]:
        """Return what a node is, as ``pos nodes show`` has it."""
        facts = host.facts()
        cables = self.cables(machine.allocation) if machine.allocation else []
        return {
            "image": machine.image,
            "bootparameters": machine.boot_parameters,
            "state": machine.state,
            "kernel": facts.kernel,
            "processor": [{"model": facts.model, "cores": facts.cpus, "threads": facts.cpus}],
            "interfaces": cabling.topology(cables, machine.name),
        }

    def cables(self, allocation: Allocation) -> list[Cable]:
        """Return the cables of an allocation: those given, otherwise the usual ones."""
        return self._given or cabling.usual(allocation.nodes)

    def boot(self, machine: Machine) -> PosNode:
        """Boot a node, again if it was, and let it know its variables.

        Raises:
            HostError: this host cannot.

        """
        allocation = machine.allocated()
        allocation.save_variables()
        cables = self.cables(allocation)
        old, machine.node = machine.node, PosNode(machine.name, machine.shared)
        machine.background.clear()
        machine.done.clear()
        if old is not None:
            cabling.moved(cables, old, machine.node)
            old.end()
        there = {one.name: one.node for one in self if one.node and one.allocation is allocation}
        if old is None:
            cabling.connect(cables, there, machine.name)
        allocation.dead.pop(machine.name, None)
        allocation.over = None
        allocation.barriers.back(machine.name)
        machine.bootstrap()
        return machine.node

    def booted(self, machine: Machine) -> PosNode:
        """Return a node, booted if it was not."""
        return machine.node or self.boot(machine)

    def off(self, machine: Machine) -> None:
        """Remove a node."""
        if machine.node is not None:
            machine.node.end()
        machine.node = machine.allocation = None
        machine.background.clear()
        machine.done.clear()

    def end(self) -> None:
        """Remove all nodes, and the folder."""
        for machine in self:
            self.off(machine)
        shutil.rmtree(self._folder, ignore_errors=True)
