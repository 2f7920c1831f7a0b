"""HdrHistogram from exact latencies, and numbers as its Java original prints them.

Recording, bucket bounds and the V2 encoding are those of the ``hdrhistogram`` package. Its text
output is not used: other than the Java original it does not scale the standard deviation, writes
the total count as a fraction and reports other percentiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from hdrh.histogram import HdrHistogram

from tailtrim.errors import RunDirectoryError
from tailtrim.results.summary import Notice

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.publishing.export.tables import Column


@dataclass(frozen=True, slots=True)
class Bucket:
    """Values that HdrHistogram does not keep apart: the bounds, both inclusive, and the count."""

    lowest: int
    highest: int
    count: int

    @property
    def median(self) -> int:
        """Value that HdrHistogram takes for all values of the bucket."""
        return self.lowest + ((self.highest - self.lowest + 1) >> 1)


def histogram_up_to(highest_ns: int | None, *, significant_digits: int) -> Any:
    """Make an empty HdrHistogram of values from 0 to ``highest_ns``."""
    return HdrHistogram(1, max(highest_ns or 0, 2), significant_digits)


def coarse(latencies: Column, histogram: Any) -> Column:
    """Replace latencies in ns by the lowest of those that the histogram does not keep apart.

    The histogram stays the same, and there are far fewer values to record. Negative ones are kept.
    """
    _, bits = np.frexp(latencies)
    # A bucket of width 2^n begins at a multiple of it.
    width_bits = bits - (histogram.sub_bucket_count.bit_length() - 1)
    width_bits = np.where(latencies < 0, 0, np.maximum(width_bits, 0)).astype(np.int64)
    lowest: Column = latencies >> width_bits << width_bits
    return lowest


def record(histogram: Any, latencies: Column, counts: Column) -> int:
    """Record latencies in ns with their counts.

    Returns:
        How many latencies were left out because they are negative. Zero can be recorded.

    Raises:
        RunDirectoryError: when a latency is above what the histogram was made for.

    """
    negative = latencies < 0
    for latency, count in zip(
        latencies[~negative].tolist(), counts[~negative].tolist(), strict=True
    ):
        if not histogram.record_value(latency, count):
            message = f"a latency of {latency} ns is above the maximum in summary.json"
            raise RunDirectoryError(message)
    return int(counts[negative].sum())


def buckets(histogram: Any) -> list[Bucket]:
    """List the buckets that are not empty, ascending."""
    # The iterators of the package visit every empty bucket: seconds, with five digits.
    counts = np.ctypeslib.as_array(histogram.counts)
    found = []
    for index in np.flatnonzero(counts).tolist():
        lowest = histogram.get_value_from_index(index)
        highest = histogram.get_highest_equivalent_value(lowest)
        found.append(Bucket(lowest, highest, int(counts[index])))
    return found


def fixed(value: float, decimals: int) -> str:
    """Print a number as Java does, which rounds halves of the shortest decimal up.

    >>> fixed(0.125, 2), f"{0.125:.2f}"
    ('0.13', '0.12')
    """
    shortest = Decimal(repr(value))
    return f"{shortest.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}"


def left_out(count: int, path: Path) -> tuple[Notice, ...]:
    """Say how many latencies are missing in a file because they are negative."""
    if not count:
        return ()
    text = (
        f"{count} latencies are negative and not in {path.name}: "
        "HdrHistogram records no values below zero"
    )
    return (Notice("negative", count, text),)
