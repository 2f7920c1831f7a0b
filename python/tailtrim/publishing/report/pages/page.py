"""Frame of every page: everything in one file, nothing fetched, nothing trusted.

Names, paths, command lines and warnings come from others: the templates escape them, the data are
JSON without ``<``, and the page's content security policy admits only the scripts and styles that
it carries, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import asdict, fields, is_dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from markupsafe import Markup

from tailtrim import units
from tailtrim.publishing.report.figures.figure import DIGITS, Bars
from tailtrim.publishing.report.figures.looks import dash, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.publishing.report.figures.figure import Figure, Panel
    from tailtrim.publishing.report.figures.looks import Look

# The space between a number and its unit.
_UNITS = re.compile(r"(?<=[0-9]) (?=(?:%|(?:ns|µs|ms|s|kpkt/s)\b))")
_SCRIPTS = ("marks", "intervals", "lanes", "rules", "report")
#: Fields of an axis that only the static figures need.
_STATIC = ("unit_ns", "digits")
_LONG_DIGITS = 4


def render(
    template: str,
    drawn: Sequence[Figure],
    *,
    subjects: Sequence[tuple[str, Look]] = (),
    formats: Sequence[str] = (),
    **values: Any,
) -> bytes:
    """Return a page as UTF-8.

    Args:
        template: the name of its file.
        drawn: what the scripts draw, also figures that readers may choose instead of another.
        subjects: name and look of each run, for figures that have no names of their own.
        formats: of the files beside the page that a figure links to; none where there are no files.
        values: of the template's variables.

    """
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_plain_text,
        loader=jinja2.PackageLoader("tailtrim.publishing.report.pages"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    scripts = [_asset("vendor/uPlot.iife.min.js")]
    scripts += [_asset(f"templates/{name}.js") for name in _SCRIPTS]
    styles = [_asset("vendor/uPlot.min.css"), _asset("templates/report.css")]
    page = environment.get_template(template).render(
        policy=_policy(scripts, styles),
        scripts=scripts,
        styles=styles,
        data=_json(_data(drawn, subjects)),
        places={figure.key: place for place, figure in enumerate(drawn)},
        formats=formats,
        units=units,
        **values,
    )
    return page.encode("utf-8")


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the content security policy that admits these and nothing else."""
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)};"
        " base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _asset(name: str) -> Markup:
    text = resources.files("tailtrim.publishing.report.pages").joinpath(name).read_text("utf-8")
    return Markup(text)  # noqa: S704 - our own


def _plain_text(value: Any) -> Any:
    """Keep what is not printable off the page, and a number and its unit on one line."""
    if type(value) is not str:
        return value
    return _UNITS.sub("\N{NO-BREAK SPACE}", units.printable(value))


def _json(value: Any) -> Markup:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - nothing in it can end the script element


def _data(figures: Sequence[Figure], subjects: Sequence[tuple[str, Look]]) -> dict[str, Any]:
    """Return the data that the scripts draw: figures, and names and looks of their lines."""
    looks = [look for _, look in subjects]
    return {
        "names": [name for name, _ in subjects],
        "looks": [asdict(look) | {"swatch": "line"} for look in looks],
        "figures": [_figure(figure, looks) for figure in figures],
    }


def _figure(figure: Figure, looks: Sequence[Look]) -> dict[str, Any]:
    told: dict[str, Any] = {"key": figure.key}
    if figure.names:
        looks = figure.looks or distinct(len(figure.names))
        own = [_own_look(figure, place, look) for place, look in enumerate(looks)]
        told |= {"names": figure.names, "looks": own}
    return told | {"panels": [_panel(panel, looks) for panel in figure.panels]}


def _own_look(figure: Figure, place: int, look: Look) -> dict[str, Any]:
    """Return the look of one of a figure's own names, in the legend, too."""
    lines = [line for panel in figure.panels for line in panel.lines if line.run == place]
    if not lines:
        return asdict(look) | {"dash": (), "swatch": "bar"}
    return asdict(look) | {"dash": dash(look, lines[0].part), "swatch": lines[0].draw}


def _panel(panel: Panel, looks: Sequence[Look]) -> dict[str, Any]:
    told: dict[str, Any] = _plain(panel, panel.x.digits)
    for line, drawn in zip(panel.lines, told["lines"], strict=True):
        drawn["dash"] = dash(looks[line.run], line.part)
    return told


def _plain(value: Any, digits: int, name: str = "") -> Any:
    """Return part of a figure, the field of this name, as JSON; x has so many digits."""
    if isinstance(value, Bars):
        # A length of few digits is shorter than an end of many.
        start = _plain(value.start, digits, "x")
        long = _plain(value.end - value.start, _LONG_DIGITS, "x")
        return {"run": value.run, "lane": value.lane, "start": start, "long": long}
    if is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name), digits, field.name)
            for field in fields(value)
            if field.name not in _STATIC
        }
    if isinstance(value, tuple):
        return [_plain(one, digits, name) for one in value]
    if isinstance(value, np.ndarray):
        digits = digits if name == "x" else DIGITS
        return [_number(one, digits) for one in value.tolist()]
    return _number(value, digits if name == "x" else DIGITS) if isinstance(value, float) else value


def _number(value: float, digits: int) -> float | int | None:
    """Return a short number for JSON; what is not finite is no value."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short
