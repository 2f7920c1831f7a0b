"""Comparisons for a terminal, and lengths of measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tailtrim import units
from tailtrim.publishing.report import comparison_wording as wording
from tailtrim.publishing.report import energy_wording
from tailtrim.publishing.report.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tailtrim.analysis.compare import Comparison, Length

_STYLES = {"better": "green", "worse": "bold red"}
#: Columns that a terminal has room for; those behind them are on the page.
_COLUMNS = 7
_HOUR = 3_600
_MINUTES = 120
#: Settings that are listed; the JSON has all.
_LISTED = 12


def render(comparisons: Sequence[Comparison], *, all_in: str = "as_json()") -> Group:
    """Return what ``rich`` prints of comparisons; ``all_in`` is where the rest of a list is."""
    parts: list[RenderableType] = []
    if (counted := wording.rates(comparisons)) is not None:
        parts += [counted.terminal(), Text(counted.caption, style="dim")]
    comparisons = [one for one in comparisons if one.rates is None]
    if not comparisons:
        return Group(*parts)
    for comparison in comparisons:
        parts += [*_parts(comparison, all_in), Text()]
    if any(comparison.energy.rows for comparison in comparisons):
        parts.append(Text(energy_wording.LEGEND, style="dim"))
    return Group(*parts, Text(wording.legend(comparisons), style="dim"))


def _parts(comparison: Comparison, all_in: str) -> Iterator[RenderableType]:
    for side, one in (("A", comparison.a), ("B", comparison.b)):
        of = f"{units.counted(one.samples, 'sample')}, {units.counted(len(one.runs), 'run')}"
        text = f"{side}  {units.printable(one.name)} ({of})"
        yield Text(text, style="bold")
    if text := wording.factors(comparison):
        yield Text(text)
    shown = wording.quantiles(comparison)
    rows = [row._replace(cells=row.cells[: _COLUMNS - 1]) for row in shown.rows]
    yield Table(shown.columns[:_COLUMNS], rows).terminal()
    if text := wording.extremes(comparison):
        yield Text(text)
    yield Text(wording.maxima(comparison))
    if comparison.sent:
        yield Text("Of all packets sent, lost ones infinitely late:")
        yield wording.sent(comparison).terminal()
    if text := wording.losses(comparison):
        yield Text(text, style=_STYLES.get(comparison.losses.kind, "") if comparison.losses else "")
    for node, table in energy_wording.tables(comparison.energy):
        yield Text(f"Power and energy of {units.printable(node)}:")
        yield table.terminal()
    for note in energy_wording.energy_notes(comparison.energy):
        yield Text(units.printable(note))
    for note in wording.notes(comparison):
        yield Text(f"note: {note}")
    yield from _differences(comparison, all_in)


def _differences(comparison: Comparison, all_in: str) -> Iterator[RenderableType]:
    found = comparison.differences
    if not found:
        yield Text(wording.no_difference(comparison))
        return
    yield Text("What was set up differently:")
    for one in found[:_LISTED]:
        yield Text(f"  {wording.difference(one)}")
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
    yield f"  at least  {bounded}, to be supported"
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
