"""Change points of a series: steps to another level, and drifts.

The test for a step is that of Pettitt (1979), "A non-parametric approach to the change-point
problem", Applied Statistics 28, 126-135; that for a drift is that of Mann (1945) and Kendall
(1975), and the slope that of Theil (1950) and Sen (1968). All take ranks or medians, so they need
no distribution, and one outlier does not decide. Values that depend on those before them say less
than independent ones: variances grow by (1 + r)/(1 - r), where r is the correlation of neighbours
(Bayley and Hammersley, 1946).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.verdict import BETTER, NO_DIFFERENCE, TELLING, WORSE, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    Series = np.ndarray[Any, np.dtype[np.float64]]
    Places = np.ndarray[Any, np.dtype[np.intp]]
    Values = Sequence[float] | Series

#: A series without a change is taken for one that changes so often at most, by each test.
_LEVEL = 0.01
#: Shorter parts are not looked at: the correlation of neighbours is not known of them.
SHORTEST = 20
#: Smaller changes are not told; by default ``compare`` takes them for none, too.
_MARGIN = 0.01
#: Halvings of the range of changes that are planted: from 1 to 1,000 %, to 3 % of a change.
_HALVINGS = 8
#: Of more values, only so many are compared with each other; means of neighbours stand for them.
_MOST = 1_500
#: Digits of a value that are not rounding errors.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Step:
    """Another level from a place on: medians of the values before it and behind it.

    ``by`` is their difference; with a drift it is that of the values without the drift.
    """

    at: int
    before: float
    after: float
    by: float

    @property
    def verdict(self) -> Verdict:
        """The verdict on the values behind it, of which smaller ones are better."""
        return Verdict(verdict=WORSE if self.by > 0 else BETTER)


@dataclass(frozen=True, slots=True)
class Drift:
    """A series that rises or falls from ``begin`` to ``end``, by so much from place to place."""

    begin: int
    end: int
    slope: float

    @property
    def verdict(self) -> Verdict:
        """The verdict on what comes later, of which smaller values are better."""
        return Verdict(verdict=WORSE if self.slope > 0 else BETTER)


def pettitt(values: Values) -> tuple[int, float]:
    """Return where the values behind differ most from those before, and Pettitt's K."""
    series = np.asarray(values, dtype=float)
    if len(series) < 2:  # noqa: PLR2004 - two parts
        return 0, 0.0
    # Of each value against each one behind: U(t) = 2 * sum of the first t ranks - t * (n + 1).
    sums = 2 * np.cumsum(_ranks(series)) - np.arange(1, len(series) + 1) * (len(series) + 1)
    at = int(np.argmax(np.abs(sums[:-1])))
    return at + 1, float(abs(sums[at]))


def pettitt_p(largest: float, count: int, inflation: float = 1.0) -> float:
    """Return how often so many values without a change have such a K at least, approximately."""
    return 2 * math.exp(-6 * largest**2 / (inflation * (count**3 + count**2) or 1.0))


def changes(values: Values) -> list[Step | Drift]:
    """Return the steps and drifts of a series, in order of where they are or begin.

    Values that are NaN are left out.
    """
    series = np.asarray(values, dtype=float)
    places = np.flatnonzero(~np.isnan(series))
    values = series[places]
    found = _changes(values, values, places)
    return sorted(found, key=lambda one: one.at if isinstance(one, Step) else one.begin)


