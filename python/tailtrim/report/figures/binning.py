"""From many values to as many as a figure can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tailtrim.report.arrays import Floats, Integers
    from tailtrim.report.figures.figure import Axis

# Finer than the pixels of any screen or column of paper.
_CELLS = 1500

# Enough for the shape; in more, rare latencies are a comb of single packets.
_MOST_BINS = 150
_SMALLEST_BIN_NS = 10
_BINS_A_DECADE = 25


def thinned(x: Floats, y: Floats, x_axis: Axis, y_axis: Axis) -> tuple[Floats, Floats]:
    """Drop the points of a monotone line that fall into the same cell as the one before."""
    if not x.size:
        return x, y
    column = np.floor(_place(x, x_axis) * _CELLS)
    row = np.floor(_place(y, y_axis) * _CELLS)
    keep = np.ones(x.size, dtype=bool)
    keep[1:] = (np.diff(column) != 0) | (np.diff(row) != 0)
    keep[-1] = True
    return x[keep], y[keep]


def _place(values: Floats, axis: Axis) -> Floats:
    """Return where on the axis values lie, from 0 to 1."""
    if axis.scale == "linear":
        return (values - axis.low) / (axis.high - axis.low)
    low, high = np.log10(axis.low), np.log10(axis.high)
    place: Floats = (np.log10(values) - low) / (high - low)
    return place


def edges(low_ns: int, high_ns: int, axis: Axis) -> Integers:
    """Return the edges of bins from ``low_ns`` to beyond ``high_ns``.

    On a linear axis they are 10 ns apart, or the next of 20, 50, … that needs at most 150; on a
    logarithmic one there are 25 in each decade.
    """
    if axis.scale == "log":
        first, last = np.floor(np.log10(low_ns) * _BINS_A_DECADE), np.log10(high_ns + 1)
        exponents = np.arange(first, np.ceil(last * _BINS_A_DECADE) + 1) / _BINS_A_DECADE
        return np.unique(np.round(10.0**exponents).astype(np.int64))
    width = width_ns(low_ns, high_ns)
    return np.arange(low_ns // width, high_ns // width + 2, dtype=np.int64) * width


def width_ns(low_ns: int, high_ns: int) -> int:
    """Return the width of bins on a linear axis."""
    power = _SMALLEST_BIN_NS
    while True:
        for step in (1, 2, 5):
            if (high_ns - low_ns) // (step * power) < _MOST_BINS:
                return step * power
        power *= 10


def binned(values: Integers, counts: Integers, bins: Integers) -> tuple[Integers, Integers]:
    """Return where the count changes, and the count from there on; zero before and after."""
    places = np.searchsorted(bins, values, side="right") - 1
    heights = np.zeros(bins.size, dtype=np.int64)
    np.add.at(heights, places, counts)
    first, last = int(places[0]), int(places[-1]) + 2
    bins, heights = bins[first:last], heights[first:last]
    change = np.ones(bins.size, dtype=bool)
    change[1:] = np.diff(heights) != 0
    return np.append(bins[0], bins[change]), np.append(0, heights[change])
