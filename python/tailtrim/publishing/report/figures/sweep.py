"""Percentiles of latency against a loop variable: latency against load, above all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tailtrim import units
from tailtrim.publishing.report import wording
from tailtrim.publishing.report.figures.figure import Axis, Figure, Interval, Line, Panel
from tailtrim.publishing.report.figures.looks import FLOOR_DASH, MARKERS, Look, distinct, ordered
from tailtrim.publishing.report.inputs.run_groups import series, series_name, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tailtrim.publishing.report.inputs.run_groups import Variable
    from tailtrim.publishing.report.inputs.run_tables import ReportedRun
    from tailtrim.results.summary import Quantile

    # Returns the interval of a quantile of runs in ns at a place of x, if it is known.
    _Told: TypeAlias = Callable[[float, Sequence[ReportedRun], str], Interval | None]
    _Rows: TypeAlias = list[tuple[int, list[Interval]]]

_PERCENTILES = ("0.5", "0.99", "0.999", "0.9999")
#: Of several devices each percentile has a panel of its own.
_PANELS = ("0.5", "0.99", "0.999")
_INVALID = Look("#6B7178", "#A9B0B7", "X")
_LOSS = Look("#16191D", "#E8EAED", "s")
# Beyond, equal steps along the axis are factors.
_LINEAR_RATIO = 35


@dataclass(frozen=True, slots=True)
class _Series:
    """Runs that differ in the variable alone; those at one value are repetitions."""

    name: str
    floor: bool
    runs: dict[float, list[ReportedRun]]
    invalid: dict[float, list[ReportedRun]]


def sweeps(runs: Sequence[ReportedRun]) -> list[Figure]:
    """Return a figure for each loop variable that has numbers."""
    recorded = [run.recorded for run in runs if run.recorded is not None]
    return [_sweep(variable, runs) for variable in variables(recorded) if _devices(variable, runs)]


def _devices(variable: Variable, runs: Sequence[ReportedRun]) -> list[_Series]:
    return [one for one in _series(variable, runs) if not one.floor]


def _series(variable: Variable, runs: Sequence[ReportedRun]) -> list[_Series]:
    found: dict[Hashable, _Series] = {}
    for run in runs:
        if run.recorded is None or not run.summary.samples:
            continue
        value = variable.of(run.recorded)
        if value is None:
            continue
        name, floor = series_name(run.recorded, variable), run.recorded.outcome.floor
        key = series(run.recorded, variable)
        one = found.setdefault(key, _Series(name, floor, {}, {}))
        into = one.invalid if run.recorded.outcome.invalid else one.runs
        into.setdefault(value, []).append(run)
    return list(found.values())


def _sweep(variable: Variable, runs: Sequence[ReportedRun]) -> Figure:
    found = _series(variable, runs)
    devices = [one for one in found if not one.floor]
    layout = _one_device if len(devices) == 1 else _several_devices
    figure = layout(variable, devices, [one for one in found if one.floor], _measured)
    if not any(run.floor for run in runs):
        return figure
    above = layout(variable, devices, [], _above_floor)
    if not any(panel.lines for panel in above.panels):
        return figure
    told = "Each percentile less the same percentile of the floor with the same traffic."
    other = replace(
        above,
        key=f"{figure.key}-above-floor",
        title=f"{figure.title}, above the floor",
        caption=f"{told} {_caption(devices, intervals=False)}",
        choice="above the floor",
    )
    return replace(figure, choice="as measured", others=(other,))


def _measured(at: float, runs: Sequence[ReportedRun], p: str) -> Interval | None:
    known = [one for run in runs if (one := _quantile(run, p)) is not None]
    values = [one.value for one in known if one.value is not None]
    if not values:
        return None
    if len(runs) > 1:
        return Interval(0, at, median_low(values), min(values), max(values))
    return Interval(0, at, values[0], known[0].low, known[0].high)


def _above_floor(at: float, runs: Sequence[ReportedRun], p: str) -> Interval | None:
    values = []
    for run in runs:
        mine = _quantile(run, p)
        floor = _quantile(run.floor, p) if run.floor else None
        if mine and floor and mine.value is not None and floor.value is not None:
            values.append(mine.value - floor.value)
    if not values:
        return None
    return Interval(0, at, median_low(values), min(values), max(values), bars=len(values) > 1)


def _quantile(run: ReportedRun, p: str) -> Quantile | None:
    if (1 - float(p)) * run.summary.samples < 1:
        return None
    return next((one for one in run.summary.latency_ns.quantiles if one.p == p), None)


def _points(runs: dict[float, list[ReportedRun]], p: str, told: _Told) -> list[Interval]:
    found = (told(value, runs[value], p) for value in sorted(runs))
    return [point for point in found if point is not None]


def _one_device(
    variable: Variable,
    devices: Sequence[_Series],
    floors: Sequence[_Series],
    told: _Told,
) -> Figure:
    """Draw all percentiles in one panel: colours in their order, the floor's dashed."""
    shown = [p for p in _PERCENTILES if any(_points(one.runs, p, told) for one in devices)] or list(
        _PERCENTILES[:3]
    )
    rows: _Rows = []
    invalid: list[Interval] = []
    names: list[str] = []
    looks: list[Look] = []
    for kind in (devices, floors):
        for one in kind:
            for rank, p in enumerate(shown):
                colours = ordered(rank, len(shown))
                rows.append((len(names), _points(one.runs, p, told)))
                invalid += _points(one.invalid, p, told)
                dash = FLOOR_DASH if one.floor else ()
                names.append(f"p{units.percent(p)}{' of the floor' * one.floor}")
                looks.append(Look(*colours, MARKERS[rank], dash))
    return _figure(variable, devices, [("", rows, invalid)], names, looks)


