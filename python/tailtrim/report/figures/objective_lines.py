"""Objectives as lines in the figures of latency."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tailtrim.report.figures.figure import Rule
from tailtrim.report.figures.percentiles import reciprocal
from tailtrim.report.units import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.report.figures.figure import Axis, Figure, Panel
    from tailtrim.slo import Objective

# Where latency is, and which objectives are of it there.
_UPWARDS = {"hdr": ("quantile", "max"), "worst": ("max",), "sweep": ("quantile",)}
_UPWARDS["tails"] = _UPWARDS["hdr"]
_ACROSS = {"histogram": ("quantile", "mean", "max"), "cdf": ("quantile", "mean", "max")}
# So much longer an axis may become for a line; beyond, the data would be flat.
_LINEAR_ROOM, _LOG_ROOM = 3.0, 1_000.0


def with_objectives(figure: Figure, objectives: Sequence[Objective]) -> Figure:
    """Return a figure with a line at the limit of each objective that it can show.

    The line of a percentile ends at it: a run that meets it stays below the line up to there.
    """
    # What follows a sweep is the name of its variable.
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
