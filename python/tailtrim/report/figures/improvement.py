"""The figure of relative improvement, as the papers have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report.figures.figure import Axis, Band, Figure, Line, Panel
from tailtrim.report.figures.percentiles import reciprocal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.compare import Comparison, Repetition
    from tailtrim.report.arrays import Floats, Integers

#: Points of a line in a decade.
_FINE = 120


def improvement(comparisons: Sequence[Comparison]) -> Figure | None:
    """Latency of A over that of B by percentile, as Figure 7 of "Ducked Tails" has it."""
    drawn = [(index, one) for index, one in enumerate(comparisons) if _supported(one) > 1]
    if not drawn:
        return None
    lines, bands = [], []
    most = 10.0
    for index, one in drawn:
        x, y = _curve(one)
        limit = _supported(one)
        most = max(most, float(x[-1]))
        split = int(np.searchsorted(x, limit, side="right"))
        lines.append(Line(index, x[:split], y[:split]))
        if split < x.size:
            lines.append(Line(index, x[split - 1 :], y[split - 1 :], faded=True))
        bands.append(_band(index, one))
    low = min(float(line.y.min()) for line in lines)
    high = max(float(line.y.max()) for line in lines)
    return Figure(
        key="improvement",
        title="Relative improvement by percentile",
        caption=(
            "Latency of A over that of B: at 100 % both are the same, above it B is faster. The"
            " band is the interval of each percentile alone. Paler beyond what both sides' samples"
            " support."
        ),
        panels=(
            Panel(
                Axis("Percentile", "nines", 1.0, 1.25 * most),
                _axis(low, high),
                tuple(lines),
                bands=tuple(bands),
                rules=(100.0,),
            ),
        ),
    )


def _axis(low: float, high: float) -> Axis:
    low, high = min(low, 100.0), max(high, 100.0)
    label = "Latency of A relative to B (%)"
    if high / low > 20:  # noqa: PLR2004 - a linear axis would flatten the rest
        return Axis(label, "log", low / 1.3, high * 1.3, unit="%")
    room = max(0.12 * (high - low), 2.0)
    return Axis(label, "linear", low - room, high + room, unit="%")


def _supported(comparison: Comparison) -> float:
    supported = [reciprocal(point.p) for point in comparison.curve if point.supported]
    return max(supported, default=1.0)


def _curve(comparison: Comparison) -> tuple[Floats, Floats]:
    sides = [_latencies(group.repetitions) for group in comparison.groups]
    fewest = min(side[1][-1] for side in sides)
    x = np.logspace(0, np.log10(fewest), max(2, int(_FINE * np.log10(fewest))))
    a, b = (_quantiles(x, *side) for side in sides)
    positive = (a > 0) & (b > 0)
    return x[positive], 100.0 * a[positive] / b[positive]


def _latencies(repetitions: Sequence[Repetition]) -> tuple[Integers, Integers]:
    columns = [run.samples()["latency_ns"].to_numpy() for run in repetitions]
    values, counts = np.unique(np.concatenate(columns), return_counts=True)
    return values, np.cumsum(counts)


def _quantiles(x: Floats, values: Integers, up_to: Integers) -> Floats:
    """Return the quantiles at 1 - 1/x by nearest rank."""
    samples = int(up_to[-1])
    ranks = np.clip(samples - np.floor(samples / x), 1, samples)
    quantiles: Floats = values[np.searchsorted(up_to, ranks)].astype(np.float64)
    return quantiles


def _band(index: int, comparison: Comparison) -> Band:
    """Return the interval at each point of the curve, in a cell around it."""
    points = [point for point in comparison.curve if point.ratio]
    at = np.array([reciprocal(point.p) for point in points])
    between = np.sqrt(at[1:] * at[:-1])
    edges = np.concatenate([[1.0], between, at[-1:] * 1.05])

    def percent(ratios: list[float | None]) -> Floats:
        return np.array([100.0 / ratio if ratio else np.nan for ratio in ratios])

    value = percent([point.ratio for point in points])
    return Band(
        index,
        edges,
        percent([point.high for point in points]),
        percent([point.low for point in points]),
        np.append(value, value[-1:]),
    )