def _several_devices(
    variable: Variable,
    devices: Sequence[_Series],
    floors: Sequence[_Series],
    told: _Told,
) -> Figure:
    """Draw a panel for each percentile, and a line for each device."""
    lines = [*devices, *floors]
    looks = [replace(look, dash=()) for look in distinct(len(devices))]
    looks += [replace(_INVALID, marker="s", dash=FLOOR_DASH)] * len(floors)
    panels = []
    for p in _PANELS:
        rows = [(place, _points(one.runs, p, told)) for place, one in enumerate(lines)]
        invalid = [point for one in lines for point in _points(one.invalid, p, told)]
        if any(points for _, points in rows) or invalid:
            panels.append((f"p{units.percent(p)}", rows, invalid))
    return _figure(variable, devices, panels, [one.name for one in lines], looks)


def _figure(
    variable: Variable,
    devices: Sequence[_Series],
    panels: Sequence[tuple[str, _Rows, list[Interval]]],
    names: Sequence[str],
    looks: Sequence[Look],
) -> Figure:
    x = x_axis(variable)
    names, looks = list(names), list(looks)
    if any(invalid for _, _, invalid in panels):
        names.append("invalid run")
        looks.append(_INVALID)
    drawn = [_panel(x, title, rows, invalid, len(names) - 1) for title, rows, invalid in panels]
    if (lost := _lost(x, devices, len(names))) is not None:
        drawn.append(lost)
        if len(devices) == 1:
            names.append("loss")
            looks.append(_LOSS)
    name = variable.label.partition(" (")[0]
    what = units.printable(devices[0].name) if len(devices) == 1 else "latency"
    return Figure(
        key=f"sweep-{variable.name}",
        title=f"Latency against {name[:1].lower()}{name[1:]}{f': {what}' * (len(devices) == 1)}",
        caption=_caption(devices, intervals=True),
        panels=tuple(drawn),
        names=tuple(map(units.printable, names)),
        looks=tuple(looks),
    )


def x_axis(variable: Variable) -> Axis:
    """Return the axis of a loop variable."""
    low, high = variable.values[0], variable.values[-1]
    if low > 0 and high / low > _LINEAR_RATIO:
        return Axis(variable.label, "log", low / 1.25, high * 1.25, unit=variable.unit)
    foot = min(low, 0.0)
    return Axis(variable.label, "linear", foot, high + 0.05 * (high - foot), unit=variable.unit)


def _panel(x: Axis, title: str, rows: _Rows, invalid: list[Interval], cross: int) -> Panel:
    points = [point for _, row in rows for point in row] + invalid
    bounds = [ns for one in points for ns in (one.value, one.low, one.high)]
    known = [ns for ns in bounds if ns is not None] or [0, 1]
    y = Axis.of_times("Latency", min(known), max(known))
    lines = [_line(place, row, y, "line") for place, row in rows if row]
    if invalid:
        lines.append(_line(cross, invalid, y, "points"))
    intervals = tuple(
        Interval.of_times(place, one.x, y, one.value, one.low, one.high, bars=one.bars)
        for place, row in rows
        for one in row
    )
    return Panel(x, y, tuple(lines), intervals, title=title)


def _line(run: int, points: list[Interval], y: Axis, draw: Literal["line", "points"]) -> Line:
    x = np.array([point.x for point in points])
    return Line(run, x, np.array([point.value for point in points]) / y.unit_ns, draw=draw)


def _lost(x: Axis, devices: Sequence[_Series], names: int) -> Panel | None:
    """Return the share of lost packets, the worst of all runs at a value, if any was lost.

    A single device has a look of its own for it, the first beyond ``names``.
    """
    lines = []
    for place, one in enumerate(devices):
        at = sorted(one.runs)
        shares = np.array([max(map(_share_lost, one.runs[value])) for value in at])
        lines.append(Line(names if len(devices) == 1 else place, np.array(at), shares, draw="line"))
    most = max((float(line.y.max(initial=0.0)) for line in lines), default=0.0)
    if not most:
        return None
    return Panel(x, Axis("Loss (%)", "linear", 0.0, 1.15 * most, unit="%"), tuple(lines))


def _share_lost(run: ReportedRun) -> float:
    missing, known = wording.undelivered(run.summary)
    return 100 * missing / max(known, 1)


def _caption(devices: Sequence[_Series], *, intervals: bool) -> str:
    repeated = any(len(runs) > 1 for one in devices for runs in one.runs.values())
    parts = []
    if repeated:
        parts.append(
            "Where a value was run several times: the median of its runs, and their range."
        )
    if intervals:
        every = [runs for one in devices for runs in (*one.runs.values(), *one.invalid.values())]
        confidence = wording.confidence(every[0][0].summary)
        who = "of single runs " if repeated else ""
        parts.append(
            f"Bars {who}are {confidence} confidence intervals; a hollow marker has no upper bound."
        )
    invalid = sum(len(runs) for one in devices for runs in one.invalid.values())
    if invalid:
        noun = "run is" if invalid == 1 else "runs are"
        parts.append(f"{invalid} invalid {noun} shown as crosses and not joined.")
    return " ".join(parts)
