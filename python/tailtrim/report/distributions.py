"""Figures of distributions: by percentile, histogram, cumulative, inter-packet gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report import units
from tailtrim.report.binning import binned, edges, thinned, width_ns
from tailtrim.report.figure import Axis, Band, Figure, Interval, Line, Panel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.report.figure import Integers
    from tailtrim.report.run import Run

_PACKETS = "Packets"


def percentiles(runs: Sequence[Run]) -> Figure | None:
    """Latency over 1/(1 - p), as HDR histograms are drawn."""
    runs = _measured(runs)
    if not runs:
        return None
    most = max(run.summary.samples for run in runs)
    y = _latency_axis(runs)
    x = Axis("Percentile", "nines", 1.0, 1.25 * max(most, 10))
    confidence = ", ".join(
        sorted({f"{units.percent(run.summary.latency_ns.confidence)} %" for run in runs})
    )
    return Figure(
        key="hdr",
        title="Latency by percentile",
        caption=(
            "Stepped as the samples are, and ending where they end. The band is the"
            f" {confidence} confidence interval of each percentile; where the samples give no upper"
            " bound, it lies below the line only and the line is paler. Marks are the listed"
            " percentiles, hollow where they are not supported."
        ),
        panels=(
            Panel(
                x,
                y,
                tuple(line for run in runs for line in _percentile_lines(run, x, y)),
                tuple(interval for run in runs for interval in _intervals(run, y)),
                tuple(band for run in runs for band in _bands(run, y)),
            ),
        ),
    )


def _percentile_lines(run: Run, x: Axis, y: Axis) -> Iterator[Line]:
    """Yield the quantile function: rank r of N holds from 1/(1 - (r - 1)/N) on."""
    latencies, counts = run.histogram
    samples = int(counts.sum())
    above = samples - (np.cumsum(counts) - counts)
    at = np.append(samples / above, float(samples))
    value = np.append(latencies, latencies[-1]) / y.unit_ns
    limit = _supported_to(run)
    split = int(np.searchsorted(at, limit, side="right"))
    joint = value[max(split - 1, 0)]
    if limit > 1:
        solid = np.append(at[:split], min(limit, samples)), np.append(value[:split], joint)
        yield Line(run.index, *thinned(*solid, x, y))
    if limit < samples:
        pale = np.append(limit, at[split:]), np.append(joint, value[split:])
        yield Line(run.index, *thinned(*pale, x, y), faded=True)


def _supported_to(run: Run) -> float:
    """Return 1/(1 - p) of the last percentile of which the samples give both bounds."""
    curve = run.curve()
    if curve is not None:
        at, _, _, high_ns = curve
        bounded = at[~np.isnan(high_ns)]
        return float(bounded[-1]) if bounded.size else 1.0
    quantiles = run.summary.latency_ns.quantiles
    return max((units.nines(q.p) for q in quantiles if q.supported), default=1.0)


def _intervals(run: Run, y: Axis) -> Iterator[Interval]:
    for quantile in run.summary.latency_ns.quantiles:
        at = units.nines(quantile.p)
        if quantile.value is not None and at <= run.summary.samples:
            yield Interval(
                run.index,
                at,
                quantile.value / y.unit_ns,
                None if quantile.low is None else quantile.low / y.unit_ns,
                None if quantile.high is None else quantile.high / y.unit_ns,
            )


def _bands(run: Run, y: Axis) -> Iterator[Band]:
    curve = run.curve()
    if curve is not None:
        within = curve[0] <= run.summary.samples
        at, *times_ns = (column[within] for column in curve)
        yield Band(run.index, at, *(column / y.unit_ns for column in times_ns))


def histogram(runs: Sequence[Run]) -> Figure | None:
    """How often each latency occurred."""
    runs = _measured(runs)
    if not runs:
        return None
    x = _latency_axis(runs)
    panel, bins = _histogram(x, [(run.index, *run.histogram) for run in runs])
    return Figure(
        key="histogram",
        title="Latency histogram",
        caption=f"{bins}; an empty bin lies at the foot of the axis.",
        panels=(panel,),
    )


def gaps(runs: Sequence[Run]) -> Figure | None:
    """Inter-packet gaps at both taps."""
    taps = {run.index: run.gaps() for run in runs}
    known = [gaps for tap in taps.values() for gaps, _ in tap.values() if gaps.size]
    if not known:
        return None
    limits = min(int(gaps[0]) for gaps in known), max(int(gaps[-1]) for gaps in known)
    x = Axis.of_times("Gap to the packet before", *limits)
    panels = []
    for tap in ("ingress", "egress"):
        rows = [(run, *by_tap[tap]) for run, by_tap in taps.items() if by_tap[tap][0].size]
        if rows:
            panel, bins = _histogram(x, rows, title=tap.capitalize())
            panels.append(panel)
    return Figure(
        key="gaps",
        title="Inter-packet gaps",
        caption=f"Before (ingress) and after (egress) the device under test. {bins}.",
        panels=tuple(panels),
    )


def _histogram(
    x: Axis, rows: Sequence[tuple[int, Integers, Integers]], *, title: str = ""
) -> tuple[Panel, str]:
    low = min(int(values[0]) for _, values, _ in rows)
    high = max(int(values[-1]) for _, values, _ in rows)
    bins = edges(low, high, x)
    heights = [(run, *binned(values, counts, bins)) for run, values, counts in rows]
    most = max(int(counts.max()) for _, _, counts in heights)
    panel = Panel(
        x,
        Axis.of_counts(_PACKETS, most, scale="log"),
        tuple(Line(run, at / x.unit_ns, counts.astype(float)) for run, at, counts in heights),
        title=title,
    )
    if x.scale == "log":
        return panel, "100 bins a decade"
    return panel, f"Bins of {units.time(width_ns(low, high))}"


def cumulative(runs: Sequence[Run]) -> Figure | None:
    """Share of the packets with at most a latency."""
    runs = _measured(runs)
    if not runs:
        return None
    x = _latency_axis(runs)
    y = Axis("Share of packets (%)", "linear", 0.0, 102.0)
    lines = []
    for run in runs:
        latencies, counts = run.histogram
        share = np.cumsum(counts) * 100.0 / counts.sum()
        points = np.append(latencies[0], latencies) / x.unit_ns, np.append(0.0, share)
        lines.append(Line(run.index, *thinned(*points, x, y)))
    return Figure(
        key="cdf",
        title="Cumulative distribution",
        caption=(
            "Share of the packets with at most a latency: steep where many packets have the same"
            " one, flat where none has."
        ),
        panels=(Panel(x, y, tuple(lines)),),
    )


def _measured(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if run.histogram[0].size]


def _latency_axis(runs: Sequence[Run]) -> Axis:
    return Axis.of_times(
        "Latency",
        min(int(run.histogram[0][0]) for run in runs),
        max(int(run.histogram[0][-1]) for run in runs),
        typical_ns=min(map(_median, runs)),
    )


def _median(run: Run) -> int:
    latencies, counts = run.histogram
    up_to = np.cumsum(counts)
    return int(latencies[np.searchsorted(up_to, (up_to[-1] + 1) // 2)])
