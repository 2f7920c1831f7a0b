"""A prediction in lines of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.publishing.report import wording
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tailtrim.analysis.queueing import Most, PredictedQuantile, Prediction, Promise

_RATE = Column("kpkt/s")
# Causes that are listed in text; the JSON form has all.
_CAUSES = 8
_BASIS = {
    "queued": "mean of packets that waited",
    "floor": "median latency less that of the floor",
    "latency": "mean of the whole latency",
}


def lines(found: Prediction) -> Iterator[str]:
    """Return what ``tailtrim predict`` prints, line by line."""
    if found.changes:
        yield f"What if: {'; '.join(found.changes)}."
        yield ""
    r_max = found.r_max_pps.scaled(1e-3)
    most = units.INFINITE if math.isinf(r_max.high) else f"{r_max.high:,.1f}"
    yield f"R_max       {r_max.value:,.1f} kpkt/s ({r_max.low:,.1f} to {most})"
    t_cpu = found.t_cpu_ns
    style = units.Times.of([[t_cpu.value, t_cpu.low, t_cpu.high]])
    told = style.bounded(t_cpu.value, t_cpu.low, t_cpu.high)
    yield f"t_CPU       {told} a packet, {_BASIS[found.basis]}"
    yield f"transport   {units.time(found.transport_ns)}"
    stolen = found.stolen_us_per_s
    if found.stolen:
        yield f"stolen      {stolen.value:,.1f} µs/s ({stolen.low:,.1f} to {stolen.high:,.1f})"
    else:
        yield "stolen      part of t_CPU: the run has no trace"
    for one in found.stolen[:_CAUSES]:
        low, high = one.us_per_s.low, one.us_per_s.high
        name = units.printable(one.cause)
        yield f"  {one.us_per_s.value:>10,.1f} µs/s ({low:,.1f} to {high:,.1f})  {name}"
    rest = [one.us_per_s.value for one in found.stolen[_CAUSES:]]
    if rest:
        yield f"  {sum(rest):>10,.1f} µs/s  {len(rest)} others"
    if found.batch > 1:
        least = " or more: its bursts have no more packets" if found.batch_least else ""
        yield f"batch       up to {found.batch} packets{least}"
    yield ""
    yield from _points(found)
    if found.positions:
        yield ""
        yield from _positions(found)
    if found.compared:
        yield ""
        yield from _compared(found)
    if found.promise is not None:
        yield ""
        yield from _promise(found.promise)


def _points(found: Prediction) -> Iterator[str]:
    burst = f" in bursts of {found.burst}" if found.burst > 1 else ""
    rows = []
    every = [one for point in found.points for one in point.quantiles]
    style = _style(every)
    for point in found.points:
        known = {one.p: one for one in point.quantiles}
        state = "" if point.state == "fits" else point.state
        cells = [_quantile(known.get(p), style) for p in wording.SHOWN]
        shown = (
            [*cells, state] if known else [state or "too few stalls", *[""] * len(wording.SHOWN)]
        )
        rows.append(Row(units.rate(point.rate_pps), shown))
    heads = [*(f"{units.percent(p)} %" for p in wording.SHOWN), ""]
    yield from Table([_RATE, *(Column(head, kind="left") for head in heads)], rows).lines()
    yield f"Percentiles of latency in {style.unit}{burst}, with their 95 % bands."


def _style(found: Iterable[PredictedQuantile | None]) -> units.Times:
    return units.Times.of([one.value_ns, one.low_ns, one.high_ns] for one in found if one)


def _quantile(one: PredictedQuantile | None, style: units.Times) -> str:
    return units.NONE if one is None else _span(style, one.value_ns, one.low_ns, one.high_ns)


def _span(style: units.Times, value: float, low: float | None, high: float | None) -> str:
    return f"{style.number(value)} ({style.bound(low)} to {style.bound(high)})"


def _positions(found: Prediction) -> Iterator[str]:
    style = _style(of for one in found.positions for of in (one.p50, one.p99))
    rows = [
        Row(
            units.rate(one.rate_pps),
            [str(one.position), _quantile(one.p50, style), _quantile(one.p99, style)],
        )
        for one in found.positions
    ]
    columns = [_RATE, Column("position"), *(Column(p, kind="left") for p in ("50 %", "99 %"))]
    yield from Table(columns, rows).lines()
    yield f"Latency by position in the burst in {style.unit}."


def _compared(found: Prediction) -> Iterator[str]:
    as_it_was = " as it was" if found.changes else ""
    shown = [one for one in found.compared if one.p in wording.SHOWN]
    style = units.Times.of(
        [
            *([one.measured_ns, one.measured_low_ns, one.measured_high_ns] for one in shown),
            *(
                [one.predicted.value_ns, one.predicted.low_ns, one.predicted.high_ns]
                for one in shown
                if one.predicted
            ),
        ]
    )
    rows = [
        Row(
            units.rate(one.rate_pps),
            [
                units.NONE if one.loss is None else units.about(one.loss),
                f"{units.percent(one.p)} %",
                _quantile(one.predicted, style) if one.predicted else "overload or too few stalls",
                _span(style, one.measured_ns, one.measured_low_ns, one.measured_high_ns),
                # With changes, the device that was measured is another one.
                "missed" if one.misses and not found.changes else "",
            ],
        )
        for one in shown
    ]
    heads = (f"predicted {style.unit}", f"measured{as_it_was}", "")
    columns = [_RATE, Column("loss %"), Column(""), *(Column(head, kind="left") for head in heads)]
    yield from Table(columns, rows).lines()
    low, high = found.found_pps
    begun = "more than" if high is None else "up to"
    # The highest rate that was found is that of the device as it was.
    if not found.changes and (low is not None or high is not None):
        span = [units.rate(rate) for rate in (low, high) if rate is not None]
        told = f"{begun} {span[0]}" if len(span) == 1 else " to ".join(span)
        predicted = units.rate(found.r_max_pps.value)
        yield f"R_max: predicted {predicted}, found {told} kpkt/s (0.5 % loss)"


def _promise(promise: Promise) -> Iterator[str]:
    text = units.printable(promise.text)
    yield f"{text} holds"
    yield f"  up to {_most(promise.rate, 1e-3, 1)} kpkt/s"
    rate = units.rate(promise.rate_pps)
    yield f"  in bursts of up to {_most(promise.burst, 1, 0)} packets at {rate} kpkt/s"


def _most(most: Most, scale: float, places: int) -> str:
    """Return the most that holds, and between which numbers the bands put it."""
    value, surely, perhaps = (
        "none" if one is None else f"{scale * one:,.{places}f}"
        for one in (most.value, most.surely, most.perhaps)
    )
    more = " or more" if most.beyond else ""
    return f"{value}{more} ({surely} to {perhaps})"
