"""The buckets that Prometheus has for a distribution: classic ones, and those of native histograms.

A native histogram of schema *s* has 2^s buckets for each doubling. Bucket *i* holds what is above
2^((i-1)/2^s) seconds, up to and with 2^(i/2^s) seconds. Only buckets that hold something are
listed, as spans of neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tailtrim.publishing.export.tables import Column

#: Client libraries of Prometheus keep to so many as well; servers refuse many more.
MOST_BUCKETS = 160
_FINEST, _COARSEST = 8, -4
_NS = 10**9


@dataclass(frozen=True, slots=True)
class NativeSide:
    """The buckets on one side of zero.

    ``spans`` are pairs: how many buckets are passed over, for the first the index where it begins,
    and how many follow.
    """

    spans: tuple[tuple[int, int], ...]
    counts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of buckets."""
        return len(self.counts)


@dataclass(frozen=True, slots=True)
class Buckets:
    """A distribution; ``cumulative`` are upper bounds in ns, and how many are up to there."""

    count: int
    sum_ns: int
    zeros: int
    cumulative: tuple[tuple[int, int], ...]
    schema: int
    negative: NativeSide
    positive: NativeSide


def buckets(latencies_ns: Column, counts: Column) -> Buckets:
    """Put latencies, ascending, and how often each occurred into buckets.

    The schema is the finest with at most :data:`MOST_BUCKETS` buckets.
    """
    above, below = latencies_ns > 0, latencies_ns < 0
    sides = [
        (-latencies_ns[below][::-1], counts[below][::-1]),
        (latencies_ns[above], counts[above]),
    ]
    for schema in range(_FINEST, _COARSEST - 1, -1):
        negative, positive = (_side(values, many, schema) for values, many in sides)
        if negative.size + positive.size <= MOST_BUCKETS:
            break
    return Buckets(
        count=int(counts.sum()),
        # As Python's integers, which do not overflow.
        sum_ns=sum(
            ns * many for ns, many in zip(latencies_ns.tolist(), counts.tolist(), strict=True)
        ),
        zeros=int(counts[latencies_ns == 0].sum()),
        cumulative=_cumulative(latencies_ns, counts),
        schema=schema,
        negative=negative,
        positive=positive,
    )


def _side(values_ns: Column, counts: Column, schema: int) -> NativeSide:
    indices = np.ceil(np.log2(values_ns / _NS) * 2.0**schema).astype(np.int64)
    places, starts = np.unique(indices, return_index=True)
    summed = np.add.reduceat(counts, starts) if places.size else counts[:0]
    spans: list[tuple[int, int]] = []
    # Where the first span begins counts from zero.
    end = 0
    for group in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        if group.size:
            spans.append((int(group[0]) - end, int(group.size)))
            end = int(group[-1]) + 1
    return NativeSide(tuple(spans), tuple(map(int, summed)))


def _cumulative(latencies_ns: Column, counts: Column) -> tuple[tuple[int, int], ...]:
    """Count what is up to 1, 2 and 5 of each decade, from below the smallest to the largest."""
    if not latencies_ns.size:
        return ()
    ranks = np.concatenate([[0], np.cumsum(counts)])
    found = [(0, int(ranks[np.searchsorted(latencies_ns, 0, side="right")]))]
    decade = 1
    while found[-1][0] < latencies_ns[-1]:
        for bound_ns in (decade, 2 * decade, 5 * decade):
            upto = int(ranks[np.searchsorted(latencies_ns, bound_ns, side="right")])
            found.append((bound_ns, upto))
        decade *= 10
    first = next(place for place, (_, upto) in enumerate(found) if upto)
    last = next(place for place, (_, upto) in enumerate(found) if upto == found[-1][1])
    return tuple(found[max(first - 1, 0) : last + 1])