def unchanged(values: Values) -> Verdict:
    """Return what a series in which no change was found could show.

    A step in its middle, or a drift from its begin to its end, would have been found if it were
    larger than ``beyond``: in these very values, both upwards and downwards.
    """
    series = np.asarray(values, dtype=float)
    places = np.flatnonzero(~np.isnan(series))
    series = series[places]
    if len(series) < SHORTEST:
        return Verdict(needed=SHORTEST)
    low, high = math.log(_MARGIN), math.log(10.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = _finds(series, places, math.exp(middle))
        low, high = (low, middle) if found else (middle, high)
    beyond = math.exp(high)
    if beyond <= TELLING:
        return Verdict(verdict=NO_DIFFERENCE, beyond=beyond)
    # Standard errors shrink with the square root of the number of values.
    return Verdict(needed=math.ceil(len(series) * (beyond / TELLING) ** 2))


def _finds(series: Series, places: Places, by: float) -> bool:
    """Whether changes of this size, planted in a series, are found."""
    half = np.arange(len(series)) >= len(series) / 2
    along = (places - places[0]) / (places[-1] - places[0])
    return all(
        _step(series * (1 + change * half))[0] is not None
        and _drift(series * (1 + change * along), places)[0] is not None
        for change in (by, 1 / (1 + by) - 1)
    )


def _changes(series: Series, seen: Series, places: Places) -> list[Step | Drift]:
    """Return the changes of a series, which is what was seen at these places, without a drift."""
    if len(series) < SHORTEST:
        return []
    at, left = _step(series)
    slope, along = _drift(series, places)
    if at is None and slope is None:
        return []
    if slope is not None and (at is None or np.abs(along).sum() < np.abs(left).sum()):
        drift = Drift(int(places[0]), int(places[-1]), slope)
        others = _changes(along + np.median(series), seen, places)
        return [drift, *(one for one in others if isinstance(one, Step))]
    assert at is not None  # noqa: S101 - one of both was found
    before, after = float(np.median(seen[:at])), float(np.median(seen[at:]))
    by = float(np.median(series[at:]) - np.median(series[:at]))
    parts = (slice(at), slice(at, None))
    beside = [one for part in parts for one in _changes(series[part], seen[part], places[part])]
    return [Step(int(places[at]), before, after, by), *beside]


def _step(series: Series) -> tuple[int | None, Series]:
    """Return where another level begins, if anywhere, and the values without it."""
    at, largest = pettitt(series)
    before, after = np.median(series[:at]), np.median(series[at:])
    left = np.concatenate([series[:at] - before, series[at:] - after])
    if abs(after - before) <= _MARGIN * abs(before):
        return None, left
    small = pettitt_p(largest, len(series), _inflation(left, series)) < _LEVEL
    return (at if small else None), left


def _drift(series: Series, places: Places) -> tuple[float | None, Series]:
    """Return the slope of a series from place to place, if it has any, and the values without."""
    width = -(-len(series) // _MOST)
    short, at = (
        row[: len(row) // width * width].reshape(-1, width).mean(axis=1) for row in (series, places)
    )
    count = len(short)
    one, other = np.triu_indices(count, 1)
    rises = short[other] - short[one]
    slope = float(np.median(rises / (at[other] - at[one])))
    along = series - slope * places
    inflation = _inflation(short - slope * at, short)
    deviation = math.sqrt(inflation * count * (count - 1) * (2 * count + 5) / 18)
    p = math.erfc(abs(float(np.sign(rises).sum())) / deviation / math.sqrt(2))
    span = float(places[-1] - places[0]) + 1
    told = abs(slope) * span > _MARGIN * abs(float(np.median(series)))
    return (slope if told and p < _LEVEL else None), along - np.median(along)


def _inflation(left: Series, series: Series) -> float:
    """Return by how much dependence makes a variance larger, from what a change leaves."""
    # Rounding errors of a subtraction are no differences: they may depend on each other.
    unit = float(np.abs(series).max()) or 1.0
    ranks = _ranks(np.round(left / unit, _DIGITS))
    ranks -= ranks.mean()
    squares = float((ranks**2).sum())
    r = float((ranks[1:] * ranks[:-1]).sum()) / squares if squares else 0.0
    # Estimates from n values are too small by (1 + 3 r)/n on average (Marriott and Pope, 1954).
    count = len(left)
    r = min(max(r + (1 + 3 * r) / count, 0.0), 1 - 2 / count)
    return (1 + r) / (1 - r)


def _ranks(series: Series) -> Series:
    """Return the rank of each value from 1; equal values have the mean of their ranks.

    In order of time, equal values would look as if each depended on the one before it.
    """
    order = np.argsort(series, kind="stable")
    _, first, counts = np.unique(series[order], return_index=True, return_counts=True)
    ranks = np.empty(len(series))
    ranks[order] = np.repeat(first + (counts + 1) / 2, counts)
    return ranks
