"""A number of several runs, with Student's interval over the runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from tailtrim.student import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Of each interval alone.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over runs; a single run has no interval."""

    value: float
    low: float | None
    high: float | None
    runs: int


def spread_of(values: Sequence[float]) -> Spread:
    """Return the geometric mean of positive numbers.

    >>> spread = spread_of([80.0, 100.0, 125.0])
    >>> round(spread.value, 2), round(spread.low, 2), round(spread.high, 2)
    (100.0, 57.45, 174.08)

    """
    logs = [math.log(one) for one in values]
    ends = interval(logs, CONFIDENCE) if len(logs) > 1 else ()
    low, high = (math.exp(end) for end in ends) if ends else (None, None)
    return Spread(math.exp(fmean(logs)), low, high, len(logs))
