"""Parts of every page: everything in one file, nothing fetched, nothing trusted.

Names, paths, command lines and warnings come from others: the template escapes them, the data are
JSON without ``<``, and the page's content security policy admits only the scripts and styles that
it carries, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from tailtrim.report import units
from tailtrim.report.cause_wording import when

if TYPE_CHECKING:
    from collections.abc import Sequence

# The space between a number and its unit.
_UNITS = re.compile(r"(?<=[0-9]) (?=(?:%|(?:ns|µs|ms|s|kpkt/s)\b))")


def assets() -> tuple[jinja2.Environment, list[Markup], list[Markup]]:
    """Return the parts of every page: templates, scripts and styles."""
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_plain,
        loader=jinja2.PackageLoader("tailtrim.report.pages"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        exact=partial(units.microseconds, places=3),
        percent=units.percent,
        thousands=units.count,
        us=units.microseconds,
        when=when,
    )
    scripts = [
        _asset("vendor/uPlot.iife.min.js"),
        _asset("templates/marks.js"),
        _asset("templates/intervals.js"),
        _asset("templates/lanes.js"),
        _asset("templates/rules.js"),
        _asset("templates/report.js"),
    ]
    styles = [_asset("vendor/uPlot.min.css"), _asset("templates/report.css")]
    return environment, scripts, styles


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the content security policy that admits these and nothing else."""
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)};"
        " base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _asset(name: str) -> Markup:
    return Markup(resources.files("tailtrim.report.pages").joinpath(name).read_text("utf-8"))  # noqa: S704 - our own


def _plain(value: Any) -> Any:
    """Keep what is not printable off the page, and a number and its unit on one line."""
    if type(value) is not str:
        return value
    return _UNITS.sub("\N{NO-BREAK SPACE}", units.printable(value))
