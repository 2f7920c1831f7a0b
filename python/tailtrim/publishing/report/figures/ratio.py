"""Figures of comparisons: both tails, and the ratio of their percentiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures.figure import Axis, Band, Figure, Line, Panel, Rule
from tailtrim.publishing.report.figures.looks import DARK, LIGHT, MARKERS, Look
from tailtrim.publishing.report.figures.percentiles import places, quantiles, reciprocal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.compare import Comparison, Repetition
    from tailtrim.publishing.report.inputs.run_tables import Floats, Integers

_A, _B, _RATIO = range(3)
_LOOKS = (
    Look(LIGHT[0], DARK[0], MARKERS[0]),
    Look(LIGHT[1], DARK[1], MARKERS[1]),
    Look("#16191D", "#E8EAED", MARKERS[2]),
)
_SAME = 1.0
_WIDER = 2.5
_CAPTION = (
    "B / A is the latency of B over that of A at the same percentile: above 1, B is slower. The"
    " band is the interval of each percentile alone. Lines are paler where the samples of one side"
    " do not support the percentile."
)


def ratios(comparisons: Sequence[Comparison]) -> Figure | None:
    """Latency of B over that of A by percentile, of all comparisons; as the papers have it."""
    drawn = [(index, one) for index, one in enumerate(comparisons) if _supported(one) > 1]
    if not drawn:
        return None
    most = max(float(_curve(one)[0][-1]) for _, one in drawn)
    return Figure(
        key="ratio",
        title="Ratio B / A by percentile",
        caption=_CAPTION,
        panels=(_ratio(drawn, Axis.of_percentiles(most)),),
    )


def tails(comparison: Comparison, number: int) -> Figure | None:
    """Both tails over each other, and beneath their ratio; ``number`` names its files."""
    sides = [_latencies(group.repetitions) for group in comparison.groups]
    if not all(values.size for values, _ in sides):
        return None
    x = Axis.of_percentiles(max(float(up_to[-1]) for _, up_to in sides))
    medians = [float(quantiles(np.array([2.0]), *side)[0]) for side in sides]
    y = Axis.of_times(
        "Latency",
        min(int(values[0]) for values, _ in sides),
        max(int(values[-1]) for values, _ in sides),
        typical_ns=min(medians),
    )
    lines: list[Line] = []
    for place, (values, up_to) in zip((_A, _B), sides, strict=True):
        at = places(int(up_to[-1]))
        lines += _split(place, at, quantiles(at, values, up_to) / y.unit_ns, _supported(comparison))
    panels = [Panel(x, y, tuple(lines))]
    if _supported(comparison) > 1:
        panels.append(_ratio([(_RATIO, comparison)], x))
    names = (f"A: {comparison.a.name}", f"B: {comparison.b.name}", "B / A")
    return Figure(
        key=f"tails-{number}",
        title="Latency by percentile, and the ratio B / A",
        caption=_CAPTION,
        panels=tuple(panels),
        names=tuple(map(units.printable, names)),
        looks=_LOOKS,
    )


def _ratio(drawn: Sequence[tuple[int, Comparison]], x: Axis) -> Panel:
    lines = [line for index, one in drawn for line in _split(index, *_curve(one), _supported(one))]
    bands = tuple(_band(index, one) for index, one in drawn)
    drawn_y = np.concatenate([line.y for line in lines])
    low, high = float(drawn_y.min()), float(drawn_y.max())
    # An interval is drawn whole unless it would flatten the lines.
    edges = np.concatenate([side for band in bands for side in (band.low, band.high)])
    edges = edges[(edges >= low / _WIDER) & (edges <= high * _WIDER)]
    low, high = float(edges.min(initial=low)), float(edges.max(initial=high))
    return Panel(x, _axis(low, high), tuple(lines), bands=bands, rules=(Rule(_SAME),))


def _split(index: int, x: Floats, y: Floats, limit: float) -> list[Line]:
    """Return a line, and from the limit on a pale one."""
    split = int(np.searchsorted(x, limit, side="right"))
    solid = [Line(index, x[:split], y[:split])] if split else []
    if split == x.size:
        return solid
    first = max(split - 1, 0)
    return [*solid, Line(index, x[first:], y[first:], faded=True)]


def _axis(low: float, high: float) -> Axis:
    low, high = min(low, _SAME), max(high, _SAME)
    label = "B / A"
    if high / low > 20:  # noqa: PLR2004 - a linear axis would flatten the rest
        return Axis(label, "log", low / 1.3, high * 1.3)
    room = max(0.12 * (high - low), 0.02)
    return Axis(label, "linear", max(low - room, 0.0), high + room)


def _supported(comparison: Comparison) -> float:
    supported = [reciprocal(point.p) for point in comparison.curve if point.supported]
    return max(supported, default=1.0)


def _curve(comparison: Comparison) -> tuple[Floats, Floats]:
    sides = [_latencies(group.repetitions) for group in comparison.groups]
    x = places(int(min(up_to[-1] for _, up_to in sides)))
    a, b = (quantiles(x, *side) for side in sides)
    positive = (a > 0) & (b > 0)
    return x[positive], b[positive] / a[positive]


def _latencies(repetitions: Sequence[Repetition]) -> tuple[Integers, Integers]:
    columns = [run.samples()["latency_ns"].to_numpy() for run in repetitions]
    values, counts = np.unique(np.concatenate(columns), return_counts=True)
    return values, np.cumsum(counts)


def _band(index: int, comparison: Comparison) -> Band:
    """Return the interval at each point of the curve, in a cell around it."""
    points = [point for point in comparison.curve if point.ratio]
    at = np.array([reciprocal(point.p) for point in points])
    between = np.sqrt(at[1:] * at[:-1])
    edges = np.concatenate([[1.0], between, at[-1:] * 1.05])

    value, low, high = (
        np.array([getattr(point, name) for point in points], dtype=float)
        for name in ("ratio", "low", "high")
    )
    return Band(index, edges, low, high, np.append(value, value[-1:]))
