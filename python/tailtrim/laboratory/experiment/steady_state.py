"""When a device is steady: nothing changes from the first part of a window to its last.

The test for a change point takes ranks, so it needs no distribution of latencies, and one interval
with an outlier does not decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.change_points import pettitt, pettitt_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

#: Time in s that a device has to be steady: rarer events are not seen. Each window is a
#: capture of its own, so that memory and disk do not grow with the warm-up.
WINDOW_S = 5.0
#: A steady series is taken for one that changes so often at most. That costs one more window.
_LEVEL = 0.05
#: Parts of a window whose latencies are compared. In 4,000 simulations with normal values the test
#: found a change in 2 % of steady windows, in 90 % of those with a step of 2 standard deviations in
#: their middle, and in 80 % of those with a step of 3 after a quarter.
PARTS = 20
#: Smaller changes are not worth another window; by default ``compare`` takes them for none, too.
_MARGIN = 0.01
#: Events that go on as they began are in the last quarter of the readings, too, and there they are
#: not below this share of the largest count. In 20,000 simulated windows of 20 readings with a
#: geometric distribution the rule refused 2 % (mean 10), 4 % (mean 1) and 32 % (mean 0.25) of those
#: that go on: that costs one more window.
_FEW = 0.1
#: The quantiles of each part.
_QUANTILES = {"p50": 0.5, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Window:
    """Observations of a window: latencies in ns, as packets left, and counters.

    Page faults of the device's processes and TLB shootdowns on its CPUs are counted for each
    interval between two readings; ``None`` where there is nothing to count.
    """

    latencies_ns: np.ndarray[Any, Any]
    page_faults: Sequence[int] | None
    shootdowns: Sequence[int] | None

    def unsteady(self) -> list[str]:
        """Return what still changes; nothing of a steady window."""
        told = [
            name
            for name, counts in (
                ("page faults", self.page_faults),
                ("TLB shootdowns", self.shootdowns),
            )
            if counts is not None and not _even(counts)
        ]
        if len(self.latencies_ns) < PARTS:
            return [*told, "too few packets passed"]
        parts = _parts(self.latencies_ns)
        for name, share in _QUANTILES.items():
            if changes([_quantile(part, share) for part in parts]):
                told.append(f"latency ({name})")
        return told


def changes(values: Sequence[float]) -> bool:
    """Whether a series has a change point with another level behind it.

    >>> changes([5.0] * 20)
    False
    >>> changes([9.0] * 10 + [5.0] * 10)
    True
    >>> changes([5.01] * 10 + [5.0] * 10)
    False
    >>> changes([5.0] * 9 + [90.0] + [5.0] * 10)
    False

    """
    point, largest = pettitt(values)
    if pettitt_p(largest, len(values)) >= _LEVEL:
        return False
    before, after = median(values[:point]), median(values[point:])
    return abs(after - before) > _MARGIN * abs(before)


def _even(counts: Sequence[int]) -> bool:
    """Whether events have stopped, or go on as they began.

    So few readings, or so few with events, that the test cannot tell may be those of a start: then
    the last quarter has no events to speak of. Programs that do nothing take a page fault now and
    then, too.
    """
    last = counts[max(1, 3 * len(counts) // 4) :]
    return max(last, default=0) >= _FEW * max(counts, default=0) and not changes(counts)


def _parts(values: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Cut a series into parts of as many values each."""
    import numpy as np  # noqa: PLC0415 - others start without

    return list(np.array_split(values, PARTS))


def _quantile(values: np.ndarray[Any, Any], share: float) -> float:
    """Return the value at rank ceil(share * n)."""
    import numpy as np  # noqa: PLC0415 - others start without

    rank = math.ceil(share * len(values)) - 1
    return float(np.partition(values, rank)[rank])
