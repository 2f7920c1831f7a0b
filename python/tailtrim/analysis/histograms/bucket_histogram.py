"""Latencies in buckets: quantiles are intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Percentiles that are told, by their names.
PERCENTILES = {
    "p50": Fraction(50, 100),
    "p90": Fraction(90, 100),
    "p99": Fraction(99, 100),
    "p99.9": Fraction(999, 1000),
    "p99.99": Fraction(9999, 10000),
    "max": Fraction(1),
}


class Bucket(NamedTuple):
    """A number of latencies, each at least ``low_ns`` and at most ``high_ns``."""

    low_ns: int
    high_ns: int
    number: int


@dataclass(frozen=True)
class BucketHistogram:
    """Latencies of one stream, port or tag.

    Args:
        name: of the stream, port or tag, with its tool.
        buckets: those that are not empty, in any order; they may overlap.
        counters: what the tool has counted beside, such as packets that were dropped.
        notes: sentences about what the buckets do not have.

    """

    name: str
    buckets: tuple[Bucket, ...]
    counters: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of latencies."""
        return sum(bucket.number for bucket in self.buckets)

    def quantile(self, share: Fraction) -> tuple[int, int] | None:
        """Return the bounds of a quantile by nearest rank; ``None`` without latencies.

        >>> histogram = BucketHistogram("x", (Bucket(10, 20, 99), Bucket(200, 300, 1)))
        >>> histogram.quantile(Fraction(99, 100)), histogram.quantile(Fraction(1))
        ((10, 20), (200, 300))

        """
        if not self.count:
            return None
        rank = max(1, -int(-share * self.count // 1))
        # So many latencies are at most the upper bound, and fewer are below the lower one.
        low = _at(rank, ((bucket.low_ns, bucket.number) for bucket in self.buckets))
        return low, _at(rank, ((bucket.high_ns, bucket.number) for bucket in self.buckets))

    def as_json(self) -> dict[str, Any]:
        """Return all of it, with the intervals of :data:`PERCENTILES`."""
        intervals = {name: self.quantile(share) for name, share in PERCENTILES.items()}
        return {
            "name": self.name,
            "count": self.count,
            "quantiles": {
                name: {"low_ns": interval[0], "high_ns": interval[1]} if interval else None
                for name, interval in intervals.items()
            },
            "counters": self.counters,
            "notes": list(self.notes),
            "buckets": [bucket._asdict() for bucket in sorted(self.buckets)],
        }


def _at(rank: int, bounds: Iterable[tuple[int, int]]) -> int:
    """Return the bound of the latency of this rank."""
    value = 0
    for value, count in sorted(bounds):  # noqa: B007 - the last one is the answer
        rank -= count
        if rank <= 0:
            break
    return value
