"""What a search of capacity found, for a terminal: a row for each goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tailtrim.report import capacity_wording, units

if TYPE_CHECKING:
    from tailtrim.capacity.record import Capacity

_COLUMNS = ("lower bound", "upper bound", "throughput", "width", "trials at the bounds")


def render(capacity: Capacity) -> Table:
    """Return what ``rich`` prints of the goals."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(capacity_wording.unit(capacity), overflow="fold")
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=name == "width")
    for row in capacity_wording.rows(capacity):
        cells = (row.lower, row.upper, row.throughput, row.width, row.trials)
        table.add_row(Text(units.printable(row.goal)), *cells)
    return table


def notes(capacity: Capacity) -> list[str]:
    """Return what a reader has to know beside the table."""
    return [units.printable(note) for note in capacity_wording.notes(capacity)]
