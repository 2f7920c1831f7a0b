"""Histograms of other tools, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tailtrim import units
from tailtrim.analysis.histograms.bucket_histogram import PERCENTILES
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tailtrim.analysis.histograms import BucketHistogram

_COLUMNS = (Column("", kind="left"), Column("at least µs"), Column("at most µs"))


def render(histograms: Sequence[BucketHistogram]) -> Group:
    """Return what ``rich`` prints."""
    parts: list[RenderableType] = []
    for histogram in histograms:
        counted = f"{histogram.name}: {units.count(histogram.count)} latencies"
        told = [f"{name} {units.count(value)}" for name, value in histogram.counters.items()]
        parts += [
            Text(f"{counted} in buckets", style="bold"),
            *([Text("  " + ", ".join(told))] if told else []),
            Table(_COLUMNS, list(_rows(histogram))).terminal(),
            *(Text(f"  {note}") for note in histogram.notes),
            Text(),
        ]
    return Group(*parts[:-1])


def _rows(histogram: BucketHistogram) -> Iterator[Row]:
    for name, share in PERCENTILES.items():
        bounds_ns = histogram.quantile(share) or (None, None)
        yield Row(f"  {name}", [units.microseconds(ns, places=3) for ns in bounds_ns])
