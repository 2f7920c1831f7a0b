"""Figures of runs of hours, by minute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report import units
from tailtrim.report.figures.figure import Axis, Figure, Line, Panel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from tailtrim.report.arrays import Floats
    from tailtrim.report.inputs.run_tables import ReportedRun
    from tailtrim.rundir.minutes import Counted

_MINUTE_NS = 60 * 10**9
_PARTS: tuple[Literal["p50", "p99", "max"], ...] = ("p50", "p99", "max")
#: What the device's CPUs count, as panels call it.
_COUNTERS: dict[str, Callable[[Counted], int | None]] = {
    "SMIs": lambda one: one.smi,
    "Throttled": lambda one: one.throttled,
    "Steal (ms)": lambda one: one.steal_ms,
}


def minutes(runs: Sequence[ReportedRun]) -> Figure | None:
    """Latencies, losses and what slowed the CPUs down, in each minute."""
    known = [run for run in runs if run.minutes]
    if not known:
        return None
    last = max((run.minutes[-1].begin_ns - run.minutes[0].begin_ns) / _MINUTE_NS for run in known)
    x = Axis("Time (min)", "linear", 0.0, 1.02 * (last + 1), unit="min")
    panels = []
    if any(minute.samples for run in known for minute in run.minutes):
        panels.append(_latencies(known, x))
    if any(minute.lost for run in known for minute in run.minutes):
        most = max(minute.lost for run in known for minute in run.minutes)
        lines = [Line(run.index, _at(run), _of(run, lambda one: one.lost)) for run in known]
        panels.append(Panel(x, Axis.of_counts("Lost", most, unit="lost"), tuple(lines)))
    panels += (panel for name, of in _COUNTERS.items() if (panel := _counter(known, x, name, of)))
    return Figure(
        key="minutes",
        title="Minutes",
        caption=(
            "Median (solid), 99th percentile (dashed) and maximum (dotted) of each minute, as"
            " packets left. Lost packets, and what the device's CPUs counted (the CPU with most),"
            " where there were any. The first and the last minute may be partial."
        ),
        panels=tuple(panels),
    )


def _latencies(runs: Sequence[ReportedRun], x: Axis) -> Panel:
    values = [
        minute.latency_ns[part]
        for run in runs
        for minute in run.minutes
        for part in _PARTS
        if part in minute.latency_ns
    ]
    y = Axis.of_times("Latency", min(values), max(values))
    lines = tuple(
        Line(
            run.index,
            _at(run),
            _of(run, lambda one, part=part: one.latency_ns.get(part, np.nan)) / y.unit_ns,
            draw="line",
            part=part,
        )
        for run in runs
        for part in _PARTS
    )
    return Panel(x, y, lines)


def _counter(
    runs: Sequence[ReportedRun], x: Axis, name: str, of: Callable[[Counted], int | None]
) -> Panel | None:
    """Return the panel of a counter; ``None`` where it counted nothing."""
    most = max((of(one) or 0 for run in runs for one in run.counted), default=0)
    if most == 0:
        return None
    lines = []
    for run in runs:
        begin_ns = run.minutes[0].begin_ns
        at = np.asarray([(one.begin_ns - begin_ns) / _MINUTE_NS for one in run.counted])
        told = [of(one) for one in run.counted]
        lines.append(
            Line(run.index, at, np.asarray([np.nan if one is None else one for one in told], float))
        )
    return Panel(x, Axis.of_counts(name, most, unit=units.printable(name.lower())), tuple(lines))


def _at(run: ReportedRun) -> Floats:
    begin_ns = run.minutes[0].begin_ns
    return np.asarray([(one.begin_ns - begin_ns) / _MINUTE_NS for one in run.minutes], dtype=float)


def _of(run: ReportedRun, value: Callable[..., float]) -> Floats:
    return np.asarray([value(one) for one in run.minutes], dtype=float)
