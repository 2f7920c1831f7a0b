from __future__ import annotations

import io

from rich.console import Console

from tailtrim.publishing.report.table import Cell, Column, Head, Row, Table

TABLE = Table(
    [
        Column("Run", kind="left"),
        Column("Rate\nkpkt/s"),
        Column("50", label="p50", group="Percentiles"),
        Column("99", page="99 %", group="Percentiles"),
        Column("verdict", "Verdict", kind="text"),
    ],
    [
        Row("wire", ["10.0", Cell("2.3", "2.1 to 2.4"), "9.5", Cell("better", kind="better")]),
        Row(Cell("[b]\x1b[31m", "of two"), ["1,000.0", "12.3", "-", "not better"], "part"),
    ],
)


def test_heads_of_a_group_are_beneath_it() -> None:
    assert TABLE.heads == [
        [
            Head("Run", "left", rows=2),
            Head("Rate\nkpkt/s", rows=2),
            Head("Percentiles", columns=2),
            Head("Verdict", "text", rows=2),
        ],
        [Head("50"), Head("99 %")],
    ]
    alone = TABLE._replace(columns=[column._replace(group="") for column in TABLE.columns])
    assert [head.rows for heads in alone.heads for head in heads] == [1] * 5


def test_cells_of_a_page_have_labels_and_kinds() -> None:
    cells = list(TABLE.cells(TABLE.rows[0]))
    assert [label for label, _ in cells] == ["Rate kpkt/s", "p50", "99 %", ""]
    assert [cell.kind for _, cell in cells] == ["", "", "", "text better"]


def test_lines_are_not_broken() -> None:
    assert list(TABLE._replace(rows=TABLE.rows[:1]).lines()) == [
        "Run     Rate   50   99  verdict",
        "      kpkt/s",
        "wire    10.0  2.3  9.5  better",
    ]


def test_a_terminal_shows_names_as_text_and_does_not_break_numbers() -> None:
    shown = io.StringIO()
    Console(file=shown, width=60).print(TABLE.terminal())
    text = shown.getvalue()
    assert "[b]\\x1b[31m" in text
    for whole in ("1,000.0", "2.1 to 2.4"):
        assert whole in text
