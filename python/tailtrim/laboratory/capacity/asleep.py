"""Devices that are later with less load: :func:`asleep`.

Where a packet takes a device the same time at any load, a queue only gets longer with more load
(Lindley's recursion: shorter gaps, later packets). So a median that falls with the load is not
that of a queue: what the device does between packets, falling asleep above all, costs latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from tailtrim.laboratory.capacity.bounds import valid
from tailtrim.verdict import TELLING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.capacity.result import GoalResult
    from tailtrim.laboratory.capacity.trial import TrialResult

#: Shares of the highest lower bound: loads up to the first are low, those up to the second are
#: beyond, and still far from saturation. The curve has two trials in each (0.1, 0.3; 0.5, 0.7).
_LOW, _BEYOND = 0.4, 0.75
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Asleep:
    """Medians in ns of the trials at low loads, up to one load, and of those from another on."""

    low_ns: float
    low_to: int
    high_ns: float
    high_from: int


def asleep(seen: Sequence[TrialResult], goals: Sequence[GoalResult]) -> Asleep | None:
    """Return what trials say of a device that is later with less load; ``None`` if it is not shown.

    Every trial at low load is later than every one beyond, by a quarter (:data:`.TELLING`) in the
    middle. Of devices whose medians differ by a tenth from trial to trial for other reasons, one
    in 80 has that by chance (``tests/capacity/test_asleep.py``).
    """
    most = max((one.lower.load for one in goals if one.lower is not None), default=0)
    halves: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
    for load, trials in valid(seen).items():
        if load <= _BEYOND * most:
            known = [one.median_ns for one in trials if one.median_ns is not None]
            halves[load > _LOW * most].extend((load, ns) for ns in known)
    low, high = halves
    if min(map(len, halves)) < _FEWEST or min(ns for _, ns in low) <= max(ns for _, ns in high):
        return None
    low_ns, high_ns = (median(ns for _, ns in half) for half in halves)
    if low_ns < (1 + TELLING) * high_ns:
        return None
    return Asleep(low_ns, max(low)[0], high_ns, min(high)[0])
