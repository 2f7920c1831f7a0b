"""Figures as in the reflector paper: quartiles and tail of each case; medians over positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures.figure import Axis, Bars, Figure, Line, Panel, Rule
from tailtrim.publishing.report.figures.looks import Look
from tailtrim.verdict import BETTER, WORSE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.publishing.factors.effects import Case, Effects
    from tailtrim.publishing.factors.slope import Slope

# Places among the names and looks of the figure of all cases.
_SIMILAR, _BETTER, _WORSE, _MEDIAN, _P99, _MAXIMUM = range(6)
_NAMES = (
    "quartiles",
    "quartiles, median better",
    "quartiles, median worse",
    "median",
    "p99",
    "maximum",
)
_INK = ("#16191D", "#E8EAED")
#: Markers stand out from the bars that they are drawn on.
_LOOKS = (
    Look("#BCC2C8", "#5A626B"),
    Look("#7CCDB5", "#0B7A5B"),
    Look("#F0A36B", "#B0560F"),
    Look(*_INK, "o"),
    Look(*_INK, "D"),
    Look(*_INK, "X"),
)
_BARS = {BETTER: _BETTER, WORSE: _WORSE}
_POINTS = ((_MEDIAN, "0.5"), (_P99, "0.99"), (_MAXIMUM, "1"))
#: Of these positions of a rule the figure of all factors has the first and the last only.
_MANY = 4
_MICROSECOND = 1_000


def figures(effects: Effects) -> list[Figure]:
    """Return the figures that there are data for."""
    return [_cases(effects), *([_rules(effects)] if effects.slopes else [])]


def _cases(effects: Effects) -> Figure:
    names = _shown(effects)
    values = [
        ns for case in effects.cases if case.quantiles_ns for ns in case.quantiles_ns.values()
    ]
    x = Axis.of_times(effects.measured, min(values, default=0), max(values, default=_MICROSECOND))
    return Figure(
        key=effects.kind,
        title=f"{effects.measured} for each {effects.each}",
        caption=(
            "A bar reaches from the 25th to the 75th percentile. Its colour compares the median"
            " with that of the baseline (dashed line): green is better, orange is worse, grey is"
            " neither."
        ),
        panels=tuple(_panel(effects.of(loop), loop, names, x) for loop in effects.loops),
        names=_NAMES,
        looks=_LOOKS,
    )


def _panel(cases: Sequence[Case], loop: str, names: Sequence[str], x: Axis) -> Panel:
    """Return a lane for each case, the baseline at the top."""
    known = {case.name: case for case in cases if case.quantiles_ns is not None}
    lane_of = {name: len(names) - 1 - place for place, name in enumerate(names)}
    at = {
        lane_of[name]: {p: ns / x.unit_ns for p, ns in (known[name].quantiles_ns or {}).items()}
        for name in names
        if name in known
    }
    bars = tuple(
        Bars(
            _look(known[name]),
            lane_of[name],
            np.array([at[lane_of[name]]["0.25"]]),
            np.array([at[lane_of[name]]["0.75"]]),
        )
        for name in names
        if name in known
    )
    labels = [name if name in known else f"{name} (skipped)" for name in names]
    return Panel(
        x,
        Axis.of_lanes(tuple(map(units.printable, reversed(labels)))),
        tuple(_points(look, {lane: of[p] for lane, of in at.items()}) for look, p in _POINTS),
        bars=bars,
        title=units.printable(loop),
        uprights=(Rule(at[lane_of[names[0]]]["0.5"]),) if names[0] in known else (),
    )


def _look(case: Case) -> int:
    return _BARS.get(case.median.verdict, _SIMILAR) if case.median else _SIMILAR


def _points(look: int, of_lane: dict[int, float]) -> Line:
    """Return a point in each lane; the page wants them from left to right."""
    order = sorted(of_lane, key=lambda lane: of_lane[lane])
    values = np.array([of_lane[lane] for lane in order], dtype=float)
    return Line(look, values, np.array(order, dtype=float), draw="points")


def _shown(effects: Effects) -> list[str]:
    """Return the lanes: all cases, but of many positions of a rule only the first and the last."""
    cases = list({case.name: case for case in effects.cases}.values())
    ruled: dict[str, list[str]] = {}
    for case in cases:
        kind, colon, _ = case.value.partition(":")
        if colon:
            ruled.setdefault(f"{case.factor} {kind}", []).append(case.name)
    hidden = {name for names in ruled.values() if len(names) > _MANY for name in names[1:-1]}
    return [case.name for case in cases if case.name not in hidden]


def _rules(effects: Effects) -> Figure:
    loops = list(dict.fromkeys(slope.loop for slope in effects.slopes))
    kinds = list(dict.fromkeys(slope.firewall for slope in effects.slopes))
    positions = [one for slope in effects.slopes for one in slope.positions]
    last = max(one.rule for one in positions)
    x = Axis("Position of the rule that accepts the probes", "linear", 0.0, 1.05 * last)
    ends = [ns for slope in effects.slopes for ns in _fitted_ns(slope, last)]
    medians = [one.median_ns for one in positions]
    y = Axis.of_times("Median of a run", min(0.0, *ends), max(*medians, *ends))
    panels = []
    for loop in loops:
        lines = [
            line
            for slope in effects.slopes
            if slope.loop == loop
            for line in _fit(slope, kinds.index(slope.firewall), last, y)
        ]
        panels.append(Panel(x, y, tuple(lines), title=units.printable(loop)))
    return Figure(
        key="rules",
        title="Round trips over the position of the firewall rule",
        caption="A point is the median round trip of a run; the line is fitted through the points.",
        panels=tuple(panels),
        names=tuple(units.printable(kind) for kind in kinds),
    )


def _fit(slope: Slope, place: int, last: int, y: Axis) -> list[Line]:
    """Return the line and the points that it was fitted to."""
    ordered = sorted(slope.positions, key=lambda one: one.rule)
    points = Line(
        place,
        np.array([one.rule for one in ordered], dtype=float),
        np.array([one.median_ns for one in ordered], dtype=float) / y.unit_ns,
        draw="points",
    )
    fitted = np.array(_fitted_ns(slope, last)) / y.unit_ns
    return [Line(place, np.array([0.0, float(last)]), fitted, draw="line"), points]


def _fitted_ns(slope: Slope, last: int) -> tuple[float, float]:
    return slope.at_zero_ns, slope.at_zero_ns + slope.ns_per_rule * last
