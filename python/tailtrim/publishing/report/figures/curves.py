"""Shapes of what a panel shows: lines, bands, intervals and bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.publishing.report.figures.looks import dash
from tailtrim.publishing.report.figures.shapes import Box, Path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.report.figures.figure import Axis, Band, Bars, Interval, Line
    from tailtrim.publishing.report.figures.looks import Look
    from tailtrim.publishing.report.figures.shapes import Shape
    from tailtrim.publishing.report.inputs.run_tables import Flags, Floats

_MANY_POINTS, _FEW_POINTS = 2_000, 50
# Dots of a cloud that lie in the same cell of so many points are one.
_CELL = 0.2
# Translucent, so that bands of several runs show through each other.
_BAND_OPACITY = 0.2
# Length over which a band without a bound fades, as a share of the axis; intervals.js has the same.
_FADE = 0.12
_FADE_STEPS = 12
# Share of its lane that a bar fills; lanes.js has the same.
_BAR = 0.64
# Dots across a figure, about; lanes.js has the same transparency for what is shorter than one.
_DOTS = 1_000
_SHORT_OPACITY = 0.4
# Half a cap of an error bar; from a mark to the point of its arrow, and half its head.
_CAP, _ARROW, _HEAD = 2.2, 15.0, 2.2
_MARK, _EDGE = 3.6, 0.8


@dataclass(frozen=True, slots=True)
class Place:
    """A panel's rectangle and its axes."""

    box: Box
    x: Axis
    y: Axis

    def points(self, x: Floats, y: Floats) -> Floats:
        """Return where values lie, as an array of shape (n, 2)."""
        return np.column_stack([self.across(x), self.down(y)])

    def across(self, x: Floats) -> Floats:
        """Return how far from the left values of x lie."""
        return self.box.left + _share(x, self.x) * (self.box.right - self.box.left)

    def down(self, y: Floats) -> Floats:
        """Return how far from the top values of y lie; on a logarithmic axis 0 is at its foot."""
        y = np.maximum(y, self.y.low) if self.y.scale != "linear" else y
        return self.box.bottom - _share(y, self.y) * (self.box.bottom - self.box.top)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a pair of values lies."""
        return float(self.across(np.array([x]))[0]), float(self.down(np.array([y]))[0])


def _share(values: Floats, axis: Axis) -> Floats:
    if axis.scale == "linear":
        share = (values - axis.low) / (axis.high - axis.low)
    else:
        share = np.log(values / axis.low) / np.log(axis.high / axis.low)
    # Far beyond the edge is beyond it, too.
    clipped: Floats = np.clip(share, -1, 2)
    return clipped


def line_shapes(line: Line, place: Place, look: Look) -> Iterator[Shape]:
    """Draw a line, with a mark at each point where it is between points; or a cloud of points."""
    many = line.x.size
    points = place.points(line.x, line.y)
    if line.draw == "points":
        size = 1.6 if many > _MANY_POINTS else 4.0 if many < _FEW_POINTS else 2.6
        # In a cloud all are round: at its size no other shape is seen.
        marker = look.marker if many < _FEW_POINTS else "o"
        cells = np.unique(np.rint(points[np.isfinite(points).all(axis=1)] / _CELL), axis=0) * _CELL
        dots = points if many < _FEW_POINTS else cells
        yield from marks(dots, marker, size, look.light, opacity=0.75, clip=place.box)
        return
    parts = list(_whole(_stepped(points) if line.draw == "steps" else points))
    yield Path(
        parts,
        stroke=look.light,
        width=1.1,
        dash=dash(look, line.part),
        opacity=0.55 if line.faded else 1,
        clip=place.box,
    )
    if line.draw == "line":
        yield from marks(points, look.marker, 3, look.light)


def _stepped(points: Floats) -> Floats:
    """Return a line that holds its height until the next point."""
    steps = np.repeat(points, 2, axis=0)
    held = np.column_stack([steps[1:, 0], steps[:-1, 1]])
    return held if len(points) > 1 else points


def _whole(points: Floats) -> Iterator[Floats]:
    """Yield the parts of a line between points that are not there."""
    there = np.isfinite(points).all(axis=1)
    for part in np.split(points, np.flatnonzero(np.diff(there)) + 1):
        if len(part) and np.isfinite(part[0]).all():
            yield part


#: Corners of marks, of a size of 1.
_OUTLINES: dict[str, Sequence[tuple[float, float]]] = {
    "s": ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)),
    "^": ((0, -0.5), (0.5, 0.5), (-0.5, 0.5)),
    "v": ((0, 0.5), (0.5, -0.5), (-0.5, -0.5)),
    "D": ((0, -0.7), (0.7, 0), (0, 0.7), (-0.7, 0)),
    "P": (
        *((-0.17, -0.5), (0.17, -0.5), (0.17, -0.17), (0.5, -0.17), (0.5, 0.17), (0.17, 0.17)),
        *((0.17, 0.5), (-0.17, 0.5), (-0.17, 0.17), (-0.5, 0.17), (-0.5, -0.17), (-0.17, -0.17)),
    ),
    "X": (
        *((-0.25, -0.5), (0, -0.25), (0.25, -0.5), (0.5, -0.25), (0.25, 0), (0.5, 0.25)),
        *((0.25, 0.5), (0, 0.25), (-0.25, 0.5), (-0.5, 0.25), (-0.25, 0), (-0.5, -0.25)),
    ),
}


def marks(  # noqa: PLR0913 - keyword-only
    points: Floats,
    marker: str,
    size: float,
    colour: str,
    *,
    hollow: bool = False,
    opacity: float = 1.0,
    clip: Box | None = None,
) -> Iterator[Shape]:
    """Draw a mark at each point."""
    there = points[np.isfinite(points).all(axis=1)]
    if marker == "o":
        dots = list(there[:, np.newaxis, :])
        for wide, of in ((size + _EDGE * hollow, colour), *([(size - _EDGE, "#fff")] * hollow)):
            yield Path(dots, stroke=of, width=wide, round=True, opacity=opacity, clip=clip)
        return
    outline = np.array([*_OUTLINES[marker], _OUTLINES[marker][0]]) * size
    parts = [outline + point for point in there]
    edge = (colour, _EDGE) if hollow else ("", 0.0)
    fill = "#fff" if hollow else colour
    yield Path(parts, *edge, fill=fill, opacity=opacity, clip=clip)


def band_shapes(band: Band, place: Place, look: Look) -> Iterator[Shape]:
    """Fill the cells; at a side without a bound they fade out from the line on."""
    colour = look.light
    bounded = np.isfinite(band.low), np.isfinite(band.high)
    x = place.across(band.x)
    low = place.down(np.where(bounded[0], band.low, band.value[:-1]))
    high = place.down(np.where(bounded[1], band.high, band.value[1:]))

    def filled(cells: Flags, foot: Floats, head: Floats, opacity: float) -> Iterator[Shape]:
        parts = [_cells(x, foot, head, begin, end) for begin, end in _stretches(cells)]
        if parts:
            yield Path(parts, fill=colour, opacity=opacity, clip=place.box)

    yield from filled(bounded[0] | bounded[1], low, high, _BAND_OPACITY)
    length = _FADE * (place.box.bottom - place.box.top)
    # Slab by slab: laid one over the other, their colours would be rounded once too often.
    for step in range(_FADE_STEPS):
        opacity = _BAND_OPACITY * (1 - (step + 0.5) / _FADE_STEPS)
        near, far = (length * n / _FADE_STEPS for n in (step, step + 1))
        yield from filled(bounded[0] & ~bounded[1], high - near, high - far, opacity)
        yield from filled(bounded[1] & ~bounded[0], low + far, low + near, opacity)
    for bound in (band.low, band.high):
        down = place.down(bound)
        steps = np.column_stack([np.repeat(x, 2)[1:-1], np.repeat(down, 2)])
        yield Path(list(_whole(steps)), colour, 0.4, opacity=0.55, clip=place.box)


def _stretches(cells: Flags) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each row of cells that lie side by side."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]]))).tolist()
    yield from zip(edges[::2], edges[1::2], strict=True)


def _cells(x: Floats, foot: Floats, head: Floats, begin: int, end: int) -> Floats:
    """Return the outline of cells, along their heads and back along their feet."""
    across = np.repeat(x[begin : end + 1], 2)[1:-1]
    there = np.column_stack([across, np.repeat(head[begin:end], 2)])
    back = np.column_stack([across, np.repeat(foot[begin:end], 2)])[::-1]
    return np.concatenate([there, back, there[:1]])


def interval_shapes(interval: Interval, place: Place, look: Look) -> Iterator[Shape]:
    """Mark a value, hollow where there is no upper bound, with its bars or an arrow."""
    open_above = interval.high is None
    x, y = place.at(interval.x, interval.value)
    if interval.bars:
        low = place.y.low if interval.low is None else interval.low
        high = interval.value if interval.high is None else interval.high
        foot, head = place.at(interval.x, low)[1], place.at(interval.x, high)[1]
        caps = [((x - _CAP, end), (x + _CAP, end)) for end in (foot, head)]
        parts = [np.array(part) for part in (((x, foot), (x, head)), *caps)]
        yield Path(parts, look.light, 0.9)
    if interval.bars and open_above:
        top = y - _ARROW
        point = ((x - _HEAD, top + 2 * _HEAD), (x, top), (x + _HEAD, top + 2 * _HEAD))
        yield Path([np.array(((x, y), (x, top))), np.array(point)], look.light, _EDGE)
    yield from marks(np.array([(x, y)]), look.marker, _MARK, look.light, hollow=open_above)


def bars_shapes(bars: Bars, place: Place, look: Look) -> Iterator[Shape]:
    """Draw times in a lane; those that are shorter than a dot are as wide as one, and paler."""
    left, right = place.across(bars.start), place.across(bars.end)
    top, bottom = (place.at(place.x.high, bars.lane + half)[1] for half in (_BAR / 2, -_BAR / 2))
    short = right - left < (place.box.right - place.box.left) / _DOTS
    for chosen, opacity in ((short, _SHORT_OPACITY), (~short, 1.0)):
        parts = [
            np.array(((a, top), (b, top), (b, bottom), (a, bottom), (a, top)))
            for a, b in zip(left[chosen].tolist(), right[chosen].tolist(), strict=True)
        ]
        yield Path(parts, look.light, 0.3, fill=look.light, opacity=opacity, clip=place.box)
