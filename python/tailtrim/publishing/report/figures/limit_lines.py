"""Lines added to figures: limits of objectives, bounds and predictions of a search of capacity."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.publishing.report.capacity_prediction import PredictedCurve, largest_burst, per_packet
from tailtrim.publishing.report.figures.figure import Band, Line, Rule
from tailtrim.publishing.report.figures.percentiles import reciprocal
from tailtrim.units import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.slo import Objective
    from tailtrim.laboratory.capacity.record import Capacity
    from tailtrim.publishing.report.figures.figure import Axis, Figure, Panel

# Where latency is, and which objectives are of it there.
_UPWARDS = {"hdr": ("quantile", "max"), "worst": ("max",), "sweep": ("quantile",)}
_UPWARDS["tails"] = _UPWARDS["hdr"]
_ACROSS = {"histogram": ("quantile", "mean", "max"), "cdf": ("quantile", "mean", "max")}
# So much longer an axis may become for a line; beyond, the data would be flat.
_LINEAR_ROOM, _LOG_ROOM = 3.0, 1_000.0
#: By the variable that a search makes of its load.
_KEYS = ("sweep-rate", "sweep-burst")
_SCALES = {"kpkt/s": 1e3, "Mbit/s": 1e6}
#: A curve has so many points.
_LEAST = 2
#: Of what is predicted, in points on and off.
_DASH = (7.0, 3.0)
#: Lines nearer than this share of the axis have one label.
_NEAR = 0.04


def with_objectives(figure: Figure, objectives: Sequence[Objective]) -> Figure:
    """Return a figure with a line at the limit of each objective that it can show.

    The line of a percentile ends at it: a run that meets it stays below the line up to there.
    """
    # The key of a sweep ends with the name of its variable.
    kind = figure.key.partition("-")[0]
    upwards, across = _UPWARDS.get(kind, ()), _ACROSS.get(kind, ())
    wanted = [one for one in objectives if one.what in (*upwards, *across)]
    if not wanted:
        return figure
    panels, beyond = [], dict.fromkeys(str(one) for one in wanted)
    for panel in figure.panels:
        for objective in wanted:
            panel, drawn = _with(panel, objective, upwards=bool(upwards))  # noqa: PLW2901
            if drawn:
                beyond.pop(str(objective), None)
        panels.append(panel)
    told = " Dashed across: the limits of the objectives."
    if len(beyond) == len(wanted):
        told = ""
    if beyond:
        told += f" Off the axis: {', '.join(beyond)}."
    return replace(figure, panels=tuple(panels), caption=figure.caption + told)


def _with(panel: Panel, objective: Objective, *, upwards: bool) -> tuple[Panel, bool]:
    axis = panel.y if upwards else panel.x
    other = panel.title and objective.p and panel.title != f"p{percent(objective.p)}"
    if other or not axis.label.startswith("Latency"):
        return panel, False
    at = float(objective.limit) / axis.unit_ns
    longer = _reaching(axis, at)
    if longer is None:
        return panel, False
    label = str(objective)
    if not upwards:
        return replace(panel, x=longer, uprights=(*panel.uprights, Rule(at, label))), True
    until = None
    if panel.x.scale == "nines" and objective.p is not None:
        until = min(reciprocal(objective.p), panel.x.high)
    return replace(panel, y=longer, rules=(*panel.rules, Rule(at, label, until))), True


def _reaching(axis: Axis, at: float) -> Axis | None:
    """Return the axis long enough for a value, ``None`` where it is too far away."""
    if axis.scale == "linear":
        longer = replace(axis, low=min(axis.low, 0.9 * at), high=max(axis.high, 1.1 * at))
        span = axis.high - axis.low
        return longer if longer.high - longer.low <= _LINEAR_ROOM * span else None
    longer = replace(axis, low=min(axis.low, at / 1.3), high=max(axis.high, at * 1.3))
    near = longer.high / longer.low <= _LOG_ROOM * axis.high / axis.low
    return longer if near else None


def with_bounds(figure: Figure, capacity: Capacity | None) -> Figure:
    """Return the figure of latency against load with a line at the lower bound of each goal."""
    if capacity is None or figure.key not in _KEYS:
        return figure
    scale = _SCALES.get(figure.panels[0].x.unit, 1.0)
    marks = [(one.lower.load / scale, one.goal) for one in capacity.goals if one.lower is not None]
    told = "Dashed upright: the highest load that meets each goal (its relevant lower bound)"
    if (knee := _knee(figure)) is not None:
        marks.append((knee, "knee"))
        told += ", and the knee, the load with the most throughput for its median latency"
    others = tuple(with_bounds(other, capacity) for other in figure.others)
    curve = PredictedCurve.of(capacity.prediction) if figure.key == _KEYS[0] else None
    if curve is not None:
        factor = per_packet(capacity) / scale
        marks.append((curve.r_max_pps.value * factor, "R_max"))
        told += ", and the predicted R_max"
        figure = _with_curve(figure, curve, factor)
    burst = largest_burst(capacity.prediction) if figure.key == _KEYS[1] else None
    if burst is not None:
        marks.append((burst, "predicted"))
        told += ", and the largest burst that was predicted to keep the promise"
    if not marks:
        return figure
    marks.sort()
    panels = tuple(
        replace(panel, uprights=(*panel.uprights, *_rules(marks, panel.x, named=place == 0)))
        for place, panel in enumerate(figure.panels)
    )
    return replace(figure, panels=panels, caption=f"{figure.caption} {told}.", others=others)


def _knee(figure: Figure) -> float | None:
    """Return the load with the most throughput for its median latency.

    Kleinrock's power, whose largest value Jain calls the knee. The first line is that of medians.
    """
    lines = figure.panels[0].lines
    if not lines or lines[0].run != 0 or figure.key != _KEYS[0]:
        return None
    x, y = lines[0].x, lines[0].y
    power = np.divide(x, y, out=np.zeros_like(x, dtype=float), where=y > 0)
    return float(x[power.argmax()]) if len(x) >= _LEAST else None


def _with_curve(figure: Figure, curve: PredictedCurve, factor: float) -> Figure:
    """Add the prediction of each percentile to the figure, dashed, with its band."""
    names, looks = list(figure.names), list(figure.looks)
    panel = figure.panels[0]
    lines, bands, edges = list(panel.lines), list(panel.bands), [panel.y.low, panel.y.high]
    for place, name in enumerate(figure.names):
        p = _quantile(name)
        points = [(pps * factor, told[p]) for pps, told in curve.points if p in told]
        if len(points) < _LEAST:
            continue
        looks.append(replace(looks[place], dash=_DASH))
        at = np.array([load for load, _ in points])
        value, low, high = (
            np.array([getattr(one, edge) for _, one in points]) / panel.y.unit_ns
            for edge in ("value", "low", "high")
        )
        lines.append(Line(len(names), at, value, draw="line"))
        bands.append(Band.along(len(names), at, value, low, high))
        names.append(f"{name} predicted")
        edges += [float(low.min()), float(high.max())]
    least = 0.9 * min(edges) if panel.y.scale == "log" else min(edges)
    y = replace(panel.y, low=min(panel.y.low, least), high=max(edges))
    drawn = replace(panel, lines=tuple(lines), bands=tuple(bands), y=y)
    told = f"{figure.caption} Long dashes and bands: predicted from {curve.run} alone."
    panels = (drawn, *figure.panels[1:])
    return replace(figure, panels=panels, names=tuple(names), looks=tuple(looks), caption=told)


def _quantile(name: str) -> str:
    """Return the quantile of a line called ``p99.9``, as summaries have it."""
    try:
        return f"{(Decimal(name.removeprefix('p')) / 100).normalize():f}"
    except ArithmeticError:
        return ""


def _rules(bounds: list[tuple[float, str]], x: Axis, *, named: bool) -> list[Rule]:
    groups: list[list[tuple[float, str]]] = []
    for at, goal in bounds:
        if groups and at - groups[-1][0][0] < _NEAR * (x.high - x.low):
            groups[-1].append((at, goal))
        else:
            groups.append([(at, goal)])
    return [
        Rule(at, ", ".join(goal for _, goal in group) if named and not place else "")
        for group in groups
        for place, (at, _) in enumerate(group)
    ]
