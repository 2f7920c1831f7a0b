"""Results as HTML for notebooks: a sentence, a table, and a figure."""

from __future__ import annotations

import base64
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, cast

from tailtrim import units
from tailtrim.analysis import Analysis
from tailtrim.analysis.compare import Comparison, Comparisons
from tailtrim.analysis.explain import Explanation
from tailtrim.analysis.explain.host_explanation import of_host
from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.report import (
    cause_wording,
    comparison_wording,
    periodic_wording,
    wording,
)
from tailtrim.publishing.report.latency_table import LatencyTable
from tailtrim.publishing.report.table import Cell, Column, Row, Table
from tailtrim.publishing.report.terminal import explanation_text
from tailtrim.results import RunDirectory
from tailtrim.results.experiments import RecordedExperiment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tailtrim.publishing.report.figures.figure import Figure
    from tailtrim.results import Summary
    from tailtrim.results.summary import Quantile

# Events of a trace in its figure, the longest of each cause.
_MOST_EVENTS = 5_000
_NAMES_LEFT = ' style="text-align:left"'


@singledispatch
def html(result: object) -> str:
    """Return a result as HTML; names and texts of others are escaped.

    Raises:
        TypeError: it is not a result.

    """
    raise TypeError(f"{type(result).__name__} is not a result of tailtrim")


@html.register
def _(result: Analysis) -> str:
    return _of_runs([result.summary], [""]) + _percentiles([result], ["analysis"])


@html.register
def _(result: RunDirectory) -> str:
    return _of_runs([result.summary], [result.name]) + _percentiles([result], [result.name])


@html.register
def _(result: RecordedExperiment) -> str:
    names = [run.name for run, _ in result.complete]
    directories = [directory for _, directory in result.complete]
    problems = [f"{run.name}: {run.problem}" for run in result.runs if run.problem]
    shown = _of_runs([one.summary for one in directories], names) if names else ""
    heading = (
        f"<p><b>{_text(result.name)}</b>: {len(names)} of {len(result.runs)} runs complete</p>"
    )
    return heading + shown + _listed(problems) + _percentiles(directories, names)


@html.register
def _(result: Explanation) -> str:
    text = "\n".join(explanation_text.lines(result))
    heading = f"<p>{_text(text.partition(chr(10))[0])}</p>"
    details = f"<details><summary>All of it</summary><pre>{escape(text)}</pre></details>"
    return heading + _causes(result) + _listed(result.warnings) + details + _late_packets(result)


@html.register
def _(result: Comparison) -> str:
    return html(Comparisons([result]))


@html.register
def _(result: Comparisons) -> str:
    parts = []
    for one in result:
        parts.append(f"<p>A: {_text(one.a.name)}<br>B: {_text(one.b.name)}</p>")
        parts.append(_table(comparison_wording.quantiles(one)))
        told = [comparison_wording.maxima(one), comparison_wording.losses(one)]
        parts.append(_listed([*filter(None, told), *comparison_wording.notes(one)]))
    return "".join(parts) + _improvement(result)


def _causes(found: Explanation) -> str:
    """Return the causes of a trace, where there is one, and those that recur."""
    parts = []
    if found.host is not None:
        verdict = of_host(found.host).verdict
        named = zip(cause_wording.labels(verdict.causes), verdict.causes, strict=True)
        rows = [
            Row(name, [units.count(cause.late_packets), cause_wording.share(cause.share_ppm)])
            for name, cause in named
            if cause.late_packets
        ]
        columns = map(Column, ("cause", "late packets", "share of the excess"))
        parts.append(_table(Table(list(columns), rows)))
    if found.periodic or found.batches:
        parts.append(_table(periodic_wording.table(found)))
    if found.periodic:
        heads = ("periodic cause", "above the median", "mean excess", "vectors")
        recurring = [
            Row(
                f"{cause.frequency_hz:,.2f} Hz",
                [
                    units.time(cause.delay_ns),
                    units.time(round(cause.excess.value_ns)),
                    ", ".join(map(units.printable, cause.vectors)) or units.NONE,
                ],
            )
            for cause in found.periodic
        ]
        parts.append(_table(Table(list(map(Column, heads)), recurring)))
    return "".join(parts)


