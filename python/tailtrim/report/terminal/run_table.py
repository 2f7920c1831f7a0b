"""The result for a terminal: :func:`render`.

Imports nothing that takes long: ``tailtrim analyze`` prints this and starts in an instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tailtrim.errors import ReportError
from tailtrim.report import units, wording
from tailtrim.report.latency_table import LatencyRow, LatencyTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

    from tailtrim.rundir.summary import Quantile, Summary

_MARK = "*"
#: The column of copies, which only devices that duplicate packets have.
_COPIES_AT = 2
_OPEN = "open"
_INFINITE = "\N{INFINITY}"
_ASCII = str.maketrans({"µ": "u", units.NONE: "-", _INFINITE: "inf"})


def render(summaries: Sequence[Summary], names: Sequence[str]) -> TerminalReport:
    """Return what ``rich`` prints of one or more runs.

    Args:
        summaries: the runs in the order in which they are to appear.
        names: what to call each of them.

    Returns:
        Something to give to :meth:`rich.console.Console.print`. It fits 80 columns, needs no
        colour, and keeps to ASCII where the console's encoding does.

    Raises:
        ReportError: when there are not as many names as summaries.

    """
    if len(summaries) != len(names):
        raise ReportError(f"{len(names)} names were given for {len(summaries)} runs")
    return TerminalReport(LatencyTable.of(summaries, [units.printable(name) for name in names]))


class TerminalReport:
    """Verdict, table and counts of some runs, to be printed by ``rich``."""

    def __init__(self, rows: LatencyTable) -> None:
        """Take the rows of the table."""
        self._rows = rows

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Lay the report out for the width and the encoding of the console."""
        for part in self._parts(options.max_width):
            if options.ascii_only:
                _to_ascii(part)
            yield part

    def _parts(self, width: int) -> Iterator[Text | Table]:
        rows = self._rows.rows
        for row in rows:
            yield Text(f"{row.name}: {wording.verdict(row.summary)}", style="bold")
        yield Text()
        yield from _latencies(self._rows, width)
        for row in rows:
            yield _remarks(row, named=len(rows) > 1)


def _latencies(table: LatencyTable, width: int) -> Iterator[Text]:
    """Yield the table, across as the papers print it or, where that is too wide, down."""
    if not any(row.summary.samples or row.summary.unordered for row in table.rows):
        return
    head = ["kpkt/s", "loss %", *table.columns, "Max"]
    groups = [(row, _lines(row)) for row in table.rows]
    if table.duplicated:
        head.insert(_COPIES_AT, "copies")
        for row, cells in groups:
            for index, line in enumerate(cells):
                line.insert(_COPIES_AT, "" if index else units.count(row.copies))
    every = [head, *(line for _, lines in groups for line in lines)]
    if any(cell.endswith(_MARK) for line in every for cell in line):
        every = [_aligned(line, every) for line in every]
    widths = [max(len(line[column]) for line in every) for column in range(len(head))]
    if sum(widths) + len(widths) - 1 > width:
        yield from _down(table, [(row, _lines(row)) for row in table.rows])
    else:
        rest = iter(every)
        yield _line(next(rest), widths, "bold")
        for row, cells in groups:
            if len(groups) > 1:
                yield Text(row.name, overflow="fold")
            for index, _ in enumerate(cells):
                yield _line(next(rest), widths, "dim" if index in (1, 2) else "")
    yield from _legend(table)


def _lines(row: LatencyRow) -> list[list[str]]:
    """Return the cells of a run: its latencies, their intervals, delivery-adjusted latencies."""
    style = wording.times(row.summary)
    largest = units.NONE if row.max_ns is None else style.text(row.max_ns)
    lines = [
        [row.rate, row.loss, *(_cell(q, style) for q in row.quantiles), largest],
        ["from", "", *("" if q is None else _bound(q.low, style) for q in row.quantiles), ""],
        ["to", "", *("" if q is None else _bound(q.high, style) for q in row.quantiles), ""],
    ]
    if row.adjusted is not None:
        lines.append(["adj.", "", *(_cell(q, style) for q in row.adjusted), _INFINITE])
    return lines


def _cell(quantile: Quantile | None, style: units.Times) -> str:
    if quantile is None:
        return units.NONE
    text = _INFINITE if quantile.value is None else style.text(quantile.value)
    return text if quantile.supported else text + _MARK


def _bound(bound: int | None, style: units.Times) -> str:
    return _OPEN if bound is None else style.text(bound)


def _aligned(line: list[str], every: list[list[str]]) -> list[str]:
    """Return the line with room for the mark in those columns that have one."""
    return [
        f"{cell} "
        if any(other[column].endswith(_MARK) for other in every) and not cell.endswith(_MARK)
        else cell
        for column, cell in enumerate(line)
    ]


def _line(cells: Iterable[str], widths: Iterable[int], style: str) -> Text:
    text = " ".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=True))
    return Text(text.rstrip(), style=style, no_wrap=True)


def _down(
    table: LatencyTable, groups: Iterable[tuple[LatencyRow, list[list[str]]]]
) -> Iterator[Text]:
    for row, (values, low, high, *adjusted) in groups:
        copies = f", {units.count(row.copies)} copies" if table.duplicated else ""
        yield Text(f"{row.name}: {row.rate} kpkt/s, loss % {row.loss}{copies}", style="bold")
        columns = [*(f"{column} %" for column in table.columns), "Max"]
        for index, column in enumerate(columns, start=2):
            bounds = f"{low[index]} to {high[index]}" if low[index] else ""
            adjustment = f"adj. {adjusted[0][index]}" if adjusted else ""
            yield Text(f"{column:>11} {values[index]:>12}  {bounds:<24} {adjustment}".rstrip())


def _legend(table: LatencyTable) -> Iterator[Text]:
    confidence = {wording.confidence(row.summary) for row in table.rows}
    text = f"Percentiles of latency; from, to: {', '.join(sorted(confidence))} confidence."
    if any(row.adjusted for row in table.rows):
        text += " adj.: delivery-adjusted, a lost packet is infinitely late."
    if any(not q.supported for row in table.rows for q in row.quantiles if q is not None):
        text += f" {_MARK}: not supported."
    if table.beyond:
        text += f" Too few samples to tell {', '.join(table.beyond)} from Max."
    yield Text(text, style="dim")


def _remarks(row: LatencyRow, *, named: bool) -> Table:
    """Return what else is to be said about a run: counts, spread, what is not supported."""
    summary = row.summary
    grid = Table.grid(padding=(0, 2, 0, 0))
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
    for p, why in wording.unsupported(summary):
        grid.add_row(f"{p} %", Text(why))
    if few := wording.few_episodes(summary):
        grid.add_row("intervals", Text(few))
    for notice in summary.warnings:
        grid.add_row(Text("warning", style="bold"), Text(units.printable(notice.text)))
    return grid


def _to_ascii(part: Text | Table) -> None:
    texts = [part] if isinstance(part, Text) else part.columns[1].cells
    for text in texts:
        if isinstance(text, Text):
            plain = text.plain.translate(_ASCII)
            text.plain = plain.encode("ascii", "backslashreplace").decode("ascii")
