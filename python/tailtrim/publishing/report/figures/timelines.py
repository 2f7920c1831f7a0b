"""Figures over time, by second or minute, and over the position in a burst."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures.figure import Axis, Figure, Line, Panel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tailtrim.publishing.report.inputs.run_tables import Floats, Integers, ReportedRun
    from tailtrim.results.minutes import Counted, Minute

    Values: TypeAlias = Sequence[float | int | None] | Integers | Floats
    Part: TypeAlias = Literal["", "p50", "p99", "max", "ingress", "egress"]
    # A run, the part that the line is of where it has several, x and y.
    Row: TypeAlias = tuple[int, Part, Values, Values]

# Points of a figure, over all runs: more make a page slow and hide each other.
_MOST_WORST = 20_000
_TIME = "Time since the first ingress packet (s)"
_MINUTE_NS = 60 * units.SECOND
_SPREAD: tuple[Part, ...] = ("p50", "p99", "max")
_SPREAD_TOLD = "Median (solid), 99th percentile (dashed) and maximum (dotted)"
#: Counters of the device's CPUs, by the names of their panels.
_COUNTERS: dict[str, Callable[[Counted], int | None]] = {
    "SMIs": lambda one: one.smi,
    "Throttled": lambda one: one.throttled,
    "Steal (ms)": lambda one: one.steal_ms,
}


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
    lines = [Line(run, at, latency / y.unit_ns, draw="points") for run, at, latency in points]
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
        panels=(Panel(x, y, tuple(lines)),),
    )


def seconds(runs: Sequence[ReportedRun]) -> Figure | None:
    """Packets, losses and the maximum latency of each second."""
    columns = {run.index: run.seconds() for run in runs}
    columns = {run: column for run, column in columns.items() if column["second"].size}
    if not columns:
        return None
    x = time_axis(max(float(column["second"][-1]) + 1 for column in columns.values()))
    alone = len(columns) == 1
    taps: tuple[Part, ...] = ("ingress", "egress") if alone else ("ingress",)
    packets = [
        _held(run, of, of[f"{tap}_packets"], tap if alone else "")
        for run, of in columns.items()
        for tap in taps
    ]
    panels = [_counts(x, "Packets/s", packets)]
    if any(of["lost"].any() for of in columns.values()):
        lost = [_held(run, of, of["lost"]) for run, of in columns.items()]
        panels.append(_counts(x, "Lost/s", lost))
    if any(of["samples"].any() for of in columns.values()):
        maxima = [
            _held(run, of, np.where(of["samples"] > 0, of["max_latency_ns"], np.nan))
            for run, of in columns.items()
        ]
        panels.append(_times(x, "Max. latency", maxima, draw="steps"))
    return Figure(
        key="seconds",
        title="Seconds",
        caption=(
            "Packets"
            + (" (dotted: egress)" if alone else " at the ingress tap")
            + ", lost packets where there are any, and the maximum latency of each second since"
            " the first ingress packet. The first and the last second may be partial; a second"
            " whose packets are all trimmed has no latency."
        ),
        panels=tuple(panels),
    )


def minutes(runs: Sequence[ReportedRun]) -> Figure | None:
    """Latencies, losses and what slowed the CPUs down, in each minute."""
    runs = [run for run in runs if run.minutes]
    if not runs:
        return None
    at = {run.index: _minutes(run, run.minutes) for run in runs}
    last = max(of[-1] for of in at.values())
    x = Axis("Time (min)", "linear", 0.0, 1.02 * (last + 1), unit="min")
    panels = []
    if any(minute.samples for run in runs for minute in run.minutes):
        spread = [
            (run.index, part, at[run.index], [one.latency_ns.get(part) for one in run.minutes])
            for run in runs
            for part in _SPREAD
        ]
        panels.append(_times(x, "Latency", spread))
    if any(minute.lost for run in runs for minute in run.minutes):
        lost: list[Row] = [
            (run.index, "", at[run.index], [one.lost for one in run.minutes]) for run in runs
        ]
        panels.append(_counts(x, "Lost", lost))
    for name, of in _COUNTERS.items():
        if any(of(one) for run in runs for one in run.counted):
            counted: list[Row] = [
                (run.index, "", _minutes(run, run.counted), list(map(of, run.counted)))
                for run in runs
            ]
            panels.append(_counts(x, name, counted))
    return Figure(
        key="minutes",
        title="Minutes",
        caption=(
            f"{_SPREAD_TOLD} of each minute, as packets left. Lost packets, and what the device's"
            " CPUs counted (the CPU with most), where there were any. The first and the last minute"
            " may be partial."
        ),
        panels=tuple(panels),
    )


def bursts(runs: Sequence[ReportedRun]) -> Figure | None:
    """Latency by the position in the burst."""
    known = [(run.index, run.summary.bursts.positions) for run in runs if run.summary.bursts]
    known = [(run, positions) for run, positions in known if positions]
    if not known:
        return None
    last = max(row.position for _, positions in known for row in positions)
    spread = [
        (run, part, [row.position for row in of], [getattr(row.latency_ns, part) for row in of])
        for run, of in known
        for part in _SPREAD
    ]
    x = Axis("Position in the burst", "linear", 0.0, last + 1.0)
    return Figure(
        key="burst",
        title="Latency by position in the burst",
        caption=f"{_SPREAD_TOLD}.",
        panels=(_times(x, "Latency", spread),),
    )


def time_axis(last: float) -> Axis:
    """Return the axis of times in s since the first ingress packet."""
    return Axis(_TIME, "linear", 0.0, max(1.02 * last, 1e-6), unit="s")


def _counts(x: Axis, label: str, rows: Sequence[Row]) -> Panel:
    lines = _lines(rows, 1, "steps")
    most = np.nanmax(np.concatenate([line.y for line in lines]), initial=0.0)
    return Panel(x, Axis.of_counts(label, int(most), unit=label.lower()), lines)


def _times(
    x: Axis, label: str, rows: Sequence[Row], draw: Literal["steps", "line"] = "line"
) -> Panel:
    """Return a panel of times in ns, of which some may be unknown."""
    values = np.concatenate([np.asarray(one, float) for *_, one in rows])
    limits = float(np.nanmin(values)), float(np.nanmax(values))
    y = Axis.of_times(label, *limits, from_zero=draw == "steps")
    return Panel(x, y, _lines(rows, y.unit_ns, draw))


def _lines(rows: Sequence[Row], unit: int, draw: Literal["steps", "line"]) -> tuple[Line, ...]:
    return tuple(
        Line(run, np.asarray(at, float), np.asarray(values, float) / unit, draw=draw, part=part)
        for run, part, at, values in rows
    )


def _held(
    run: int, columns: dict[str, Integers], values: Integers | Floats, part: Part = ""
) -> Row:
    """Let the value of the last second hold for that second."""
    second, values = columns["second"], np.asarray(values, float)
    return run, part, np.append(second, second[-1] + 1), np.append(values, values[-1])


def _minutes(run: ReportedRun, of: Sequence[Counted | Minute]) -> list[float]:
    return [(one.begin_ns - run.minutes[0].begin_ns) / _MINUTE_NS for one in of]
