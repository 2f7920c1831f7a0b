"""State of an experiment while its script runs: allocations, nodes and commands."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import PlanError
from tailtrim_pos import naming
from tailtrim_pos.allocation import Allocation, write
from tailtrim_pos.experiment import HOST_IMAGE
from tailtrim_pos.jobs import Job, Jobs, RunEnded
from tailtrim_pos.layout import HARDWARE, TOPOLOGY, Layout, Published
from tailtrim_pos.naming import now
from tailtrim_pos.node_registry import Machine, NodeRegistry
from tailtrim_pos.revival import Revival

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tailtrim_pos.experiment import PosExperiment
    from tailtrim_pos.journal import Journal


class Session:
    """State of an experiment while its script runs; the journal has what outlives it.

    Args:
        folder: for sockets.
        experiment: as it is asked for.
        journal: of what was run.
        told: is called when a run has ended.

    """

    def __init__(
        self,
        folder: Path,
        experiment: PosExperiment,
        journal: Journal,
        told: Callable[[RunEnded], None],
    ) -> None:
        """Begin without allocations."""
        self.journal, self.experiment = journal, experiment
        self.machines = NodeRegistry(folder, experiment.nodes)
        self.jobs = Jobs(
            self.machines,
            experiment,
            journal,
            Revival(self.machines, journal, self.boot),
            told,
        )
        self.allocations: dict[int, Allocation] = {}
        #: All allocations, also those that were freed.
        self.results: list[Allocation] = []
        #: Reasons not to trust results: nodes could not be set up as asked.
        self.doubts: list[str] = []
        self._later: set[asyncio.Task[Any]] = set()

    def allocate(self, machines: list[Machine]) -> Allocation:
        """Make an allocation; when resumed, with the result folder that it had."""
        number = len(self.results) + 1
        if number <= len(self.journal.folders):
            folder = Path(self.journal.folders[number - 1])
        else:
            way = self.journal.folder / "results" / getpass.getuser() / "default"
            folder = (way / now()).absolute()
            self.journal.add({"event": "allocation", "folder": str(folder)})
        names = [machine.name for machine in machines]
        layout = Layout(folder, self.experiment.published)
        allocation = Allocation(number, names, layout, self.jobs.doing)
        self.allocations[number] = allocation
        self.results.append(allocation)
        for machine in machines:
            machine.allocation = allocation
        return allocation

    def known(self, name: str) -> Allocation | None:
        """Return the allocation of an ID or of a node; ``None`` if unknown."""
        if name.isdigit():
            return self.allocations.get(int(name))
        return next((a for a in self.allocations.values() if name in a.nodes), None)

    def allocation(self, name: str) -> Allocation:
        """Return the allocation of an ID or of a node.

        Raises:
            PlanError: it is unknown.

        """
        found = self.known(name)
        if found is None:
            raise PlanError(f"{name}: Resource is neither allocation nor node of one")
        return found

    def named(self, name: str) -> list[Machine]:
        """Return the node of a name, or the nodes of a role."""
        for allocation in self.allocations.values():
            if name in allocation.roles:
                return [self.machines.machine(node) for node in allocation.roles[name]]
        return [self.machines.machine(name)]

    def job(self, number: str) -> Job:
        """Return a command by its ID.

        Raises:
            PlanError: it is unknown.

        """
        found = self.jobs.all.get(int(number)) if number.isdigit() else None
        if found is None:
            raise PlanError(f"unknown command {number!r}, expected an ID that launch printed")
        return found

    def set_image(self, machine: Machine, image: str) -> None:
        """Set the image with which a node boots.

        Raises:
            PlanError: nodes cannot have it.

        """
        if not self.experiment.has_image(image):
            known = f"expected one of {', '.join((HOST_IMAGE, *self.experiment.images))}"
            told = f"{known} (--image NAME has the host's files stand in for one)"
            raise PlanError(f"{machine.name}: unknown image {image!r}: {told}")
        machine.image = image

    async def boot(self, machine: Machine) -> None:
        """Boot a node, again if it was, and describe it in the results.

        Raises:
            HostError: it cannot be booted.
            RunError: its host was lost meanwhile.

        """
        layout = machine.allocated().layout
        ignored = self.experiment.nodes.ignores(machine.boot_parameters)
        if ignored:
            self.note(machine, f"boot parameters not applied: {ignored}")
        base = layout.scripts(machine.name) / f"{now()}_reset"
        await self.machines.boot(machine)
        facts = self.machines.described(machine)
        write(base.with_name(f"{base.name}.command"), facts)
        base.with_name(f"{base.name}.status").write_text(naming.FINISHED, "utf-8")
        if layout.published is Published.NEW:
            write(layout.config / machine.name / TOPOLOGY, facts.pop("interfaces"))
            write(layout.config / machine.name / HARDWARE, facts)

    def later(self, machine: Machine, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Queue work on a node, behind the commands that it was given."""

        async def queued() -> None:
            async with machine.queue:
                await work()

        task = asyncio.ensure_future(queued())

        def ended(task: asyncio.Task[None]) -> None:
            self._later.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self.note(machine, str(error) or type(error).__name__)

        self._later.add(task)
        task.add_done_callback(ended)
        return task

    def note(self, machine: Machine, doubt: str) -> None:
        """Record a reason not to trust results."""
        told = f"{machine.name}: {doubt}"
        if told not in self.doubts:
            self.doubts.append(told)

    async def free(self, allocation: Allocation) -> None:
        """End the commands and the nodes of an allocation."""
        for job in self.jobs.active():
            if job.machine.allocation is allocation:
                await self.jobs.abort(job)
        for machine in self.machines:
            if machine.allocation is allocation:
                for process in machine.background.values():
                    await process.stop()
                self.machines.off(machine)
        self.allocations.pop(allocation.number, None)

    async def finished(self) -> None:
        """Wait for commands that the script did not wait for: it launches no others any more."""
        while active := self.jobs.active():
            busy = {job.machine.name for job in active}
            for machine in self.machines:
                if machine.allocation is not None and machine.name not in busy:
                    why = "no command runs there, and the script has ended"
                    machine.allocation.barriers.ended(machine.name, why)
            tasks = [job.task for job in active if job.task]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if self._later:
            await asyncio.wait(self._later)

    async def end(self) -> None:
        """End everything."""
        for allocation in list(self.allocations.values()):
            await self.free(allocation)
        self.machines.end()
