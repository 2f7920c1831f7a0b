"""Predicted latency against load, with R_max and measured values: :func:`predicted_load`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report import units
from tailtrim.report.figures.figure import Axis, Band, Figure, Interval, Line, Panel, Rule
from tailtrim.report.figures.palette import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.queueing import PredictedQuantile, Prediction
    from tailtrim.report.arrays import Floats

_SHOWN = ("0.5", "0.99", "0.999", "0.9999")
_KILO = 1_000
_CELLS = 200


def predicted_load(found: Prediction) -> Figure | None:
    """Return latency against load; ``None`` where less than two loads are predicted."""
    known = [point for point in found.points if point.quantiles]
    if len(known) < 2:  # noqa: PLR2004 - a curve has two points
        return None
    measured = [one for one in found.compared if one.p in _SHOWN]
    ends_ns = [
        edge
        for point in known
        for one in point.quantiles
        if one.p in _SHOWN
        for edge in (one.low_ns, one.high_ns)
    ]
    ends_ns += [float(one.measured_ns) for one in measured if _near(one.measured_ns, ends_ns)]
    y = Axis.of_times("Latency", min(ends_ns), max(ends_ns))
    most = max([found.r_max_pps.high, *(one.rate_pps for one in measured)])
    x = Axis("Load (kpkt/s)", "linear", 0.0, 1.05 * most / _KILO, unit="kpkt/s")
    lines: list[Line] = []
    bands: list[Band] = []
    intervals: list[Interval] = []
    for place, p in enumerate(_SHOWN):
        curve = [
            (point.rate_pps / _KILO, one)
            for point in known
            for one in point.quantiles
            if one.p == p
        ]
        if len(curve) > 1:
            lines.append(_line(place, curve, y))
            bands.append(_band(place, curve, y))
        intervals.extend(
            Interval(
                place,
                one.rate_pps / _KILO,
                one.measured_ns / y.unit_ns,
                _edge(one.measured_low_ns, y),
                _edge(one.measured_high_ns, y),
            )
            for one in measured
            if one.p == p
        )
    r_max = units.rate(found.r_max_pps.value)
    changed = "".join(f"\n{units.printable(one)}" for one in found.changes)
    return Figure(
        key="predicted",
        title="Predicted latency against load",
        caption=_caption(found),
        panels=(
            Panel(
                x,
                y,
                tuple(lines),
                tuple(intervals),
                tuple(bands),
                uprights=(Rule(found.r_max_pps.value / _KILO, f"R_max {r_max} kpkt/s{changed}"),),
            ),
        ),
        names=tuple(f"{units.percent(p)} %" for p in _SHOWN),
        looks=distinct(len(_SHOWN)),
    )


def _caption(found: Prediction) -> str:
    if not found.changes:
        return "Lines and bands are predicted from one run; marks with bars were measured."
    changed = ", ".join(found.changes)
    told = "marks with bars were measured as it was."
    return f"Lines and bands are predicted from one run, {changed}; {told}"


# A device that is overloaded would leave no room for the rest.
_FAR = 20


def _near(measured_ns: int, ends_ns: list[float]) -> bool:
    return measured_ns < _FAR * max(ends_ns)


def _edge(ns: int | None, y: Axis) -> float | None:
    return None if ns is None else ns / y.unit_ns


def _line(place: int, curve: list[tuple[float, PredictedQuantile]], y: Axis) -> Line:
    at, values = zip(*((rate, one.value_ns / y.unit_ns) for rate, one in curve), strict=True)
    return Line(place, np.array(at), np.array(values), draw="line")


def _band(place: int, curve: list[tuple[float, PredictedQuantile]], y: Axis) -> Band:
    told = tuple(
        np.array([getattr(one, edge) for _, one in curve]) / y.unit_ns
        for edge in ("value_ns", "low_ns", "high_ns")
    )
    return band(place, np.array([rate for rate, _ in curve]), told)


def band(place: int, at: Floats, told: Sequence[Floats]) -> Band:
    """Return value, low and high along an axis, in cells so narrow that edges look like lines."""
    value, low, high = told
    edges = np.linspace(at[0], at[-1], _CELLS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return Band(
        place,
        edges,
        np.interp(middles, at, low),
        np.interp(middles, at, high),
        np.interp(edges, at, value),
    )
