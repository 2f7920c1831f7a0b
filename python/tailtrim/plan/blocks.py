"""Boots as blocks: runs of one boot are together, and boots are in random order.

What differs from boot to boot, such as where the kernel and its memory are, is the same for all
runs of one boot. So a boot is one observation, however many packets it measures.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tailtrim.plan.model import Run

#: Of fewer boots Student's interval has one degree of freedom, or none.
LEAST_BOOTS = 3


def block_of(run: Run) -> Hashable:
    """Return what runs of one boot have in common, and no others."""
    return (run.boot, run.repetition)


def booted(runs: Sequence[Run]) -> int:
    """Return how many boots runs take."""
    return len({block_of(run) for run in runs if run.boot is not None})


def arranged(runs: Sequence[Run], seed: int, *, at_random: bool) -> list[Run]:
    """Put runs of a boot together.

    Args:
        runs: in the order of the plan.
        seed: of the random order.
        at_random: the order of boots, and within each that of its runs, is random.

    """
    blocks: dict[Hashable, list[Run]] = {}
    for run in runs:
        blocks.setdefault(block_of(run), []).append(run)
    ordered = list(blocks.values())
    if at_random:
        order = random.Random(seed)  # noqa: S311 - an order, not a secret
        order.shuffle(ordered)
        for block in ordered:
            order.shuffle(block)
    return [run for block in ordered for run in block]
