"""Student's interval of a mean, of few values such as one a run: :func:`interval`."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Halvings of an interval: as many as a float has digits.
_STEPS = 60


def interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the interval of the mean of at least two values.

    >>> [round(end, 3) for end in interval([1.0, 2.0, 3.0], 0.95)]
    [-0.484, 4.484]

    """
    reach = critical(len(values) - 1, confidence) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - reach, fmean(values) + reach


def critical(freedom: int, confidence: float) -> float:
    """Return t within which Student's distribution lies with this probability, on both sides.

    >>> round(critical(2, 0.95), 3)
    4.303

    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Return the probability of |T| < t: Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine2 = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine2 * (step - 1) / step
        total += term
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
