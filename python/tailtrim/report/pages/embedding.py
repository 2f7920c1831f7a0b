"""Figures as the JSON that a page's scripts draw: :func:`embedded`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tailtrim.report.figures.figure import DIGITS
from tailtrim.report.figures.palette import dash, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.report.arrays import Floats
    from tailtrim.report.figures.figure import Axis, Band, Bars, Figure, Line, Panel, Rule
    from tailtrim.report.figures.palette import Look


def embedded(names: Sequence[str], looks: Sequence[Look], figures: Sequence[Figure]) -> Markup:
    """Return the data that the scripts draw: figures, and names and looks of their lines."""
    return _json(
        {
            "names": list(names),
            "looks": [_look(look, look.dash) for look in looks],
            "figures": [_figure(figure, looks) for figure in figures],
        }
    )


def _json(value: Any) -> Markup:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - nothing in it can end the script element


def _look(look: Look, pattern: tuple[float, ...]) -> dict[str, Any]:
    return {
        "light": look.light,
        "dark": look.dark,
        "marker": look.marker,
        "dash": pattern,
        "swatch": "line",
    }


def _figure(figure: Figure, looks: Sequence[Look]) -> dict[str, Any]:
    shown: dict[str, Any] = {"key": figure.key}
    if figure.names:
        looks = figure.looks or distinct(len(figure.names))
        own = [_own_look(figure, place, look) for place, look in enumerate(looks)]
        shown |= {"names": figure.names, "looks": own}
    return shown | {"panels": [_panel(panel, looks) for panel in figure.panels]}


def _own_look(figure: Figure, place: int, look: Look) -> dict[str, Any]:
    """Return how one of a figure's own names looks, in the legend, too."""
    lines = [line for panel in figure.panels for line in panel.lines if line.run == place]
    if not lines:
        return _look(look, ()) | {"swatch": "bar"}
    line = lines[0]
    return _look(look, dash(look, line.part)) | {"swatch": line.draw}


def _panel(panel: Panel, looks: Sequence[Look]) -> dict[str, Any]:
    return {
        "title": panel.title,
        "x": _axis(panel.x),
        "y": _axis(panel.y),
        "lines": [_line(line, panel.x.digits, looks[line.run]) for line in panel.lines],
        "intervals": [
            {
                "run": interval.run,
                "x": _number(interval.x),
                "value": _number(interval.value),
                "low": _number(interval.low),
                "high": _number(interval.high),
                "bars": interval.bars,
            }
            for interval in panel.intervals
        ],
        "bands": [_band(band) for band in panel.bands],
        "rules": [_rule(rule) for rule in panel.rules],
        "uprights": [_rule(rule) for rule in panel.uprights],
        "bars": [_bars(bars, panel.x.digits) for bars in panel.bars],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {"at": _number(rule.at), "label": rule.label, "until": _number(rule.until)}


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "label": axis.label,
        "scale": axis.scale,
        "low": axis.low,
        "high": axis.high,
        "unit": axis.unit,
        "names": axis.names,
    }


def _line(line: Line, digits: int, look: Look) -> dict[str, Any]:
    return {
        "run": line.run,
        "draw": line.draw,
        "part": line.part,
        "dash": dash(look, line.part),
        "faded": line.faded,
        "x": _numbers(line.x, digits),
        "y": _numbers(line.y),
    }


def _bars(bars: Bars, digits: int) -> dict[str, Any]:
    return {
        "run": bars.run,
        "lane": bars.lane,
        "start": _numbers(bars.start, digits),
        "long": _numbers(bars.end - bars.start, 4),
    }


def _band(band: Band) -> dict[str, Any]:
    return {
        "run": band.run,
        "x": _numbers(band.x),
        "low": _numbers(band.low),
        "high": _numbers(band.high),
        "value": _numbers(band.value),
    }


def _numbers(values: Floats, digits: int = DIGITS) -> list[float | int | None]:
    return [_number(value, digits) for value in values.tolist()]


def _number(value: float | None, digits: int = DIGITS) -> float | int | None:
    """Return a short number for JSON; what is not finite is no value."""
    if value is None or value in (float("inf"), float("-inf")) or value != value:  # noqa: PLR0124
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short
