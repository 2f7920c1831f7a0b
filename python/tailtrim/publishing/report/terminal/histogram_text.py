"""Histograms of other tools, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tailtrim import units
from tailtrim.analysis.histograms.bucket_histogram import PERCENTILES
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tailtrim.analysis.histograms import BucketHistogram


def render(histograms: Sequence[BucketHistogram]) -> Group:
    """Return what ``rich`` prints."""
    parts: list[RenderableType] = []
    for histogram in histograms:
        counted = f"{histogram.name}: {units.count(histogram.count)} latencies"
        told = [f"{name} {units.count(value)}" for name, value in histogram.counters.items()]
        parts += [
            Text(f"{counted} in buckets", style="bold"),
            *([Text("  " + ", ".join(told))] if told else []),
            _table(histogram).terminal(),
            *(Text(f"  {note}") for note in histogram.notes),
            Text(),
        ]
    return Group(*parts[:-1])


def _table(histogram: BucketHistogram) -> Table:
    found = {name: histogram.quantile(share) or (None, None) for name, share in PERCENTILES.items()}
    style = units.Times.of(found.values())
    heads = (f"at least {style.unit}", f"at most {style.unit}")
    rows = [Row(f"  {name}", [*map(style.number, bounds)]) for name, bounds in found.items()]
    return Table([Column("", kind="left"), *map(Column, heads)], rows)
