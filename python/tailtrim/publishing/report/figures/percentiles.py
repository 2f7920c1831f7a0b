"""The figure of latency by percentile, with the interval along the whole curve."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures.distributions import latency_axis, measured, thinned
from tailtrim.publishing.report.figures.figure import (
    MOST_BANDS,
    Axis,
    Band,
    Figure,
    Interval,
    Line,
    Panel,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.report.inputs.run_tables import Floats, Integers, ReportedRun

#: Points of a line in a decade.
_FINE = 120


def percentiles(runs: Sequence[ReportedRun]) -> Figure | None:
    """Latency over 1/(1 - p), as HDR histograms are drawn."""
    runs = measured(runs)
    if not runs:
        return None
    shown = panel(runs)
    above = _above_floor(runs)
    return Figure(
        key="hdr",
        title="Latency by percentile",
        caption=_caption(runs, len(shown.bands)),
        panels=(shown,),
        choice="as measured" if above else "",
        others=(above,) if above else (),
    )


def _above_floor(runs: Sequence[ReportedRun]) -> Figure | None:
    """Each percentile less that of the floor; ``None`` where no run has one."""
    rows = []
    for run in runs:
        if run.floor is None or not run.floor.histogram[0].size:
            continue
        at = places(min(run.summary.samples, run.floor.summary.samples))
        above = quantiles(at, *run.ranks) - quantiles(at, *run.floor.ranks)
        rows.append((run.index, at, above))
    if not rows:
        return None
    y = Axis.of_times(
        "Latency above the floor",
        min(float(values.min()) for _, _, values in rows),
        max(float(values.max()) for _, _, values in rows),
        typical_ns=max(min(float(np.median(values)) for _, _, values in rows), 1.0),
    )
    x = Axis.of_percentiles(max(float(at[-1]) for _, at, _ in rows))
    return Figure(
        key="hdr-above-floor",
        title="Latency above the floor by percentile",
        caption=(
            "Each percentile less the same percentile of the floor: the wire in the device's place,"
            " with the same traffic. It is the difference of two percentiles, not the percentile of"
            " a difference, and has no interval here."
        ),
        panels=(Panel(x, y, tuple(Line(run, at, values / y.unit_ns) for run, at, values in rows)),),
        choice="above the floor",
    )


def panel(runs: Sequence[ReportedRun]) -> Panel:
    """Return the panel of runs that have samples."""
    y = latency_axis(runs)
    x = Axis.of_percentiles(max(run.summary.samples for run in runs))
    bands = {run.index: band for run in runs if (band := _band(run, y)) is not None}
    return Panel(
        x,
        y,
        tuple(line for run in runs for line in _lines(run, x, y)),
        tuple(
            interval for run in runs for interval in _intervals(run, y, bars=run.index not in bands)
        ),
        tuple(bands.values()),
    )


def _caption(runs: Sequence[ReportedRun], banded: int) -> str:
    confidence = ", ".join(
        sorted({f"{units.percent(run.summary.latency_ns.confidence)} %" for run in runs})
    )
    parts = ["A step for each sample; the line ends at the maximum."]
    if banded:
        parts.append(
            f"The band is the {confidence} confidence interval; where it fades, there is no bound"
            " on that side. It is computed at nine percentiles a decade and drawn from the lower"
            " bound of each to the upper bound of the next. Markers are the listed percentiles,"
            " hollow where there is no upper bound."
        )
        if banded > MOST_BANDS:
            parts.append(f"With more than {MOST_BANDS} runs in view, bands are left out.")
    if banded < len(runs):
        parts.append(
            f"Bars are the {confidence} confidence intervals at the listed percentiles"
            f"{' of runs whose directory has none for the curve' * bool(banded)}, with an arrow"
            " where the samples give no upper bound; between them no interval is drawn."
        )
    parts.append("The line is paler where the samples do not support the percentile.")
    return " ".join(parts)


def _lines(run: ReportedRun, x: Axis, y: Axis) -> Iterator[Line]:
    """Yield the quantile function: rank r of N holds from 1/(1 - (r - 1)/N) on."""
    latencies, counts = run.histogram
    samples = int(counts.sum())
    above = samples - (np.cumsum(counts) - counts)
    at = np.append(samples / above, float(samples))
    value = np.append(latencies, latencies[-1]) / y.unit_ns
    limit = _supported(run)
    split = int(np.searchsorted(at, limit, side="right"))
    joint = value[max(split - 1, 0)]
    if limit > 1:
        solid = np.append(at[:split], min(limit, samples)), np.append(value[:split], joint)
        yield Line(run.index, *thinned(*solid, x, y))
    if limit < samples:
        pale = np.append(limit, at[split:]), np.append(joint, value[split:])
        yield Line(run.index, *thinned(*pale, x, y), faded=True)


def _supported(run: ReportedRun) -> float:
    """Return up to where the samples support the percentiles."""
    quantiles = run.summary.latency_ns.quantiles
    return max((reciprocal(quantile.p) for quantile in quantiles if quantile.supported), default=1)


def _band(run: ReportedRun, y: Axis) -> Band | None:
    """Return the interval from each percentile of the table to the next.

    The quantile function does not fall, so between two percentiles it is at least what the first
    is and at most what the second is: the lower bound of the first and the upper bound of the
    second hold there with the confidence of the table. Before the first percentile there is only
    an upper bound, behind the last only a lower one.
    """
    table = run.quantiles()
    if table is None or not table.p:
        return None
    at = [1.0, *map(reciprocal, table.p)]
    value = [run.histogram[0][:1], table.value_ns]
    low, high = [np.nan, *table.low_ns], [*table.high_ns]
    if at[-1] < run.summary.samples:
        at.append(float(run.summary.samples))
        value.append(run.histogram[0][-1:])
        high.append(np.nan)
    else:
        low.pop()
    return Band(
        run.index,
        np.asarray(at),
        np.asarray(low) / y.unit_ns,
        np.asarray(high) / y.unit_ns,
        np.concatenate(value) / y.unit_ns,
    )


def _intervals(run: ReportedRun, y: Axis, *, bars: bool) -> Iterator[Interval]:
    for quantile in run.summary.latency_ns.quantiles:
        at = reciprocal(quantile.p)
        if quantile.value is not None and at <= run.summary.samples:
            told = quantile.value, quantile.low, quantile.high
            yield Interval.of_times(run.index, at, y, *told, bars=bars)


def reciprocal(p: str) -> float:
    """Return 1/(1 - p), where the axis of percentiles has p."""
    rest = 1 - Decimal(p)
    return float(1 / rest) if rest else float("inf")


def places(samples: int) -> Floats:
    """Return where on an axis of 1/(1 - p) so many samples have quantiles."""
    count = max(2, int(_FINE * np.log10(max(samples, 2))))
    at: Floats = np.logspace(0, np.log10(max(samples, 2)), count)
    return at


def quantiles(x: Floats, values: Integers, up_to: Integers) -> Floats:
    """Return the quantiles at 1 - 1/x of values, ascending, of which so many are at most each."""
    samples = int(up_to[-1])
    ranks = np.clip(samples - np.floor(samples / x), 1, samples)
    found: Floats = values[np.searchsorted(up_to, ranks)].astype(np.float64)
    return found