def _of_runs(summaries: Sequence[Summary], names: Sequence[str]) -> str:
    """Return the verdicts, the latency table and the warnings of runs."""
    table = LatencyTable.of(summaries, [units.printable(name) for name in names])
    verdicts = [
        f"<p>{'<b>' + _text(name) + '</b>: ' if name else ''}{_text(wording.verdict(summary))}</p>"
        for name, summary in zip(names, summaries, strict=True)
    ]
    head = ["", "kpkt/s", "loss %", *(f"{p} %" for p in table.columns), "max"]
    rows = []
    for row in table.rows:
        cells = [_cell(quantile, row.style) for quantile in row.quantiles]
        rows.append(Row(row.name, [row.rate, row.loss, *cells, row.style.number(row.max_ns)]))
    warnings = [notice.text for summary in summaries for notice in summary.warnings]
    shown = _table(Table(list(map(Column, head)), rows))
    stamps = wording.resolution(summaries)
    legend = wording.legend(f"Percentiles of latency in {table.unit} ({stamps}).", rows)
    return "".join(verdicts) + shown + f"<p>{escape(legend)}</p>" + _listed(warnings)


def _cell(quantile: Quantile | None, style: units.Times) -> Cell:
    """Return a latency and its interval below it."""
    if quantile is None or quantile.value is None:
        return Cell(units.NONE)
    return Cell(wording.quantile(quantile, style), wording.bounds(quantile, style))


def _table(table: Table) -> str:
    names = "".join(f"<th>{escape(column.head)}</th>" for column in table.columns)
    lines = []
    for row in table.rows:
        texts = ([cell.text, cell.below] for _, cell in table.cells(row))
        cells = "".join(f"<td>{'<br>'.join(map(escape, filter(None, of)))}</td>" for of in texts)
        lines.append(f"<tr><th{_NAMES_LEFT}>{escape(row.title)}</th>{cells}</tr>")
    return f"<table><thead><tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _listed(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{_text(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _text(text: str) -> str:
    return escape(units.printable(text))


def _percentiles(runs: Sequence[RunDirectory | Analysis], names: Sequence[str]) -> str:
    if not runs:
        return ""
    from tailtrim.publishing.report.figures.percentiles import percentiles  # noqa: PLC0415 - brings numpy
    from tailtrim.publishing.report.inputs.run_tables import ReportedRun  # noqa: PLC0415

    # Of what it is given, this figure needs the summary and the tables, which both have.
    shown = [
        ReportedRun(index, units.printable(name), cast("RunDirectory", run))
        for index, (run, name) in enumerate(zip(runs, names, strict=True))
    ]
    try:
        figure = percentiles(shown)
    except RunDirectoryError as error:
        return _listed([str(error)])
    return _drawn(figure, [run.name for run in shown])


def _late_packets(found: Explanation) -> str:
    """Return the late packets by cause; without a trace the worst packets over time."""
    from tailtrim.analysis.explain import host_events  # noqa: PLC0415
    from tailtrim.publishing.report.figures.late_packets import ExplainedRun, alike, late_packets  # noqa: PLC0415
    from tailtrim.publishing.report.figures.timelines import worst  # noqa: PLC0415
    from tailtrim.publishing.report.inputs.run_tables import ReportedRun  # noqa: PLC0415

    run = ReportedRun(0, units.printable(found.run), found.directory)
    try:
        if found.host is None:
            figure = worst([run])
        else:
            told = of_host(found.host)
            explained = ExplainedRun(
                run,
                told,
                host_events.read(run.directory, cpu=told.cpu, serving=told.verdict.serving),
            )
            (explained,) = alike([explained])
            figure = late_packets(explained, _MOST_EVENTS)
    except RunDirectoryError as error:
        return _listed([str(error)])
    return _drawn(figure, [run.name])


def _improvement(comparisons: Comparisons) -> str:
    from tailtrim.publishing.report.figures.ratio import ratios  # noqa: PLC0415 - brings numpy

    named = [f"{one.a.name} \N{RIGHTWARDS ARROW} {one.b.name}" for one in comparisons]
    return _drawn(ratios(comparisons), [units.printable(name) for name in named])


def _drawn(figure: Figure | None, names: Sequence[str]) -> str:
    """Return a figure as an image: a script within it would not run."""
    if figure is None:
        return ""
    from tailtrim.publishing.report.figures import drawing  # noqa: PLC0415

    svg = base64.b64encode(drawing.render(figure, names)["svg"]).decode()
    return f'<img alt="{escape(figure.title)}" src="data:image/svg+xml;base64,{svg}">'
