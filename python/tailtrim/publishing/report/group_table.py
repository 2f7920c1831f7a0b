"""Tables of groups of packets and of clusters of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.groups import kept_groups, split
from tailtrim.analysis.lost import clusters
from tailtrim.publishing.report import wording
from tailtrim.publishing.report.table import Column, Row, Table
from tailtrim.results.layout import LOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from tailtrim.analysis.groups import Group
    from tailtrim.results import RunDirectory, Summary

#: Clusters of losses on a page.
_MOST = 10


def tables_of(run: RunDirectory) -> Iterator[tuple[str, Table]]:
    """Yield the tables of a run directory, each with its title; none where none were asked for."""
    if (kept := kept_groups(run)) is not None:
        field, groups = kept
        yield f"By {field}", by_group(field, groups)
    begin_ns = run.summary.ingress_tap.first_ns
    if LOST in run.tables and begin_ns is not None:
        yield "Clusters of lost packets", of_clusters(run.table(LOST), begin_ns)


def by_group(field: str, groups: Sequence[Group]) -> Table:
    """Return packets, loss and percentiles of each group, the rest last."""
    shown = [one for one in groups if one.value is not None or one.summary.ingress.packets]
    styles = units.Times.alike([wording.times(one.summary) for one in shown])
    unit = styles[0].unit if styles else ""
    rows = [
        _group("others" if one.value is None else one.value, one.summary, style)
        for one, style in zip(shown, styles, strict=True)
    ]
    columns = [
        Column(split(field)[0], kind="left"),
        Column("packets"),
        Column("loss %"),
        *(Column(units.percent(p), label=f"p{units.percent(p)}") for p in wording.SHOWN),
        Column("Max"),
    ]
    return Table(columns, rows, wording.legend(f"Percentiles of latency in {unit}.", rows))


def _group(name: str, summary: Summary, style: units.Times) -> Row:
    loss = units.NONE if summary.loss is None else f"{100 * summary.loss:.3g}"
    return Row(name, [units.count(summary.ingress.packets), loss, *wording.cells(summary, style)])


def of_lost(lost: pa.Table) -> str:
    """Return how many packets were lost in how many clusters, and the largest one."""
    found = clusters(lost)
    if not found:
        return "no packet was lost"
    first = found[0]
    return (
        f"{units.count(lost.num_rows)} lost packets in {units.count(len(found))} clusters; the"
        f" largest has {units.count(first.packets)}, from frame {first.first_frame} on"
    )


def of_clusters(lost: pa.Table, begin_ns: int) -> Table:
    """Return the largest clusters of losses, with times since the begin of the run."""
    columns = [
        Column("First frame"),
        Column("Packets"),
        Column("Begins\ns", label="Begins, s"),
        Column("Lasts\nms", label="Lasts, ms"),
    ]
    rows = [
        Row(
            str(one.first_frame),
            [
                units.count(one.packets),
                f"{(one.first_ns - begin_ns) / 1e9:.6f}",
                f"{(one.last_ns - one.first_ns) / 1e6:.3f}",
            ],
        )
        for one in clusters(lost)[:_MOST]
    ]
    return Table(columns, rows)
