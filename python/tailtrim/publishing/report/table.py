"""Tables: one description, printed in a terminal and drawn on a page."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.table import Table as TerminalTable
from rich.text import Text

from tailtrim import units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STYLES = {"better": "green", "worse": "bold red", "none": "dim"}


class Column(NamedTuple):
    """A column: ``head`` in one or more lines, ``page`` where the page's head is another.

    ``label`` is beside a cell where a page has no room for the table, by default the head.
    ``kind`` is ``left`` or ``text`` for words, which may be broken; numbers are at the right.
    ``group`` is a head above this column and its neighbours of the same group, on a page.
    """

    head: str
    page: str = ""
    label: str = ""
    kind: str = ""
    group: str = ""


class Cell(NamedTuple):
    """A text, and a smaller one ``below`` it, such as an interval.

    ``kind`` is how it looks: better, worse, none (not known), or a class of the page's style sheet.
    """

    text: str
    below: str = ""
    kind: str = ""


class Row(NamedTuple):
    """A row: the cell of its name, and those of the other columns; ``kind`` as of a cell."""

    name: str | Cell
    cells: Sequence[str | Cell]
    kind: str = ""

    @property
    def title(self) -> str:
        """The text of its name."""
        return _cell(self.name).text


class Head(NamedTuple):
    """A head of a page's table, over so many columns and rows."""

    text: str
    kind: str = ""
    columns: int = 1
    rows: int = 1


class Table(NamedTuple):
    """A table; the first column has the names of the rows."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str = ""
    kind: str = ""

    @property
    def heads(self) -> list[list[Head]]:
        """Lines of heads for a page: two where columns have groups."""
        grouped = any(column.group for column in self.columns)
        first: list[Head] = []
        second: list[Head] = []
        for group, columns in itertools.groupby(self.columns, key=lambda column: column.group):
            # Names of rows are at the left, also where they are numbers.
            of = [
                Head(
                    one.page or one.head,
                    "left" if one is self.columns[0] else one.kind,
                    rows=1 + grouped,
                )
                for one in columns
            ]
            first += [Head(group, columns=len(of))] if group else of
            second += [head._replace(rows=1) for head in of] if group else []
        return [first, second] if second else [first]

    def cells(self, row: Row) -> Iterator[tuple[str, Cell]]:
        """Yield the cells of a row for a page, each with its label."""
        for column, cell in zip(self.columns[1:], row.cells, strict=True):
            cell = _cell(cell)  # noqa: PLW2901
            kind = " ".join(filter(None, (column.kind, cell.kind)))
            head = "" if column.kind == "text" else (column.page or column.head)
            yield column.label or " ".join(head.split()), cell._replace(kind=kind)

    def terminal(self, *, gap: int = 2) -> TerminalTable:
        """Return what ``rich`` prints, with so many spaces between columns."""
        table = TerminalTable(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
        rows = [list(map(_cell, (row.name, *row.cells))) for row in self.rows]
        for place, column in enumerate(self.columns):
            # Words may be broken, and intervals; a number is not.
            broken = bool(column.kind) or any(row[place].below for row in rows)
            justify: Literal["left", "right"] = "left" if column.kind else "right"
            table.add_column(column.head, justify=justify, no_wrap=not broken, overflow="fold")
        for cells, row in zip(rows, self.rows, strict=True):
            table.add_row(*(_text(cell, row.kind) for cell in cells))
        return table

    def lines(self, *, gap: int = 2) -> Iterator[str]:
        """Yield lines of text, which are not broken where a terminal is narrow."""
        heads = [column.head.split("\n") for column in self.columns]
        rows = [list(line) for line in itertools.zip_longest(*heads, fillvalue="")]
        rows += [[_cell(cell).text for cell in (row.name, *row.cells)] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [
                text.ljust(width) if column.kind else text.rjust(width)
                for text, width, column in zip(row, widths, self.columns, strict=True)
            ]
            yield (" " * gap).join(cells).rstrip()


def _cell(cell: str | Cell) -> Cell:
    return Cell(cell) if isinstance(cell, str) else cell


def _text(cell: Cell, kind: str) -> Text:
    style = _STYLES.get(cell.kind) or _STYLES.get(kind, "")
    lines = (units.printable(line) for line in (cell.text, cell.below) if line)
    return Text("\n".join(lines), style=style)
