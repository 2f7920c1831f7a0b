"""Predicted latency against load, with R_max and measured values: :func:`predicted_load`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures.figure import (
    Axis,
    Band,
    Figure,
    Interval,
    Line,
    Panel,
    Rule,
)
from tailtrim.publishing.report.figures.looks import distinct

if TYPE_CHECKING:
    from tailtrim.analysis.queueing import Prediction

_SHOWN = ("0.5", "0.99", "0.999", "0.9999")
_KILO = 1_000


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
    r_max_pps = found.r_max_pps
    end_pps = r_max_pps.value if math.isinf(r_max_pps.high) else r_max_pps.high
    rates_pps = (*(one.rate_pps for one in measured), *(point.rate_pps for point in known))
    most = max(end_pps, *rates_pps)
    x = Axis("Load (kpkt/s)", "linear", 0.0, 1.05 * most / _KILO, unit="kpkt/s")
    lines: list[Line] = []
    bands: list[Band] = []
    for place, p in enumerate(_SHOWN):
        curve = [(point.rate_pps, one) for point in known for one in point.quantiles if one.p == p]
        if len(curve) > 1:
            at = np.array([rate for rate, _ in curve]) / _KILO
            told = [
                np.array([getattr(one, end) for _, one in curve]) / y.unit_ns
                for end in ("value_ns", "low_ns", "high_ns")
            ]
            lines.append(Line(place, at, told[0], draw="line"))
            bands.append(Band.along(place, at, *told))
    intervals = [
        Interval.of_times(
            _SHOWN.index(one.p),
            one.rate_pps / _KILO,
            y,
            one.measured_ns,
            one.measured_low_ns,
            one.measured_high_ns,
        )
        for one in measured
    ]
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
