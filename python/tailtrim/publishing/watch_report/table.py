"""The table of the targets of a watch, with a row for each."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.watched import MINUTE_NS
from tailtrim.publishing.report import wording
from tailtrim.publishing.report.table import Cell, Column, Row, Table
from tailtrim.publishing.watch_report.account_wording import notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.watched import Measured
    from tailtrim.results.summary import Quantile

SHOWN = ("0.5", "0.99", "0.999")
LEGEND = (
    "Of answered probes, with 95 % confidence intervals. Bad: not answered in time, of those that"
    " left."
)


def table(found: Sequence[Measured], now_ns: int, *, is_brief: bool = False) -> Table:
    """Return the table; hosts have a column where there are several.

    A brief one, for a terminal, has no counts of probes.
    """
    known = [one.summary for one in found if one.summary is not None]
    styles = units.Times.alike([*map(wording.times, known)])
    style = styles[0] if styles else units.Times()
    has_hosts = len({one.host for one in found}) > 1
    columns = [
        Column("target", kind="left"),
        *([Column("host", kind="left")] if has_hosts else []),
        Column("minutes"),
        *([] if is_brief else [Column("probes")]),
        Column("bad %"),
        *(Column(f"p{units.percent(p)}\n{style.unit}") for p in SHOWN),
        Column(f"max\n{style.unit}"),
    ]
    rows = [
        Row(
            units.printable(one.name),
            [
                *([units.printable(one.host)] if has_hosts else []),
                *_cells(one, style, now_ns, is_brief=is_brief),
            ],
        )
        for one in found
    ]
    return Table(columns, rows)


def _cells(
    one: Measured, style: units.Times, now_ns: int, *, is_brief: bool
) -> Iterator[str | Cell]:
    there, missing = _minutes(one, now_ns)
    yield f"{there:,} of {there + missing:,}" if missing else f"{there:,}"
    if not is_brief:
        yield units.count(sum(account.counts["due"] for account in one.accounts))
    if one.summary is None:
        yield from [units.NONE] * (2 + len(SHOWN))
        return
    yield wording.loss(one.summary)
    quantiles = {quantile.p: quantile for quantile in one.summary.latency_ns.quantiles}
    for p in SHOWN:
        yield _quantile(quantiles.get(p), style)
    yield style.number(one.summary.latency_ns.max)


def _quantile(one: Quantile | None, style: units.Times) -> Cell:
    if one is None or one.value is None:
        return Cell(units.NONE)
    return Cell(
        wording.quantile(one, style), f"{style.bound(one.low)}\N{EN DASH}{style.bound(one.high)}"
    )


def remarks(found: Sequence[Measured], now_ns: int) -> Iterator[tuple[str, str]]:
    """Yield names of targets, each with what a reader has to know of it."""
    for one in found:
        if len(one.accounts) > 1:
            continue
        if one.fault:
            yield units.printable(one.label), units.printable(one.fault)
            continue
        for note in notes(one.accounts[0], now_ns):
            yield units.printable(one.label), units.printable(note)


def as_csv(found: Sequence[Measured], now_ns: int) -> bytes:
    """Return all numbers of all targets: times in ns, counts of probes and of what is left out."""
    names = ["due", "answered", "unstamped", "disturbed", "late", "lost", "altered", "undelivered"]
    names += ["refused", "missed", "cut"]
    head = ["host", "target", "minutes", "missing", "repeated", "damaged", "wrong", *names]
    quantiles = [f"p{units.percent(p)}{end}_ns" for p in SHOWN for end in ("", "_low", "_high")]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*head, "min_ns", *quantiles, "max_ns"])
    for one in found:
        accounts = one.accounts
        left_out = [
            sum(getattr(account, name) for account in accounts)
            for name in ("repeated", "damaged", "wrong")
        ]
        counts = [sum(account.counts[name] for account in accounts) for name in names]
        told = [*_minutes(one, now_ns), *left_out, *counts, *_times(one)]
        rows.writerow([one.host, one.name, *told])
    return text.getvalue().encode("utf-8", "backslashreplace")


def _minutes(one: Measured, now_ns: int) -> tuple[int, int]:
    """Return how many minutes are there, and how many are not; one that a restart cut is one."""
    there = sum(len(account.begins_ns) for account in one.accounts)
    gaps = [gap for account in one.accounts for gap in account.missing(now_ns)]
    return there, sum((gap.end_ns - gap.begin_ns) // MINUTE_NS for gap in gaps)


def _times(one: Measured) -> list[int | None]:
    if one.summary is None:
        return [None] * (2 + 3 * len(SHOWN))
    latency = one.summary.latency_ns
    known = {quantile.p: quantile for quantile in latency.quantiles}
    told = [
        getattr(known[p], end) if p in known else None
        for p in SHOWN
        for end in ("value", "low", "high")
    ]
    return [latency.min, *told, latency.max]
