"""The result for a terminal: :func:`render`.

Imports nothing that takes long: ``tailtrim analyze`` prints this and starts in an instant.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from tailtrim import units
from tailtrim.errors import ReportError
from tailtrim.publishing.report import wording
from tailtrim.publishing.report.latency_table import LatencyRow, LatencyTable
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from tailtrim.results.summary import Summary


def render(summaries: Sequence[Summary], names: Sequence[str]) -> TerminalReport:
    """Return what ``rich`` prints of one or more runs.

    Args:
        summaries: the runs in the order in which they are to appear.
        names: what to call each of them.

    Returns:
        Something to give to :meth:`rich.console.Console.print`. It fits 80 columns, and needs no
        colour.

    Raises:
        ReportError: when there are not as many names as summaries.

    """
    if len(summaries) != len(names):
        raise ReportError(f"{len(names)} names were given for {len(summaries)} runs")
    return TerminalReport(LatencyTable.of(summaries, [units.printable(name) for name in names]))


class TerminalReport:
    """Verdict, table and counts of some runs, to be printed by ``rich``."""

    def __init__(self, table: LatencyTable) -> None:
        """Take the rows of the table."""
        self._table = table

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Lay the report out for the width of the console."""
        rows = self._table.rows
        for row in rows:
            yield Text(f"{row.name}: {wording.verdict(row.summary)}", style="bold")
        yield Text()
        measured = [row for row in rows if row.summary.throughput is None]
        if any(row.summary.samples or row.summary.unordered for row in measured):
            yield from _latencies(self._table, options.max_width)
        for row in measured:
            yield _remarks(row, named=len(rows) > 1)


def _latencies(table: LatencyTable, width: int) -> Iterator[RenderableType]:
    """Yield the tables, across as the papers print them or, where one is too wide, down."""
    across = [(row, _across(row, table)) for row in table.rows]
    lines = [list(_aligned(one).lines(gap=1)) for _, one in across]
    fits = max(len(line) for one in lines for line in one) <= width
    for (row, one), of_run in zip(across, lines, strict=True):
        copies = f", {units.count(row.copies)} copies" if table.duplicated else ""
        rest = "" if fits else f": {row.rate} kpkt/s, loss % {row.loss}{copies}"
        if rest or len(across) > 1:
            yield Text(f"{row.name}{rest}", overflow="fold", style="bold" if rest else "")
        if fits:
            styles = ("bold", "", "dim", "dim", "")
            yield from map(partial(Text, no_wrap=True), of_run, styles)
        else:
            yield _down(row, one)
    yield _legend(table)


def _aligned(table: Table) -> Table:
    """Return the table with room for the mark in those columns that have one."""
    heads = [column.head for column in table.columns]
    lines = [heads, *([row.title, *map(str, row.cells)] for row in table.rows)]
    marked = {
        at for line in lines for at, cell in enumerate(line) if cell.endswith(units.UNSUPPORTED)
    }
    heads, *rows = (
        [
            f"{cell} " if at in marked and not cell.endswith(units.UNSUPPORTED) else cell
            for at, cell in of
        ]
        for of in map(enumerate, lines)
    )
    return Table([*map(Column, heads)], [Row(name, cells) for name, *cells in rows])


def _across(row: LatencyRow, table: LatencyTable) -> Table:
    """Return the latencies of a run, their intervals, delivery-adjusted latencies."""
    style = row.style
    copies = [units.count(row.copies)] if table.duplicated else []
    largest = style.number(row.max_ns)
    empty = [""] * (1 + len(copies))
    low, high = (
        ["" if q is None else style.bound(getattr(q, end)) for q in row.quantiles]
        for end in ("low", "high")
    )
    rows = [
        Row(
            row.rate,
            [row.loss, *copies, *(wording.quantile(q, style) for q in row.quantiles), largest],
        ),
        Row("from", [*empty, *low, ""], "none"),
        Row("to", [*empty, *high, ""], "none"),
    ]
    if row.adjusted is not None:
        rows.append(
            Row(
                "adj.",
                [*empty, *(wording.quantile(q, style) for q in row.adjusted), units.INFINITE],
            )
        )
    heads = ("kpkt/s", "loss %", *(["copies"] if copies else []), *table.columns, "Max")
    return Table([Column(head) for head in heads], rows)


def _down(row: LatencyRow, across: Table) -> RenderableType:
    """Return the same with a line for each percentile."""
    heads = [column.head for column in across.columns[-len(row.quantiles) - 1 :]]
    lines = zip(*(one.cells[-len(heads) :] for one in across.rows), strict=True)
    rows = [
        Row(head if head == "Max" else f"{head} %", cells)
        for head, cells in zip(heads, lines, strict=True)
    ]
    named = ("", "", "from", "to", "adj.")[: 1 + len(across.rows)]
    return Table([Column(head) for head in named], rows).terminal()


def _legend(table: LatencyTable) -> Text:
    confidence = {wording.confidence(row.summary) for row in table.rows}
    stamps = wording.resolution(row.summary for row in table.rows)
    text = (
        f"Percentiles of latency in {table.unit} ({stamps});"
        f" from, to: {', '.join(sorted(confidence))} confidence."
    )
    if any(row.adjusted for row in table.rows):
        text += " adj.: delivery-adjusted, a lost packet is infinitely late."
    if table.marked:
        text += f" {units.UNSUPPORTED_LEGEND}"
    if table.beyond:
        text += f" Too few samples to tell {', '.join(table.beyond)} from Max."
    return Text(text, style="dim")


def _remarks(row: LatencyRow, *, named: bool) -> RenderableType:
    """Return what else is to be said about a run: counts, spread, what is not supported."""
    summary = row.summary
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("")
    if named:
        grid.add_row("run", Text(row.name))
    if not summary.unordered:
        grid.add_row("ingress", Text(wording.sum_of(summary.ingress, wording.INGRESS)))
        grid.add_row("egress", Text(wording.sum_of(summary.egress, wording.EGRESS)))
    if (body := wording.body(summary)) is not None:
        grid.add_row("latency", Text(body))
    if (clusters := wording.clusters(summary)) is not None:
        grid.add_row("tail", Text(clusters))
    for percents, why in wording.unsupported(summary):
        grid.add_row(f"{percents} %", Text(why))
    for notice in summary.warnings:
        if notice.text in summary.invalid[:1]:
            continue  # the verdict says it
        grid.add_row(Text("warning", style="bold"), Text(units.printable(notice.text)))
    return grid
