"""The bounds of a search of capacity as lines in the figure of latency against load."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tailtrim.report.figures.figure import Rule

if TYPE_CHECKING:
    from tailtrim.capacity.record import Capacity
    from tailtrim.report.figures.figure import Axis, Figure

#: By the variable that a search makes of its load.
_KEYS = ("sweep-rate", "sweep-burst")
_SCALES = {"kpkt/s": 1e3, "Mbit/s": 1e6}
#: Lines nearer than this share of the axis have one label.
_NEAR = 0.04


def with_bounds(figure: Figure, capacity: Capacity | None) -> Figure:
    """Return the figure of latency against load with a line at the lower bound of each goal."""
    if capacity is None or figure.key not in _KEYS:
        return figure
    bounds = sorted((one.lower.load, one.goal) for one in capacity.found if one.lower is not None)
    if not bounds:
        return figure
    panels = tuple(
        replace(panel, uprights=(*panel.uprights, *_rules(bounds, panel.x, named=place == 0)))
        for place, panel in enumerate(figure.panels)
    )
    told = " Dashed upright: the highest load that meets each goal (its relevant lower bound)."
    others = tuple(with_bounds(other, capacity) for other in figure.others)
    return replace(figure, panels=panels, caption=figure.caption + told, others=others)


def _rules(bounds: list[tuple[int, str]], x: Axis, *, named: bool) -> list[Rule]:
    groups: list[list[tuple[float, str]]] = []
    for load, goal in bounds:
        at = load / _SCALES.get(x.unit, 1.0)
        if groups and at - groups[-1][0][0] < _NEAR * (x.high - x.low):
            groups[-1].append((at, goal))
        else:
            groups.append([(at, goal)])
    return [
        Rule(at, ", ".join(goal for _, goal in group) if named and not place else "")
        for group in groups
        for place, (at, _) in enumerate(group)
    ]
