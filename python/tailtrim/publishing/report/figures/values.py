"""The values of a figure as CSV, for other plotting tools: :func:`csv`."""

from __future__ import annotations

import csv as formats
import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.report.figures.figure import Axis, Figure, Panel

_DIGITS = 12
_Row = tuple[str | float | None, ...]


def csv(figure: Figure, names: Sequence[str]) -> bytes:
    """Return a row for each point, as UTF-8.

    ``panel`` is the label of the y axis, with its unit; the column of x is called by the label of
    its axis. ``kind`` is line, interval, band or bar: a band and a bar reach from x to ``to``, an
    interval and a band from ``low`` to ``high``; empty where there is no bound.
    """
    text = io.StringIO()
    writer = formats.writer(text, lineterminator="\n")
    x = figure.panels[0].x
    label = "Percentile (%)" if x.scale == "nines" else x.label
    writer.writerow(("panel", "kind", "name", "part", label, "to", "y", "low", "high"))
    for panel in figure.panels:
        for row in _rows(panel, figure.names or names):
            writer.writerow([_text(value) for value in row])
    return text.getvalue().encode()


def _rows(panel: Panel, names: Sequence[str]) -> Iterator[_Row]:
    place = " ".join(filter(None, (panel.title, panel.y.label)))
    for line in panel.lines:
        for x, y in zip(_x(panel.x, line.x), line.y.tolist(), strict=True):
            yield place, "line", names[line.run], line.part, x, None, y, None, None
    for one in panel.intervals:
        (x,) = _x(panel.x, np.array([one.x]))
        yield place, "interval", names[one.run], "", x, None, one.value, one.low, one.high
    for band in panel.bands:
        edges = _x(panel.x, band.x)
        cells = zip(edges, edges[1:], band.low.tolist(), band.high.tolist(), strict=False)
        for x, to, low, high in cells:
            yield place, "band", names[band.run], "", x, to, None, low, high
    for bars in panel.bars:
        lane = panel.y.names[bars.lane]
        for start, end in zip(bars.start.tolist(), bars.end.tolist(), strict=True):
            yield place, "bar", names[bars.run], lane, start, end, None, None, None


def _x(axis: Axis, values: np.ndarray) -> list[float]:
    """Return the values of x; percentiles as such."""
    found: list[float] = (100 * (1 - 1 / values) if axis.scale == "nines" else values).tolist()
    return found


def _text(value: str | float | None) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN: there is no bound
        return ""
    return value if isinstance(value, str) else f"{value:.{_DIGITS}g}"
