"""Draw figures for papers, as SVG and PDF: the same bytes for the same input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.publishing.report.figures.curves import (
    Place,
    band_shapes,
    bars_shapes,
    interval_shapes,
    line_shapes,
    marks,
)
from tailtrim.publishing.report.figures.figure import MOST_BANDS, Line
from tailtrim.publishing.report.figures.looks import dash, distinct
from tailtrim.publishing.report.figures.shapes import Box, Drawing, Path, Text, text_width
from tailtrim.publishing.report.figures.svg import svg
from tailtrim.publishing.report.figures.ticks import ticks_of
from tailtrim.publishing.report.figures.values import csv
from tailtrim.publishing.report.write_files import FIGURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.report.figures.figure import Figure, Panel
    from tailtrim.publishing.report.figures.looks import Look
    from tailtrim.publishing.report.figures.shapes import Shape
    from tailtrim.publishing.report.figures.ticks import Ticks

# All lengths are in points, 1/72 inch.
_WIDTH = 432.0
_HEIGHTS = {1: 238.0, 2: 288.0, 3: 374.0, 4: 461.0}
# Of one of more panels, of a lane where all panels have them, and of what is around those.
_PANEL, _LANE, _AROUND_LANES = 115.0, 12.2, 36.0
_LABEL, _TICK_LABEL, _KEY_LABEL, _RULE_LABEL = 8.5, 8.0, 8.0, 7.0
_TICK, _MINOR_TICK, _PAD = 3.5, 2.0, 3.0
_EDGE, _BETWEEN, _TITLE = 6.0, 9.0, 12.0
# Height of a row of the legend, and the rows for which the figure has room.
_KEY, _FEW_KEYS, _COLUMNS, _KEY_LINE = 12.2, 3, 2, 23.0
_BLACK, _GREY = "#000", "#d9d9d9"
# The line of a limit; rules.js has the same.
_LIMIT = (4.0, 3.0)
# A lane's name takes this share of the width at most.
_MOST_NAME = 0.45


def files(
    figures: Sequence[Figure],
    formats: Sequence[str],
    names: Sequence[str] = (),
    looks: Sequence[Look] | None = None,
) -> dict[str, bytes]:
    """Return the files of figures and of their values, by their paths in the folder of a report."""
    contents: dict[str, bytes] = {}
    for figure in figures:
        of = render(figure, names, looks, formats=formats) if formats else {}
        of["csv"] = csv(figure, names)
        contents |= {f"{FIGURES}/{figure.key}.{suffix}": data for suffix, data in of.items()}
    return contents


def render(
    figure: Figure,
    names: Sequence[str],
    looks: Sequence[Look] | None = None,
    *,
    formats: Sequence[str] = ("svg",),
) -> dict[str, bytes]:
    """Draw a figure; return the files' contents by their format: ``svg``, ``pdf``.

    ``names`` and ``looks`` are those of the runs; a figure may have its own.
    """
    names = figure.names or names
    looks = figure.looks or (looks if looks and not figure.names else distinct(len(names)))
    drawing = _drawn(figure, names, looks)
    contents = {}
    if "svg" in formats:
        contents["svg"] = svg(drawing, figure.title)
    if "pdf" in formats:
        from tailtrim.publishing.report.figures.pdf import pdf  # noqa: PLC0415 - brings matplotlib

        contents["pdf"] = pdf(drawing)
    return contents


def _drawn(figure: Figure, names: Sequence[str], looks: Sequence[Look]) -> Drawing:
    rows = -(-len(figure.used) // _COLUMNS)
    height = _height([len(panel.y.names) for panel in figure.panels])
    height += _KEY * max(rows - _FEW_KEYS, 0)
    shapes = list(_legend(figure, names, looks))
    top = _EDGE + _KEY * rows
    for panel, place in zip(figure.panels, _places(figure, top, height), strict=True):
        shapes += _panel(panel, place, looks, last=panel is figure.panels[-1])
    return Drawing(_WIDTH, height, tuple(shapes))


def _height(lanes: Sequence[int]) -> float:
    """Return the height of panels, each with so many lanes."""
    if all(lanes):
        return _AROUND_LANES * (1 + len(lanes)) + _LANE * sum(lanes)
    return _HEIGHTS.get(len(lanes), _PANEL * len(lanes))


def _places(figure: Figure, top: float, height: float) -> list[Place]:
    """Return the place of each panel: of the same height, or with lanes of the same height."""
    panels = figure.panels
    labels = [label for panel in panels for _, label in ticks_of(panel.y).major]
    widest = min(max(text_width(label, _TICK_LABEL) for label in labels), _MOST_NAME * _WIDTH)
    left = _EDGE + _LABEL + _PAD + widest + _PAD + _TICK
    right = _right(
        ticks_of(panels[-1].x), Place(Box(left, 0, _WIDTH, 1), panels[-1].x, panels[-1].y)
    )
    foot = height - _EDGE - 2 * (_LABEL + _PAD) - _TICK
    gaps = [_BETWEEN + _TITLE * bool(panel.title) for panel in panels]
    gaps[0] -= _BETWEEN / 2
    room = foot - top - sum(gaps)
    weights = [len(panel.y.names) or 1 for panel in panels]
    if not all(panel.y.names for panel in panels):
        weights = [1] * len(panels)
    found, at = [], top
    for panel, gap, weight in zip(panels, gaps, weights, strict=True):
        begin = at + gap
        at = begin + room * weight / sum(weights)
        found.append(Place(Box(left, begin, right, at), panels[-1].x, panel.y))
    return found


def _right(ticks: Ticks, whole: Place) -> float:
    """Return where panels end, so that the last label of x is in the picture."""
    right = _WIDTH - _EDGE
    if not ticks.major:
        return right
    value, label = ticks.major[-1]
    room = _WIDTH - 1 - text_width(label, _TICK_LABEL) / 2 - whole.box.left
    share = (whole.at(value, whole.y.high)[0] - whole.box.left) / (_WIDTH - whole.box.left)
    return min(right, whole.box.left + room / max(share, 0.1))


def _panel(panel: Panel, place: Place, looks: Sequence[Look], *, last: bool) -> Iterator[Shape]:
    yield from _axes(place, last=last)
    for band in panel.bands if len(panel.bands) <= MOST_BANDS else ():
        yield from band_shapes(band, place, looks[band.run])
    rules, told = _rules(panel, place)
    yield from rules
    for line in panel.lines:
        yield from line_shapes(line, place, looks[line.run])
    for bars in panel.bars:
        yield from bars_shapes(bars, place, looks[bars.run])
    for interval in panel.intervals:
        yield from interval_shapes(interval, place, looks[interval.run])
    box = place.box
    spines = np.array([(box.left, box.top), (box.left, box.bottom), (box.right, box.bottom)])
    yield Path([spines], _BLACK, 0.6)
    yield from told
    if panel.title:
        yield Text(box.left, box.top - _PAD, panel.title, _LABEL)


def _axes(place: Place, *, last: bool) -> Iterator[Shape]:
    """Draw the grid, the ticks and their labels; those of x below the last panel."""
    box = place.box
    x, y = ticks_of(place.x), ticks_of(place.y)
    across, down = _at(x, place, x=True), _at(y, place, x=False)
    grid = [((at, box.top), (at, box.bottom)) for at in across[0]]
    grid += [((box.left, at), (box.right, at)) for at in down[0]]
    yield Path([np.array(line) for line in grid], _GREY, 0.5)
    for ats, length, width in ((0, _TICK, 0.6), (1, _MINOR_TICK, 0.4)):
        lines = [((at, box.bottom), (at, box.bottom + length)) for at in across[ats]]
        if not place.y.names:
            lines += [((box.left - length, at), (box.left, at)) for at in down[ats]]
        yield Path([np.array(line) for line in lines], _BLACK, width)
    for at, (_, label) in zip(down[0], y.major, strict=True):
        right = box.left - _TICK - _PAD
        yield Text(right, at + 0.36 * _TICK_LABEL, label, _TICK_LABEL, "end")
    if place.y.label:
        middle = (box.top + box.bottom) / 2
        yield Text(_EDGE + _LABEL - 1, middle, place.y.label, _LABEL, "middle", upright=True)
    if last:
        under = box.bottom + _TICK + _PAD + _TICK_LABEL
        for at, (_, label) in zip(across[0], x.major, strict=True):
            yield Text(at, under - 1, label, _TICK_LABEL, "middle")
        centre = (box.left + box.right) / 2
        yield Text(centre, under + _PAD + _LABEL, place.x.label, _LABEL, "middle")


def _at(ticks: Ticks, place: Place, *, x: bool) -> tuple[list[float], list[float]]:
    """Return where ticks are, those with a label and those without one."""
    of = place.across if x else place.down
    values = [value for value, _ in ticks.major], ticks.minor
    major, minor = (of(np.array(some, dtype=float)).tolist() for some in values)
    return major, minor


def _rules(panel: Panel, place: Place) -> tuple[list[Shape], list[Shape]]:
    """Return the rules and uprights of a panel, and their labels."""
    rules: list[Shape] = []
    labels: list[Shape] = []
    for rule in panel.rules:
        end = panel.x.high if rule.until is None else rule.until
        corner = [place.at(panel.x.low, rule.at), place.at(end, rule.at)]
        if rule.until is not None:
            corner.append(place.at(end, panel.y.low))
        dashes = _LIMIT if rule.label else ()
        rules.append(Path([np.array(corner)], _BLACK, 0.8, dashes, clip=place.box))
        if rule.label:
            x, y = corner[0]
            labels.append(Text(x + 3, y - 2, rule.label, _RULE_LABEL, halo=True))
    for rule in panel.uprights:
        ends = [place.at(rule.at, edge) for edge in (panel.y.low, panel.y.high)]
        rules.append(Path([np.array(ends)], _BLACK, 0.8, _LIMIT, clip=place.box))
        if rule.label:
            x, y = ends[1]
            labels.append(Text(x + 3, y + 8, rule.label, _RULE_LABEL, halo=True))
    return rules, labels


def _legend(figure: Figure, names: Sequence[str], looks: Sequence[Look]) -> Iterator[Shape]:
    """Draw the keys above the panels, down one column, then down the other."""
    lines = {line.run: line for panel in reversed(figure.panels) for line in reversed(panel.lines)}
    marked = {one.run for panel in figure.panels for one in panel.intervals}
    rows = -(-len(figure.used) // _COLUMNS)
    for number, run in enumerate(figure.used):
        column, row = divmod(number, rows)
        left, middle = _EDGE + column * _WIDTH / _COLUMNS, _EDGE + (row + 0.5) * _KEY
        yield Text(left + _KEY_LINE + 5, middle + 0.36 * _KEY_LABEL, names[run], _KEY_LABEL)
        line = lines.get(run) or (_MARK if run in marked else None)
        yield from _key(line, looks[run], left, middle, marked=bool(marked))


#: A mark that belongs to no line.
_MARK = Line(0, np.empty(0), np.empty(0), draw="points")


def _key(
    line: Line | None, look: Look, left: float, middle: float, *, marked: bool
) -> Iterator[Shape]:
    right = left + _KEY_LINE
    if line is None:
        ends = np.array([(left, middle), (right, middle)])
        yield Path([ends], look.light, 0.5 * _KEY)
        return
    if line.draw != "points":
        ends = np.array([(left, middle), (right, middle)])
        yield Path([ends], look.light, 1.1, dash(look, line.part))
    if marked or line.draw != "steps":
        centre = np.array([((left + right) / 2, middle)])
        yield from marks(centre, look.marker, 4, look.light)
