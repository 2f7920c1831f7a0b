"""Quantiles along the whole curve, by nearest rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tailtrim.report.arrays import Floats, Integers

#: Points of a line in a decade.
_FINE = 120


def places(samples: int) -> Floats:
    """Return where on an axis of 1/(1 - p) so many samples have quantiles."""
    count = max(2, int(_FINE * np.log10(max(samples, 2))))
    at: Floats = np.logspace(0, np.log10(max(samples, 2)), count)
    return at


def quantiles(x: Floats, values: Integers, up_to: Integers) -> Floats:
    """Return the quantiles at 1 - 1/x of values, ascending, of which so many are at most each."""
    samples = int(up_to[-1])
    ranks = np.clip(samples - np.floor(samples / x), 1, samples)
    found: Floats = values[np.searchsorted(up_to, ranks)].astype(np.float64)
    return found
