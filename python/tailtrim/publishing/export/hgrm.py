"""HdrHistogram's percentile distribution.

The text is that of ``outputPercentileDistribution`` of the Java original with five ticks for each
half distance: ``Value``, ``Percentile``, ``TotalCount`` and ``1/(1-Percentile)``, then mean,
standard deviation, maximum and the shape of the histogram in lines that begin with ``#[``. Values
are in **microseconds** (ns scaled by 1000) and are the upper ends of their buckets. Comment lines
after it, which readers skip, name the unit and missing data.

Read by HdrHistogram's plotter (choose microseconds there), hdr-plot and wrk2's tools.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tailtrim.publishing.export import Conversion, hdr, tables
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.results import RunDirectory

TICKS_PER_HALF_DISTANCE = 5

_NS_PER_US = 1000
_ALL = 100.0


def write(run: RunDirectory, out: Path, *, significant_digits: int) -> Conversion:
    """Write ``NAME.hgrm``, NAME being that of the run directory.

    A run without samples gives the header and a footer of zeros.

    Raises:
        RunDirectoryError: when the histogram cannot be read.
        OutputError: when the file cannot be written.

    """
    latencies, counts = tables.histogram(run)
    highest = int(latencies[-1]) if latencies.size else None
    histogram = hdr.histogram_up_to(highest, significant_digits=significant_digits)
    negative = hdr.record(histogram, latencies, counts)
    path = out / f"{run.name}.hgrm"
    with replacing(path) as file:
        for line in distribution(histogram, unit_ns=_NS_PER_US):
            file.write(f"{line}\n".encode())
        file.write(b"# tailtrim: values in microseconds\n")
        if negative:
            file.write(f"# tailtrim: {negative} negative latencies are not in here\n".encode())
    return Conversion((path,), hdr.left_out(negative, path))


def distribution(histogram: Any, *, unit_ns: int) -> Iterator[str]:
    """Print an HdrHistogram of ns in units of ``unit_ns``, line by line without line ends."""
    digits = histogram.significant_figures
    found = hdr.buckets(histogram)
    yield f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}"
    yield ""
    for value_ns, percentile, rank in _ticks(found):
        value = hdr.fixed(value_ns / unit_ns, digits)
        line = f"{value:>12} {hdr.fixed(percentile / 100, 12):>2} {rank:>10}"
        if percentile != _ALL:
            line += f" {hdr.fixed(1 / (1 - percentile / 100), 2):>14}"
        yield line
    mean_ns, deviation_ns = _moments(found)
    mean = hdr.fixed(mean_ns / unit_ns, digits)
    deviation = hdr.fixed(deviation_ns / unit_ns, digits)
    maximum = hdr.fixed((found[-1].highest if found else 0) / unit_ns, digits)
    total = histogram.get_total_count()
    shape = histogram.bucket_count, histogram.sub_bucket_count
    yield f"#[Mean    = {mean:>12}, StdDeviation   = {deviation:>12}]"
    yield f"#[Max     = {maximum:>12}, Total count    = {total:>12}]"
    yield f"#[Buckets = {shape[0]:>12}, SubBuckets     = {shape[1]:>12}]"


def _ticks(found: Sequence[hdr.Bucket]) -> Iterator[tuple[int, float, int]]:
    """Value, percentile asked for and count up to the value, at each percentile reported.

    The steps are as many in each half of what remains to 100 %: they shrink towards the tail.
    """
    total = sum(bucket.count for bucket in found)
    percentile = 0.0
    rank = 0
    for bucket in found:
        rank += bucket.count
        while _ALL * rank / total >= percentile:
            yield bucket.highest, percentile, rank
            # In doubles as the original, so that the last digit is the same.
            halvings = int(math.log(_ALL / (_ALL - percentile)) / math.log(2)) + 1
            percentile += _ALL / (TICKS_PER_HALF_DISTANCE * 2**halvings)
            if rank == total:
                yield bucket.highest, _ALL, total
                return


def _moments(found: Sequence[hdr.Bucket]) -> tuple[float, float]:
    """Mean and standard deviation of the values as HdrHistogram keeps them."""
    total = sum(bucket.count for bucket in found)
    if not total:
        return 0.0, 0.0
    mean = sum(bucket.median * bucket.count for bucket in found) / total
    squares = sum((bucket.median - mean) ** 2 * bucket.count for bucket in found)
    return mean, math.sqrt(squares / total)
