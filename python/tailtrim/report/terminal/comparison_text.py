"""Comparisons for a terminal, and lengths of measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tailtrim.compare import BETTER, NO_DIFFERENCE, NOT_SUPPORTED, WORSE
from tailtrim.report import energy_wording, units
from tailtrim.report.comparison_wording import (
    COLUMNS,
    DETECTABLE,
    cells_of,
    difference,
    extremes,
    legend,
    losses,
    maxima,
    no_difference,
    notes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tailtrim.compare import Comparison, Length, Row, SentRow

_STYLES = {BETTER: "green", WORSE: "bold red", NO_DIFFERENCE: "", NOT_SUPPORTED: "dim"}
_HOUR = 3_600
_MINUTES = 120
#: Settings that are listed; the JSON has all.
_LISTED = 12


def render(comparisons: Sequence[Comparison], *, all_in: str = "as_json()") -> Group:
    """Return what ``rich`` prints of comparisons; ``all_in`` is where the rest of a list is."""
    parts: list[RenderableType] = []
    for comparison in comparisons:
        parts += [*_parts(comparison, all_in), Text()]
    if any(comparison.energy.rows for comparison in comparisons):
        parts.append(Text(energy_wording.LEGEND, style="dim"))
    return Group(*parts, Text(legend(comparisons), style="dim"))


def _parts(comparison: Comparison, all_in: str) -> Iterator[RenderableType]:
    for side, one in (("A", comparison.a), ("B", comparison.b)):
        runs = f"{len(one.runs)} run{'s' * (len(one.runs) > 1)}"
        text = f"{side}  {units.printable(one.name)} ({units.count(one.samples)} samples, {runs})"
        yield Text(text, style="bold")
    yield _table(comparison.quantiles, (*COLUMNS, *DETECTABLE))
    if text := extremes(comparison):
        yield Text(text)
    yield Text(maxima(comparison))
    if comparison.sent:
        yield Text("Of all packets sent, lost ones infinitely late:")
        yield _table(comparison.sent, COLUMNS)
    if text := losses(comparison):
        yield Text(text, style=_STYLES[comparison.losses.verdict] if comparison.losses else "")
    yield from _energy(comparison)
    for note in notes(comparison):
        yield Text(f"note: {note}")
    yield from _differences(comparison, all_in)


def _table(rows: Sequence[Row | SentRow], columns: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        # Where the line is too short, words are broken, and not numbers.
        text = name == "verdict"
        table.add_column(name, justify="left" if text else "right", no_wrap=not text)
    for row in rows:
        cells = cells_of(row)
        table.add_row(*cells[:6], Text(cells[6], style=_STYLES[row.verdict]), *cells[7:])
    return table


def _energy(comparison: Comparison) -> Iterator[RenderableType]:
    for node in dict.fromkeys(row.node for row in comparison.energy.rows):
        yield Text(f"Power and energy of {units.printable(node)}:")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in energy_wording.HEAD:
            left = name in ("", "verdict")
            table.add_column(name, justify="left" if left else "right", no_wrap=name != "")
        for row in comparison.energy.rows:
            if row.node == node:
                table.add_row(*energy_wording.energy_cells(row))
        yield table
    for note in energy_wording.energy_notes(comparison.energy):
        yield Text(units.printable(note))


def _differences(comparison: Comparison, all_in: str) -> Iterator[RenderableType]:
    found = comparison.differences
    if not found:
        yield Text(no_difference(comparison))
        return
    yield Text("What was set up differently:")
    for one in found[:_LISTED]:
        yield Text(f"  {difference(one)}")
    if len(found) > _LISTED:
        yield Text(f"  and {len(found) - _LISTED} more, which {all_in} lists")


def length_lines(length: Length, confidence: str) -> Iterator[str]:
    """Return what ``tailtrim plan-length`` prints, line by line."""
    what = "latency" if length.of_latency else "share of packets beyond it"
    yield (
        f"p{units.percent(length.p)} within {100 * length.precision:g} % of its {what}"
        f" ({units.percent(confidence)} % confidence), in {100 * length.assurance:g} % of runs:"
    )
    yield f"  samples   {units.count(length.samples)}{_duration(length, length.samples)}"
    bounded = f"{units.count(length.bounded_from)}{_duration(length, length.bounded_from)}"
    yield f"  at least  {bounded}, for any upper bound"
    if length.design_effect > 1:
        yield f"  design effect {length.design_effect:.3g}: late packets come in clusters"


def _duration(length: Length, samples: int) -> str:
    if not length.rate_pps:
        return ""
    seconds = samples / length.rate_pps
    told = f"{seconds:,.1f} s"
    if seconds >= _HOUR:
        told = f"{seconds / 3600:,.1f} h"
    elif seconds >= _MINUTES:
        told = f"{seconds / 60:,.1f} min"
    return f" ({told} at {length.rate_pps:,.0f} packets/s)"
