"""Figures of distributions: histogram, cumulative, inter-packet gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report import units
from tailtrim.report.figures.binning import binned, edges, thinned, width_ns
from tailtrim.report.figures.figure import Axis, Figure, Line, Panel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.report.arrays import Integers
    from tailtrim.report.inputs.run_tables import ReportedRun

_PACKETS = "Packets in a bin"


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
