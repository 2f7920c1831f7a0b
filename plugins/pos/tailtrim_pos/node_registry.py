"""Registry of the nodes of an experiment, booted or not."""

from __future__ import annotations

import asyncio
import copy
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

from tailtrim.errors import PlanError
from tailtrim_pos import programs
from tailtrim_pos.experiment import HOST_IMAGE
from tailtrim_pos.provider import Boot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tailtrim.laboratory.nodes.meters import Reader
    from tailtrim_pos.allocation import Allocation
    from tailtrim_pos.energy import Measuring
    from tailtrim_pos.layout import Layout
    from tailtrim_pos.node import PosNode
    from tailtrim_pos.node_command import NodeCommand
    from tailtrim_pos.provider import Provider


class Background:
    """A process in the background of a node (``pos_run``), and the files of what it prints."""

    def __init__(self, layout: Layout, base: Path, process: NodeCommand) -> None:
        """Wrap a process; ``base`` is the beginning of the names of its files."""
        self._layout, self._base, self.process = layout, base, process

    async def wait(self) -> None:
        """Wait for its end."""
        await self.process.wait()
        self._layout.store_printed(self._base)

    async def stop(self) -> None:
        """End it."""
        await self.process.stop()
        self._layout.store_printed(self._base)


class Machine:
    """A node of the testbed, whether it is booted or not."""

    def __init__(self, name: str, shared: Path) -> None:
        """Begin with a node that is off; ``shared`` is its folder here."""
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
        #: Callback for each file that the current run leaves.
        self.left: Callable[[Path], None] = _nothing
        self.background: dict[tuple[str, int | None], Background] = {}
        #: Opens the meter of its host, if that has one.
        self.meter: Callable[[], Reader | None] = _without_meter
        #: Reader of that meter at the moment.
        self.measuring: Measuring | None = None
        #: Steps that were done there since it booted, for a node that has to be booted again.
        self.done: list[Callable[[], Awaitable[None]]] = []
        #: Whether it does that again: others do not wait for it, its uploads replace those before.
        self.catching_up = False

    @property
    def state(self) -> str:
        """State of the node, in the words of pos."""
        return "off" if self.node is None else "booted" if self.node.alive else "dead"

    def allocated(self) -> Allocation:
        """Return its allocation.

        Raises:
            PlanError: it has none.

        """
        if self.allocation is None:
            raise PlanError(f"{self.name}: not allocated (pos allocations allocate {self.name})")
        return self.allocation

    def measured(self) -> Measuring | None:
        """End what reads the meter, if anything does, and return it.

        Raises:
            OutputError: the readings cannot be written.

        """
        measuring, self.measuring = self.measuring, None
        if measuring is not None:
            measuring.stop()
        return measuring

    def bootstrap(self) -> None:
        """Give the node the variables as they are now."""
        allocation = self.allocated()
        own = {"hostname": self.name} | allocation.of(self.name)
        known = {"global": allocation.variables["global"], "local": own}
        self.cached = copy.deepcopy(known)


def _without_meter() -> None:
    """Return no reader: there is no meter."""


def _nothing(_: Path) -> None:
    """Ignore a file that is of no run."""


class NodeRegistry:
    """All nodes, by name; they are made when a script names them first."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        """Begin without nodes; ``folder`` is for sockets and tools."""
        self._folder, self.provider = folder, provider
        self._all: dict[str, Machine] = {}
        programs.write_pos(folder)

    def __iter__(self) -> Any:
        """Return all of them."""
        return iter(self._all.values())

    def machine(self, name: str) -> Machine:
        """Return a node; it is made if there is none of this name.

        Raises:
            PlanError: there cannot be one.

        """
        if name not in self._all:
            self.provider.check(name)
            shared = self._folder / "nodes" / name
            shared.mkdir(parents=True)
            self._all[name] = made = Machine(name, shared)
            made.meter = partial(self.provider.meter, name)
        return self._all[name]

    def described(self, machine: Machine) -> dict[str, Any]:
        """Return a description of a node, as ``pos nodes show`` has it.

        Raises:
            HostError: its host does not say.

        """
        facts = self.provider.facts(machine.name)
        allocated = machine.allocation.nodes if machine.allocation else []
        return {
            "image": machine.image,
            "bootparameters": machine.boot_parameters,
            "state": machine.state,
            "kernel": facts.kernel,
            "processor": [{"model": facts.model, "cores": facts.cpus, "threads": facts.cpus}],
            "interfaces": self.provider.interfaces(machine.name, allocated),
        }

    async def boot(self, machine: Machine) -> PosNode:
        """Boot a node, again if it was, and give it its variables.

        Raises:
            HostError: its host cannot.
            RunError: its host was lost meanwhile.

        """
        allocation = machine.allocated()
        allocation.save_variables()
        machine.measured()
        name, old = machine.name, machine.node
        wanted = Boot(machine.image, machine.boot_parameters, allocation.nodes, machine.shared)
        await self.provider.prepare(name, wanted, old)
        others = {node: self.machine(node).node for node in allocation.nodes}
        machine.node = self.provider.boot(name, machine.shared, old, others)
        machine.background.clear()
        machine.done.clear()
        allocation.dead.pop(machine.name, None)
        allocation.over = None
        allocation.barriers.back(machine.name)
        machine.bootstrap()
        return machine.node

    async def booted(self, machine: Machine) -> PosNode:
        """Return a node, booted if it was not."""
        return machine.node or await self.boot(machine)

    def off(self, machine: Machine) -> None:
        """Remove a node."""
        machine.measured()
        if machine.node is not None:
            machine.node.end()
        machine.node = machine.allocation = None
        machine.background.clear()
        machine.done.clear()

    def end(self) -> None:
        """Remove all nodes, and the folder."""
        for machine in self:
            self.off(machine)
        self.provider.close()
        shutil.rmtree(self._folder, ignore_errors=True)
