"""HdrHistogram's interval log, format version 1.3: a histogram for each second of the run.

A line has the second's start and length in s, its largest latency in ms and the histogram of its
latencies in **ns**, V2-encoded, compressed and in base64. Seconds count from the first ingress
stamp, which is ``StartTime`` and ``BaseTime`` of the log (of the capture's clock, which need not be
the time of day); a packet belongs to the second in which it entered. Seconds that had traffic but
no samples, such as those of the trim, have an empty histogram.

Read by ``HistogramLogProcessor`` (``-outputValueUnitRatio 1000`` for µs), HistogramLogAnalyzer and
the log readers of the HdrHistogram libraries.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.publishing.export import Conversion, hdr, tables
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tailtrim.publishing.export.tables import Column
    from tailtrim.results import RunDirectory

_SECOND_NS = 1_000_000_000
_NS_PER_MS = 1_000_000

# Packets may be stamped at the egress up to a second before the ingress: clocks that disagree.
_DISORDER_NS = 2 * _SECOND_NS


def write(run: RunDirectory, out: Path, *, significant_digits: int) -> Conversion:
    """Write ``NAME.hlog``, NAME being that of the run directory.

    The samples are read once, a batch at a time: memory does not grow with the run. A run without
    packets gives one empty interval.

    Raises:
        RunDirectoryError: when the samples cannot be read or are not as many as the summary says.
        OutputError: when the file cannot be written.

    """
    summary = run.summary
    start_ns = summary.ingress_tap.first_ns or 0
    path = out / f"{run.name}.hlog"
    negative = recorded = 0

    def empty() -> Any:
        return hdr.histogram_up_to(summary.latency_ns.max, significant_digits=significant_digits)

    with replacing(path) as file:
        file.write(header(start_ns).encode())
        for interval in _intervals(run, start_ns, empty()):
            histogram = empty()
            for latencies, counts in interval.parts:
                negative += hdr.record(histogram, latencies, counts)
            recorded += histogram.get_total_count()
            file.write(line(interval.second, histogram).encode())
        tables.check_samples(run, "sample", recorded + negative)
    return Conversion((path,), hdr.left_out(negative, path))


@dataclass(frozen=True, slots=True)
class _LogInterval:
    """A second and its latencies: coarse ones with their counts, in one or several parts."""

    second: int
    parts: list[tuple[Column, Column]]


def _intervals(run: RunDirectory, start_ns: int, shape: Any) -> Iterator[_LogInterval]:
    """Group the samples by the second in which they entered, ascending.

    Latencies are as coarse as in a histogram like ``shape``, so that open seconds take little room.
    They come in the order in which they left: a second is over when the packets that leave now are
    younger than it by the matching window and some disorder. Should stamps run backwards by more
    than that, the second gets a further interval, which readers add up.
    """
    open_: dict[int, list[tuple[Column, Column]]] = {}
    expected = deque(_seconds_with_traffic(run))

    def over(before: float) -> Iterator[_LogInterval]:
        while expected and expected[0] < before:
            open_.setdefault(expected.popleft(), [])
        for second in sorted(second for second in open_ if second < before):
            yield _LogInterval(second, open_.pop(second))

    for ingress_ns, egress_ns, latency_ns in tables.samples(run):
        if not ingress_ns.size:
            continue
        seconds = (ingress_ns - start_ns) // _SECOND_NS
        order = np.argsort(seconds, kind="stable")
        distinct, starts = np.unique(seconds[order], return_index=True)
        for second, group in zip(
            distinct.tolist(),
            np.split(hdr.coarse(latency_ns[order], shape), starts[1:]),
            strict=True,
        ):
            latencies, counts = np.unique(group, return_counts=True)
            open_.setdefault(second, []).append((latencies, counts))
        young_ns = int(egress_ns.max()) - start_ns - run.summary.window_ns - _DISORDER_NS
        yield from over(young_ns // _SECOND_NS)
    yield from over(math.inf)


def _seconds_with_traffic(run: RunDirectory) -> list[int]:
    seconds, packets = tables.columns(run, "second", "second", "ingress_packets")
    found: list[int] = np.sort(seconds[(packets > 0) & (seconds >= 0)]).tolist()
    # HistogramLogProcessor fails on a log without intervals.
    return found or [0]


def header(start_ns: int) -> str:
    """Return the head of a log whose intervals count from a time of the clock."""
    milliseconds = (start_ns + _NS_PER_MS // 2) // _NS_PER_MS
    start = f"{milliseconds // 1000}.{milliseconds % 1000:03d}"
    date = datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    return (
        "#[Latency in nanoseconds, written by tailtrim]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {start} (seconds since epoch), {date}]\n"
        # Without a base, readers take small stamps for absolute ones and skip them.
        f"#[BaseTime: {start} (seconds since epoch)]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def line(second: int, histogram: Any, *, length_s: int = 1, tag: str = "") -> str:
    """Return the line of an interval, which a tag keeps apart from others at the same time."""
    maximum_ns = histogram.get_max_value()
    if not histogram.get_total_count():
        maximum_ns = 0
    maximum = hdr.fixed(maximum_ns / _NS_PER_MS, 3)
    tagged = f"Tag={tag}," if tag else ""
    encoded = histogram.encode().decode("ascii")
    return f"{tagged}{second}.000,{length_s}.000,{maximum},{encoded}\n"
