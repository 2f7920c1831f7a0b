"""Figures of distributions: histogram, cumulative, inter-packet gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures.figure import Axis, Figure, Line, Panel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.publishing.report.inputs.run_tables import Floats, Integers, ReportedRun

_PACKETS = "Packets in a bin"
# Finer than the pixels of any screen or column of paper.
_CELLS = 1500

# Enough for the shape; in more, rare latencies are a comb of single packets.
_MOST_BINS = 150
_SMALLEST_BIN_NS = 10
_BINS_A_DECADE = 25


def histogram(runs: Sequence[ReportedRun]) -> Figure | None:
    """Frequency of each latency."""
    runs = measured(runs)
    if not runs:
        return None
    x = latency_axis(runs)
    rows = [(run.index, *run.histogram) for run in runs]
    limits = min(int(row[1][0]) for row in rows), max(int(row[1][-1]) for row in rows)
    panel, bins = _histogram(x, rows, limits)
    return Figure(
        key="histogram",
        title="Latency histogram",
        caption=f"{bins}; an empty bin lies at the foot of the axis.",
        panels=(panel,),
    )


def gaps(runs: Sequence[ReportedRun]) -> Figure | None:
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
            panel, bins = _histogram(x, rows, limits, title=tap.capitalize())
            panels.append(panel)
    return Figure(
        key="gaps",
        title="Inter-packet gaps",
        caption=f"Before (ingress) and after (egress) the device under test. {bins}.",
        panels=tuple(panels),
    )


def _histogram(
    x: Axis,
    rows: Sequence[tuple[int, Integers, Integers]],
    limits: tuple[int, int],
    *,
    title: str = "",
) -> tuple[Panel, str]:
    bins = edges(*limits, x)
    heights = [(run, *binned(values, counts, bins)) for run, values, counts in rows]
    most = max(int(counts.max()) for _, _, counts in heights)
    panel = Panel(
        x,
        Axis.of_counts(_PACKETS, most, scale="log", unit="packets"),
        tuple(Line(run, at / x.unit_ns, counts.astype(float)) for run, at, counts in heights),
        title=title,
    )
    if x.scale == "log":
        return panel, "25 bins a decade"
    return panel, f"Bins of {units.time(width_ns(*limits))}"


def cumulative(runs: Sequence[ReportedRun]) -> Figure | None:
    """Share of the packets with at most a latency."""
    runs = measured(runs)
    if not runs:
        return None
    x = latency_axis(runs)
    y = Axis("Share of packets (%)", "linear", 0.0, 102.0, unit="%")
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


def measured(runs: Sequence[ReportedRun]) -> list[ReportedRun]:
    """Return the runs that have latencies."""
    return [run for run in runs if run.histogram[0].size]


def latency_axis(runs: Sequence[ReportedRun]) -> Axis:
    """Return the axis on which the latencies of all runs are, whichever way a figure turns it."""
    return Axis.of_times(
        "Latency",
        min(int(run.histogram[0][0]) for run in runs),
        max(int(run.histogram[0][-1]) for run in runs),
        typical_ns=min(map(_median, runs)),
    )


def _median(run: ReportedRun) -> int:
    latencies, counts = run.histogram
    up_to = np.cumsum(counts)
    return int(latencies[np.searchsorted(up_to, (up_to[-1] + 1) // 2)])


def thinned(x: Floats, y: Floats, x_axis: Axis, y_axis: Axis) -> tuple[Floats, Floats]:
    """Drop the points of a monotone line that fall into the same cell as the one before."""
    if not x.size:
        return x, y
    column = np.floor(_place(x, x_axis) * _CELLS)
    row = np.floor(_place(y, y_axis) * _CELLS)
    keep = np.ones(x.size, dtype=bool)
    keep[1:] = (np.diff(column) != 0) | (np.diff(row) != 0)
    keep[-1] = True
    return x[keep], y[keep]


def _place(values: Floats, axis: Axis) -> Floats:
    """Return where on the axis values lie, from 0 to 1."""
    if axis.scale == "linear":
        return (values - axis.low) / (axis.high - axis.low)
    low, high = np.log10(axis.low), np.log10(axis.high)
    place: Floats = (np.log10(values) - low) / (high - low)
    return place


def edges(low_ns: int, high_ns: int, axis: Axis) -> Integers:
    """Return the edges of bins from ``low_ns`` to beyond ``high_ns``.

    On a linear axis they are 10 ns apart, or the next of 20, 50, … that needs at most 150; on a
    logarithmic one there are 25 in each decade.
    """
    if axis.scale == "log":
        first, last = np.floor(np.log10(low_ns) * _BINS_A_DECADE), np.log10(high_ns + 1)
        exponents = np.arange(first, np.ceil(last * _BINS_A_DECADE) + 1) / _BINS_A_DECADE
        return np.unique(np.round(10.0**exponents).astype(np.int64))
    width = width_ns(low_ns, high_ns)
    return np.arange(low_ns // width, high_ns // width + 2, dtype=np.int64) * width


def width_ns(low_ns: int, high_ns: int) -> int:
    """Return the width of bins on a linear axis."""
    power = _SMALLEST_BIN_NS
    while True:
        for step in (1, 2, 5):
            if (high_ns - low_ns) // (step * power) < _MOST_BINS:
                return step * power
        power *= 10


def binned(values: Integers, counts: Integers, bins: Integers) -> tuple[Integers, Integers]:
    """Return where the count changes, and the count from there on; zero before and after."""
    places = np.searchsorted(bins, values, side="right") - 1
    heights = np.zeros(bins.size, dtype=np.int64)
    np.add.at(heights, places, counts)
    first, last = int(places[0]), int(places[-1]) + 2
    bins, heights = bins[first:last], heights[first:last]
    change = np.ones(bins.size, dtype=bool)
    change[1:] = np.diff(heights) != 0
    return np.append(bins[0], bins[change]), np.append(0, heights[change])
