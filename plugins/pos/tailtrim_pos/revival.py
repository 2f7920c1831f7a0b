"""Nodes that died in a run: they are booted again, once for each run, and the run is repeated."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, RunError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tailtrim_pos.allocation import Allocation
    from tailtrim_pos.journal import Journal
    from tailtrim_pos.node_registry import Machine, NodeRegistry


class Revival:
    """Brings nodes back, with what the script had done on them."""

    def __init__(
        self, machines: NodeRegistry, journal: Journal, boot: Callable[[Machine], Awaitable[None]]
    ) -> None:
        """Bring nodes back by ``boot``, and record that in the journal."""
        self._machines, self._journal, self._boot = machines, journal, boot
        self._one = asyncio.Lock()

    async def due(self, allocation: Allocation, number: int) -> bool:
        """Whether an attempt at a run has to be repeated; then the nodes are there again.

        Raises:
            RunError: one cannot be used again.

        """
        if not allocation.dead:
            return False
        why = "; ".join(f"{name}: {told}" for name, told in allocation.dead.items())
        place = {"allocation": allocation.number, "run": number}
        self._journal.add({"event": "repeated", **place, "why": why})
        await self.revived(allocation)
        return True

    async def revived(self, allocation: Allocation) -> None:
        """Boot the nodes that died, if any, and do there what had been done.

        Raises:
            RunError: one cannot be used again, now or before.

        """
        async with self._one:
            for name, why in list(allocation.dead.items()):
                if allocation.over is None:
                    try:
                        await self._revived(self._machines.machine(name))
                    except (HostError, RunError) as error:
                        allocation.dead[name] = why
                        allocation.over = f"{name}: {why}, and cannot be used again: {error}"
            if allocation.over is not None:
                raise RunError(allocation.over)

    async def _revived(self, machine: Machine) -> None:
        done, known, run = list(machine.done), machine.cached, machine.run
        await self._boot(machine)
        # As it was for the commands before: variables set since are seen with --remote only.
        machine.cached, machine.run, machine.catching_up = known, None, True
        try:
            for again in done:
                await again()
        finally:
            machine.done, machine.run, machine.catching_up = done, run, False
