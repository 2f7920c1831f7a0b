"""The page: everything in one file, nothing fetched, nothing trusted.

Names, paths, command lines and warnings come from others: the template escapes them, the data are
JSON without ``<``, and the page's content security policy admits only the scripts and styles that
it carries, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from tailtrim.report import units, wording
from tailtrim.report.figures.figure import DIGITS
from tailtrim.report.figures.palette import DARK, LIGHT, MARKERS, dash
from tailtrim.report.inputs.host_explanation import when
from tailtrim.report.latency_table import Rows
from tailtrim.report.pages import cause_section as why
from tailtrim.rundir.summary import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.report.figures.figure import Axis, Band, Bars, Figure, Floats, Line, Panel
    from tailtrim.report.inputs.run_tables import Run
    from tailtrim.report.pages.cause_section import Why
    from tailtrim.rundir import Summary


def stationery() -> tuple[jinja2.Environment, list[Markup], list[Markup]]:
    """Return what every page is made of: templates, scripts and styles."""
    environment = jinja2.Environment(
        autoescape=True,
        finalize=_plain,
        loader=jinja2.PackageLoader("tailtrim.report.pages"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        bytes=_bytes,
        command=_command,
        exact=partial(units.microseconds, places=3),
        percent=units.percent,
        seconds=_seconds,
        thousands=units.count,
        us=units.microseconds,
        when=when,
    )
    scripts = [
        _asset("vendor/uPlot.iife.min.js"),
        _asset("templates/marks.js"),
        _asset("templates/intervals.js"),
        _asset("templates/lanes.js"),
        _asset("templates/report.js"),
    ]
    styles = [_asset("vendor/uPlot.min.css"), _asset("templates/report.css")]
    return environment, scripts, styles


def render(runs: Sequence[Run], figures: Sequence[Figure], reasons: Sequence[Why]) -> bytes:
    """Return the page of some runs as UTF-8; ``figures`` show all of them, ``reasons`` one each."""
    environment, scripts, styles = stationery()
    names = [run.name for run in runs]
    drawn = [*figures, *(figure for why in reasons for figure in why.figures)]
    page = environment.get_template("report.html.j2").render(
        policy=policy(scripts, styles),
        scripts=scripts,
        styles=styles,
        runs=[_Shown.of(run) for run in runs],
        confidence=", ".join(sorted({wording.confidence(run.summary) for run in runs})),
        table=Rows.of([run.summary for run in runs], names),
        figures=figures,
        data=embedded(names, [run.index for run in runs], drawn),
        places={figure.key: place for place, figure in enumerate(drawn)},
        reasons=reasons,
        quantiles=why.QUANTILES,
        wording=wording,
        units=units,
    )
    return page.encode("utf-8")


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the page says of a run beside its summary."""

    index: int
    name: str
    path: Path
    summary: Summary
    latency: Spread
    provenance: dict[str, Any]
    inputs: list[dict[str, Any]]

    @classmethod
    def of(cls, run: Run) -> _Shown:
        latency = run.summary.latency_ns
        values = {quantile.p: quantile.value for quantile in latency.quantiles}
        spread = Spread(
            min=latency.min,
            p50=values.get("0.5"),
            p99=values.get("0.99"),
            p999=values.get("0.999"),
            max=latency.max,
            iqr=latency.iqr,
        )
        provenance = run.directory.provenance()
        inputs = provenance.get("inputs")
        known = inputs if isinstance(inputs, list) else []
        return cls(
            run.index,
            run.name,
            run.directory.path,
            run.summary,
            spread,
            provenance,
            [
                {key: entry.get(key) for key in ("path", "bytes", "sha256")}
                for entry in known
                if isinstance(entry, dict)
            ],
        )


def _asset(name: str) -> Markup:
    return Markup(resources.files("tailtrim.report.pages").joinpath(name).read_text("utf-8"))  # noqa: S704 - our own


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the content security policy that admits these and nothing else."""
    return (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)};"
        " base-uri 'none'; form-action 'none'"
    )


def _hashes(texts: Sequence[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _plain(value: Any) -> Any:
    """Show what is no text where it stands, and keep what is not printable off the page."""
    return units.printable(value) if type(value) is str else value


def embedded(names: Sequence[str], indices: Sequence[int], figures: Sequence[Figure]) -> Markup:
    """Return the data that the scripts draw: figures, and names and looks of their lines."""
    return _json(
        {"names": list(names), "looks": _looks(indices), "figures": list(map(_figure, figures))}
    )


def _json(value: Any) -> Markup:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - nothing in it can end the script element


def _looks(indices: Sequence[int]) -> list[dict[str, Any]]:
    return [_look(index, dash(index, "")) for index in indices]


def _look(run: int, pattern: tuple[float, ...]) -> dict[str, Any]:
    return {
        "light": LIGHT[run % len(LIGHT)],
        "dark": DARK[run % len(DARK)],
        "marker": MARKERS[run % len(MARKERS)],
        "dash": pattern,
        "swatch": "line",
    }


def _figure(figure: Figure) -> dict[str, Any]:
    shown = {"key": figure.key, "panels": [_panel(panel) for panel in figure.panels]}
    if figure.names:
        looks = [_own_look(figure, place) for place in range(len(figure.names))]
        shown |= {"names": figure.names, "looks": looks}
    return shown


def _own_look(figure: Figure, place: int) -> dict[str, Any]:
    """Return how one of a figure's own names looks, in the legend, too."""
    lines = [line for panel in figure.panels for line in panel.lines if line.run == place]
    if not lines:
        return _look(place, ()) | {"swatch": "bar"}
    line = lines[0]
    look = _look(place, dash(place, line.part))
    return look | {"swatch": {"points": "points", "line": "line", "steps": "steps"}[line.draw]}


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "x": _axis(panel.x),
        "y": _axis(panel.y),
        "lines": [_line(line, panel.x.digits) for line in panel.lines],
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
        "rules": list(panel.rules),
        "bars": [_bars(bars, panel.x.digits) for bars in panel.bars],
    }


def _axis(axis: Axis) -> dict[str, Any]:
    return {
        "label": axis.label,
        "scale": axis.scale,
        "low": axis.low,
        "high": axis.high,
        "unit": axis.unit,
        "names": axis.names,
    }


def _line(line: Line, digits: int) -> dict[str, Any]:
    return {
        "run": line.run,
        "draw": line.draw,
        "part": line.part,
        "dash": dash(line.run, line.part),
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


def _seconds(ns: int) -> str:
    return f"{units.fixed(ns, units.SECOND, 9).rstrip('0').rstrip('.')} s"


def _bytes(number: Any) -> str:
    return f"{units.count(number)} bytes" if isinstance(number, int) else "size unknown"


def _command(words: Any) -> str:
    return shlex.join(map(str, words)) if isinstance(words, list) else str(words)
