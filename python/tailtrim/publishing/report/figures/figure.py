"""Figures as values, apart from their drawing.

The static figures (:mod:`.drawing`), their CSV (:mod:`.values`) and the interactive figures
(:mod:`~tailtrim.publishing.report.pages.page`) are made from the same values, so that they cannot
differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from tailtrim.publishing.report.figures.looks import Look
    from tailtrim.publishing.report.inputs.run_tables import Floats

Scale = Literal["linear", "log", "nines"]

# Where the largest value is more than so many times the typical one, a linear axis flattens it.
_LINEAR_RATIO = 35

# Share of a linear axis that is left free beside the data: arrows and markers need some.
_ROOM = 0.08

#: Bands of more lines than these hide each other, and are not drawn; intervals.js has the same.
MOST_BANDS = 4

#: More digits than a screen has pixels.
DIGITS = 7

#: Cells of a band between points.
_CELLS = 200

_MICROSECOND = 1_000
_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: ``nines`` is 1/(1 - p), logarithmic, labelled with the percentile.

    ``unit`` is what a single value read off the axis is followed by, ``digits`` are those that the
    page keeps of a value. An axis with ``names`` has lanes: at 0, 1, … stands the name.
    """

    label: str
    scale: Scale
    low: float
    high: float
    unit_ns: int = 1
    unit: str = ""
    digits: int = DIGITS
    names: tuple[str, ...] = ()

    @classmethod
    def of_lanes(cls, names: tuple[str, ...]) -> Axis:
        """Return an axis of lanes, the first of them at the foot."""
        return cls("", "linear", -0.6, len(names) - 0.4, names=names)

    @classmethod
    def of_percentiles(cls, most: float) -> Axis:
        """Return the axis of percentiles for at most so many samples."""
        return cls("Percentile", "nines", 1.0, 1.25 * max(most, 10.0))

    @classmethod
    def of_times(
        cls,
        label: str,
        low_ns: float,
        high_ns: float,
        *,
        typical_ns: float | None = None,
        from_zero: bool = False,
    ) -> Axis:
        """Choose unit, scale and limits for times from ``low_ns`` to ``high_ns``.

        The axis is logarithmic where the largest value is far from the typical one, by default
        the smallest. A linear axis starts at zero unless that would waste half of it;
        ``from_zero`` makes it start there in any case.
        """
        unit_ns, unit = (
            (_MICROSECOND, "µs") if high_ns < 10 * _MILLISECOND else (_MILLISECOND, "ms")
        )
        low, high = low_ns / unit_ns, high_ns / unit_ns
        label = f"{label} ({unit})"
        typical = low if typical_ns is None else typical_ns / unit_ns
        if low > 0 and high / typical > _LINEAR_RATIO:
            return cls(
                label, "log", _nice_below(0.95 * low), 1 / _nice_below(0.95 / high), unit_ns, unit
            )
        foot = low if low < 0 or (low > high / 2 and not from_zero) else 0.0
        room = _ROOM * (high - foot) or 1.0
        return cls(label, "linear", foot - room if foot else 0.0, high + room, unit_ns, unit)

    @classmethod
    def of_counts(cls, label: str, most: int, *, unit: str, scale: Scale = "linear") -> Axis:
        """Return an axis for counts up to ``most``; on a logarithmic one zero is at its foot."""
        most = max(most, 1)
        if scale == "log":
            return cls(label, scale, 0.5, 1.7 * most, unit=unit)
        return cls(label, scale, 0.0, 1.1 * most, unit=unit)


@dataclass(frozen=True, slots=True)
class Line:
    """A line or cloud of points of a run; ``part`` tells lines of one run apart.

    ``steps`` hold a value until the next point.
    """

    run: int
    x: Floats
    y: Floats
    draw: Literal["steps", "points", "line"] = "steps"
    part: Literal["", "p50", "p99", "max", "ingress", "egress", "without"] = ""
    faded: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its confidence interval; ``None`` where the samples give no bound.

    Without ``bars`` only the value is marked: a :class:`Band` shows the interval.
    """

    run: int
    x: float
    value: float
    low: float | None
    high: float | None
    bars: bool = True

    @classmethod
    def of_times(  # noqa: PLR0913, PLR0917 - its fields
        cls,
        run: int,
        x: float,
        y_axis: Axis,
        value_ns: float,
        low_ns: float | None,
        high_ns: float | None,
        *,
        bars: bool = True,
    ) -> Interval:
        """Return the interval of a time on an axis of times."""
        low, high = (None if ns is None else ns / y_axis.unit_ns for ns in (low_ns, high_ns))
        return cls(run, x, value_ns / y_axis.unit_ns, low, high, bars=bars)


@dataclass(frozen=True, slots=True)
class Band:
    """Confidence intervals along a line, in cells that lie side by side.

    Cell ``i`` reaches from ``x[i]`` to ``x[i + 1]``, and there from ``low[i]`` to ``high[i]``; NaN
    where the samples give no bound. ``value`` is the line at the edges ``x``.
    """

    run: int
    x: Floats
    low: Floats
    high: Floats
    value: Floats

    @classmethod
    def along(cls, run: int, x: Floats, value: Floats, low: Floats, high: Floats) -> Band:
        """Return a band between points, in cells so narrow that its edges look like lines."""
        edges = np.linspace(x[0], x[-1], _CELLS + 1)
        middles = (edges[1:] + edges[:-1]) / 2
        low, high = np.interp(middles, x, low), np.interp(middles, x, high)
        return cls(run, edges, low, high, np.interp(edges, x, value))


@dataclass(frozen=True, slots=True)
class Bars:
    """Times from ``start`` to ``end`` in a lane of an axis that has names."""

    run: int
    lane: int
    start: Floats
    end: Floats


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across a panel at a value; one with a ``label`` is dashed.

    ``until`` is where on the other axis it ends, ``None`` for the whole panel.
    """

    at: float
    label: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes; ``rules`` are at values of y, ``uprights`` at values of x."""

    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    intervals: tuple[Interval, ...] = ()
    bands: tuple[Band, ...] = ()
    bars: tuple[Bars, ...] = ()
    title: str = ""
    rules: tuple[Rule, ...] = ()
    uprights: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: ``key`` names its files; panels are one above the other and share their x.

    What it shows are the runs of a report, or what its own ``names`` say: ``run`` is the place
    among these then, and among ``looks``. ``others`` show the same in another way: the page lets
    readers choose, by what each calls its ``choice``.
    """

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    names: tuple[str, ...] = ()
    looks: tuple[Look, ...] = ()
    choice: str = ""
    others: tuple[Figure, ...] = ()

    @property
    def used(self) -> tuple[int, ...]:
        """The places among :attr:`names` that the figure shows."""
        shown = {
            run
            for panel in self.panels
            for run in (
                *(line.run for line in panel.lines),
                *(interval.run for interval in panel.intervals),
                *(bars.run for bars in panel.bars),
            )
        }
        return tuple(sorted(shown))


def _nice_below(value: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not above ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return max((step * power for step in (1, 2, 5) if step * power <= value), default=power)
