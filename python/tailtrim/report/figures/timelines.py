"""Figures over time and over the position in a burst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.report import units
from tailtrim.report.figures.figure import Axis, Figure, Line, Panel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from tailtrim.report.arrays import Floats, Integers
    from tailtrim.report.inputs.run_tables import ReportedRun

Columns = dict[str, np.ndarray[Any, np.dtype[np.int64]]]

# Points of a figure, over all runs: more make a page slow and hide each other.
_MOST_WORST = 20_000
_TIME = "Time since the first ingress packet (s)"


def worst(runs: Sequence[ReportedRun]) -> Figure | None:
    """Latency of the worst packets over time."""
    most = _MOST_WORST // max(len(runs), 1)
    points, kept = [], 0
    for run in runs:
        first = run.summary.ingress_tap.first_ns
        at, latency = run.worst()
        if first is not None and at.size:
            kept = max(kept, at.size)
            chosen = np.argsort(-latency, kind="stable")[:most]
            at, latency = at[chosen], latency[chosen]
            order = np.lexsort((latency, at))
            points.append((run.index, (at[order] - first) / units.SECOND, latency[order]))
    if not points:
        return None
    x = time_axis(max(float(at[-1]) for _, at, _ in points))
    limits = min(int(y.min()) for _, _, y in points), max(int(y.max()) for _, _, y in points)
    y = Axis.of_times("Latency", *limits)
    shown = max(at.size for _, at, _ in points)
    return Figure(
        key="worst",
        title="Worst packets",
        caption=(
            f"The {units.count(shown)} packets with the highest latency"
            f"{' of each run' * (len(points) > 1)}, by the time they came in."
            + f" Of the {units.count(kept)} that worst.parquet has, the others are left out."
            * (shown < kept)
            + " Slanted lines point to a periodic cause that the packets sample at a rate of their"
            " own (aliasing)."
        ),
        panels=(
            Panel(
                x,
                y,
                tuple(
                    Line(run, at, latency / y.unit_ns, draw="points") for run, at, latency in points
                ),
            ),
        ),
    )


def seconds(runs: Sequence[ReportedRun]) -> Figure | None:
    """Packets, losses and the maximum latency of each second."""
    columns = {run.index: run.seconds() for run in runs}
    columns = {run: column for run, column in columns.items() if column["second"].size}
    if not columns:
        return None
    x = time_axis(max(float(column["second"][-1]) + 1 for column in columns.values()))
    panels = [_packets(columns, x)]
    if any(column["lost"].any() for column in columns.values()):
        panels.append(_lost(columns, x))
    if any(column["samples"].any() for column in columns.values()):
        panels.append(_maxima(columns, x))
    return Figure(
        key="seconds",
        title="Seconds",
        caption=(
            "Packets"
            + (" (dotted: egress)" if len(columns) == 1 else " at the ingress tap")
            + ", lost packets where there are any, and the maximum latency of each second since"
            " the first ingress packet. The first and the last second may be partial; a second"
            " whose packets are all trimmed has no latency."
        ),
        panels=tuple(panels),
    )


def bursts(runs: Sequence[ReportedRun]) -> Figure | None:
    """Latency by the position in the burst."""
    known = [(run.index, run.summary.bursts.positions) for run in runs if run.summary.bursts]
    known = [(run, positions) for run, positions in known if positions]
    if not known:
        return None
    spreads = [row.latency_ns for _, positions in known for row in positions]
    y = Axis.of_times(
        "Latency",
        min(spread.p50 for spread in spreads if spread.p50 is not None),
        max(spread.max for spread in spreads if spread.max is not None),
    )
    last = max(row.position for _, positions in known for row in positions)
    parts: tuple[Literal["p50", "p99", "max"], ...] = ("p50", "p99", "max")
    lines = tuple(
        Line(
            run,
            np.asarray([row.position for row in positions], dtype=float),
            np.asarray([getattr(row.latency_ns, part) for row in positions], float) / y.unit_ns,
            draw="line",
            part=part,
        )
        for run, positions in known
        for part in parts
    )
    return Figure(
        key="burst",
        title="Latency by position in the burst",
        caption="Median (solid), 99th percentile (dashed) and maximum (dotted).",
        panels=(Panel(Axis("Position in the burst", "linear", 0.0, last + 1.0), y, lines),),
    )


def _packets(columns: dict[int, Columns], x: Axis) -> Panel:
    taps: tuple[Literal["ingress", "egress"], ...] = ("ingress", "egress")
    if len(columns) > 1:
        taps = ("ingress",)
    most = max(int(column[f"{tap}_packets"].max()) for column in columns.values() for tap in taps)
    lines = tuple(
        Line(
            run,
            *_per_second(column["second"], column[f"{tap}_packets"].astype(float)),
            part=tap if len(columns) == 1 else "",
        )
        for run, column in columns.items()
        for tap in taps
    )
    return Panel(x, Axis.of_counts("Packets/s", most, unit="packets/s"), lines)


def _lost(columns: dict[int, Columns], x: Axis) -> Panel:
    most = max(int(column["lost"].max()) for column in columns.values())
    lines = tuple(
        Line(run, *_per_second(column["second"], column["lost"].astype(float)))
        for run, column in columns.items()
    )
    return Panel(x, Axis.of_counts("Lost/s", most, unit="lost/s"), lines)


def _maxima(columns: dict[int, Columns], x: Axis) -> Panel:
    known = np.concatenate(
        [column["max_latency_ns"][column["samples"] > 0] for column in columns.values()]
    )
    y = Axis.of_times("Max. latency", int(known.min()), int(known.max()), from_zero=True)
    lines = []
    for run, column in columns.items():
        maxima = np.where(column["samples"] > 0, column["max_latency_ns"] / y.unit_ns, np.nan)
        lines.append(Line(run, *_per_second(column["second"], maxima)))
    return Panel(x, y, tuple(lines))


def _per_second(second: Integers, values: Floats) -> tuple[Floats, Floats]:
    """Let the value of the last second hold for that second."""
    return np.append(second, second[-1] + 1).astype(float), np.append(values, values[-1])


def time_axis(last: float) -> Axis:
    """Return the axis of times in s since the first ingress packet."""
    return Axis(_TIME, "linear", 0.0, max(1.02 * last, 1e-6), unit="s")
