"""The page of spans of a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.watched import TAP
from tailtrim.publishing.report.pages import page as frame
from tailtrim.publishing.report.write_files import store
from tailtrim.publishing.watch_report import table
from tailtrim.publishing.watch_report.account_wording import moment, where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.analysis.watched import Measured

#: So many of the slowest probes are listed.
_SLOWEST = 20


def write(found: Sequence[Measured], title: str, out: Path, now_ns: int) -> list[Path]:
    """Write page and numbers: see :func:`tailtrim.publishing.watch_report.write`."""
    page = frame.render(
        "watch.html.j2",
        [],
        title=title,
        subject="spans of a watch",
        subtitle=_span(found),
        setting=units.counted(sum(len(one.accounts) == 1 for one in found), "target"),
        targets=table.table(found, now_ns),
        legend=table.LEGEND,
        remarks=list(table.remarks(found, now_ns)),
        slowest=list(_slowest(found)),
    )
    return store(out, {"report.html": page, "targets.csv": table.as_csv(found, now_ns)})


def _span(found: Sequence[Measured]) -> str:
    begins = [ns for one in found for account in one.accounts for ns in account.begins_ns]
    return f"Minutes from {moment(min(begins))} to {moment(max(begins) + 60 * 10**9)}"


def _slowest(found: Sequence[Measured]) -> Iterator[tuple[str, str]]:
    """Yield the slowest probes of all targets, each with where its time went."""
    every = [
        (worst, one.label, one.accounts[0].target.kind)
        for one in found
        if len(one.accounts) == 1
        for worst in one.accounts[0].slowest()
    ]
    for worst, label, kind in sorted(every, key=lambda one: -one[0].latency_ns)[:_SLOWEST]:
        told = f"{units.time(worst.latency_ns)} at {moment(worst.begin_ns)}"
        # A device is one part.
        yield label, told if kind == TAP else f"{told}: {where(worst)}"
