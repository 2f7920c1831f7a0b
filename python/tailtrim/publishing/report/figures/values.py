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
        writer.writerows(_rows(panel, figure.names or names))
    return text.getvalue().encode()


def _rows(panel: Panel, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    place = " ".join(filter(None, (panel.title, panel.y.label)))
    for line in panel.lines:
        for x, y in zip(_x(panel.x, line.x), line.y.tolist(), strict=True):
            yield place, "line", names[line.run], line.part, _text(x), "", _text(y), "", ""
    for one in panel.intervals:
        (x,) = _x(panel.x, np.array([one.x]))
        told = map(_text, (one.value, one.low, one.high))
        yield place, "interval", names[one.run], "", _text(x), "", *told
    for band in panel.bands:
        edges = _x(panel.x, band.x)
        cells = zip(edges, edges[1:], band.low.tolist(), band.high.tolist(), strict=False)
        for x, to, low, high in cells:
            told = map(_text, (low, high))
            yield place, "band", names[band.run], "", _text(x), _text(to), "", *told
    for bars in panel.bars:
        lane = panel.y.names[bars.lane]
        for start, end in zip(bars.start.tolist(), bars.end.tolist(), strict=True):
            yield place, "bar", names[bars.run], lane, _text(start), _text(end), "", "", ""


def _x(axis: Axis, values: np.ndarray) -> list[float]:
    """Return the values of x; percentiles as such."""
    found: list[float] = (100 * (1 - 1 / values) if axis.scale == "nines" else values).tolist()
    return found


def _text(value: float | None) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN: there is no bound
        return ""
    return f"{value:.{_DIGITS}g}"
