"""The figures of a search: the path of the tail, and tail against watts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report import units
from tailtrim.report.figures.figure import MOST_BANDS, Axis, Band, Figure, Interval, Line, Panel
from tailtrim.report.figures.palette import MARKERS, Look, ordered
from tailtrim.report.figures.percentiles import reciprocal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.trim.report.curves import Curve
    from tailtrim.trim.report.findings import Findings
    from tailtrim.trim.report.spread import Spread
    from tailtrim.trim.report.tradeoff import Tried

_GREY = ("#7A828B", "#8D96A0")
_OTHERS = "other sets"
#: Longer names do not fit into the two columns of a legend on paper.
_ROOM_OF_NAME = 36
#: Free around points, as a share of what they span.
_ROOM = 0.08


def figures(found: Findings) -> list[Figure]:
    """Return the figures that there are data for."""
    drawn = [path(found.path, found.search.quantile), tradeoff(found)]
    return [one for one in drawn if one is not None]


def path(curves: Sequence[Curve], p: str) -> Figure | None:
    """Latency by percentile from the baseline to all that is kept."""
    curves = [one for one in curves if one.x.size]
    if not curves:
        return None
    ends = [one.value_ns[[0, -1]] for one in curves]
    y = Axis.of_times(
        "Latency",
        min(float(low) for low, _ in ends),
        max(float(high) for _, high in ends),
        typical_ns=min(float(np.median(one.value_ns)) for one in curves),
    )
    x = Axis("Percentile", "nines", 1.0, 1.25 * max(float(one.x[-1]) for one in curves))
    # Bands of more curves hide each other: the first and the last one keep theirs.
    few = len(curves) <= MOST_BANDS
    banded = {
        place
        for place, one in enumerate(curves)
        if len(one.runs) > 1 and (few or place in (0, len(curves) - 1))
    }
    looks = tuple(
        Look(*ordered(place, len(curves)), MARKERS[place % len(MARKERS)])
        for place in range(len(curves))
    )
    panel = Panel(
        x,
        y,
        tuple(Line(place, one.x, one.value_ns / y.unit_ns) for place, one in enumerate(curves)),
        tuple(
            _interval(place, reciprocal(p), one.tail, y.unit_ns, bars=place not in banded)
            for place, one in enumerate(curves)
            if reciprocal(p) <= one.x[-1]
        ),
        tuple(_band(place, curves[place], y.unit_ns) for place in sorted(banded)),
    )
    return Figure(
        key="path",
        title="The path of the tail: one change more with each curve",
        caption=_caption(p, few=few),
        panels=(panel,),
        names=tuple(units.printable(one.name) for one in curves),
        looks=looks,
    )


def _caption(p: str, *, few: bool) -> str:
    bands = "The band" if few else "The band of the first and the last curve"
    return (
        "Each curve is the geometric mean of the percentiles of its runs, as the tests of the"
        " search have it; lost packets count as infinitely late."
        f" {bands} is Student's 95 % interval over the runs, percentile by percentile."
        f" Markers are at p{units.percent(p)}{', with that interval as a bar' * (not few)}."
    )


def _interval(run: int, x: float, tail: Spread, unit_ns: int, *, bars: bool) -> Interval:
    low, high = (None if end is None else end / unit_ns for end in (tail.low, tail.high))
    # A single run does not say how runs differ: its mark is hollow and has no bar.
    return Interval(run, x, tail.value / unit_ns, low, high, bars=bars and low is not None)


def _band(run: int, curve: Curve, unit_ns: int) -> Band:
    """Return the interval from each percentile to the next, between which the curve only grows."""
    value, low, high = (
        side / unit_ns for side in (curve.value_ns, curve.low_ns[:-1], curve.high_ns[1:])
    )
    return Band(run, curve.x, low, high, value)


def tradeoff(found: Findings) -> Figure | None:
    """Tail against watts: a point for each set of changes that was tried."""
    points = found.tradeoff
    if len(points) < 2:  # noqa: PLR2004 - nothing to weigh
        return None
    named = [one for one in points if _is_named(one, found)]
    others = [one for one in points if one not in named]
    names = [_name(points.index(one) + 1, one, found) for one in named]
    names += [_OTHERS] if others else []
    places = {one.changes: place for place, one in enumerate(named)}
    y = _axis_of_tails(found, [one.tail_ns for one in points])
    x = _axis_of_watts([one.watts for one in points])
    lines, marks = [], []
    for one in points:
        place = places.get(one.changes, len(named))
        lines.append(_point(place, one, y.unit_ns))
        lines += _across(place, one, y.unit_ns)
        marks.append(_interval(place, one.watts.value, one.tail_ns, y.unit_ns, bars=True))
    looks = [
        Look(*ordered(place, max(len(named), 2)), MARKERS[place % len(MARKERS)])
        for place in range(len(named))
    ]
    return Figure(
        key="tradeoff",
        title=f"p{units.percent(found.search.quantile)} against watts",
        caption=(
            "A point is a set of changes that was tried: geometric mean of the tail and mean power"
            " while packets passed, each with a 95 % interval over its runs; that of the power has"
            " the meter's own uncertainty, too. A set of one run has no interval. Sets have a"
            " name where no other set has a shorter tail for as few watts; the numbers are those of"
            " the table."
        ),
        panels=(Panel(x, y, tuple(lines), tuple(marks)),),
        names=tuple(map(units.printable, names)),
        looks=(*looks, *([Look(*_GREY)] if others else [])),
    )


def _is_named(one: Tried, found: Findings) -> bool:
    return one.best or not one.changes or set(one.changes) == found.search.kept


def _name(number: int, one: Tried, found: Findings) -> str:
    """Name a set by its number in the table, and by its changes where there is room."""
    if not one.changes:
        return f"{number}: baseline"
    kept = "kept: " if set(one.changes) == found.search.kept else ""
    told = kept + " + ".join(one.changes)
    if len(told) > _ROOM_OF_NAME:
        told = f"{kept}{len(one.changes)} changes"
    return f"{number}: {told}"


def _point(place: int, one: Tried, unit_ns: int) -> Line:
    at = np.array([one.watts.value]), np.array([one.tail_ns.value / unit_ns])
    return Line(place, *at, draw="points")


def _across(place: int, one: Tried, unit_ns: int) -> Iterator[Line]:
    """Yield the interval of the watts."""
    if one.watts.low is not None and one.watts.high is not None:
        ends = np.array([one.watts.low, one.watts.high])
        yield Line(place, ends, np.full(2, one.tail_ns.value / unit_ns))


def _axis_of_tails(found: Findings, tails: Sequence[Spread]) -> Axis:
    ends = [end for one in tails for end in (one.value, one.low, one.high) if end is not None]
    label = f"p{units.percent(found.search.quantile)}"
    return Axis.of_times(label, min(ends), max(ends))


def _axis_of_watts(watts: Sequence[Spread]) -> Axis:
    ends = [end for one in watts for end in (one.value, one.low, one.high) if end is not None]
    room = _ROOM * (max(ends) - min(ends)) or 1.0
    return Axis("Power (W)", "linear", min(ends) - room, max(ends) + room, unit="W")
