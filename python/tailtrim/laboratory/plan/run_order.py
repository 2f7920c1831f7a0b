"""Boots and devices as blocks: runs of one are together, and blocks are in random order.

Differences between boots, such as where the kernel and its memory are, are the same for all runs
of one boot. So a boot is one observation, however many packets it measures. A device that is
kept up between runs is a block, too; within that of its boot.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tailtrim.laboratory.devices import InlineDevice
from tailtrim.laboratory.nodes import wiring

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tailtrim.laboratory.plan.model import Run

#: Of fewer boots Student's interval has one degree of freedom, or none.
LEAST_BOOTS = 3


def block_of(run: Run) -> Hashable:
    """Return what runs of one boot have in common, and no others."""
    return (run.boot, run.repetition)


def device_of(run: Run) -> Hashable:
    """Return what runs of one device that is kept have in common; ``None`` if it is not kept.

    Ports are set up for the largest frame, and routers for a version of IP.
    """
    dut = run.dut
    if not isinstance(dut, InlineDevice) or dut.lifetime == "run":
        return None
    boot = block_of(run) if run.boot is not None else None
    traffic = run.traffic
    return boot, dut.model_dump_json(), traffic.ip, wiring.mtu(traffic.largest_frame)


def kept(runs: Sequence[Run]) -> int:
    """Return how often devices that are kept are started for runs."""
    return len({device_of(run) for run in runs} - {None})


def booted(runs: Sequence[Run]) -> int:
    """Return how many boots runs take."""
    return len({block_of(run) for run in runs if run.boot is not None})


def arranged(runs: Sequence[Run], seed: int, *, at_random: bool) -> list[Run]:
    """Put runs of a boot together, and within them those of a device that is kept.

    Args:
        runs: in the order of the plan.
        seed: of the random order.
        at_random: the order of boots, and within each that of its devices and runs, is random.

    """
    order = random.Random(seed)  # noqa: S311 - an order, not a secret
    booting = booted(runs) > 0

    def boot_of(run: Run) -> Hashable:
        # A run that does not boot counts as booted by its repetition, unless its device outlives
        # the repetitions.
        outlives = run.boot is None and device_of(run) is not None
        return (device_of(run) if outlives else block_of(run)) if booting else None

    boots = _together(runs, boot_of)
    if at_random:
        order.shuffle(boots)
    ordered = []
    for boot in boots:
        # A device that is started for each run has no other runs to be grouped with.
        devices = _together(boot, lambda run: device_of(run) or id(run))
        if at_random:
            order.shuffle(devices)
        for device in devices:
            if at_random and len(device) > 1:
                order.shuffle(device)
            ordered += device
    return ordered


def _together(runs: Sequence[Run], key: Callable[[Run], Hashable]) -> list[list[Run]]:
    blocks: dict[Hashable, list[Run]] = {}
    for run in runs:
        blocks.setdefault(key(run), []).append(run)
    return list(blocks.values())
