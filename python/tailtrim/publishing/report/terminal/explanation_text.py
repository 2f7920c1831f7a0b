"""An explanation in lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.explain.host_explanation import of_host
from tailtrim.publishing.report import cause_wording, periodic_wording
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tailtrim.analysis.explain import Explanation
    from tailtrim.analysis.explain.host_explanation import Advice, HostExplanation


def lines(explanation: Explanation) -> Iterator[str]:
    """Return what ``tailtrim explain`` prints, line by line."""
    if explanation.host is not None:
        yield from _of_host(of_host(explanation.host))
        yield ""
    yield periodic_wording.sentence(explanation)
    if explanation.periodic or explanation.batches:
        yield ""
        yield from periodic_wording.table(explanation).lines()
    for part in periodic_wording.details(explanation):
        yield ""
        yield from part
    if told := periodic_wording.basis(explanation):
        yield ""
        yield told


def _of_host(host: HostExplanation) -> Iterator[str]:
    verdict = host.verdict
    yield cause_wording.sentence(verdict)
    yield ""
    rows = []
    for name, cause in zip(cause_wording.labels(verdict.causes), verdict.causes, strict=True):
        if cause.late_packets:
            without_ns = host.at("0.999", cause.without_ns)
            cells = [
                units.count(cause.late_packets),
                cause_wording.share(cause.share_ppm),
                units.NONE if without_ns is None else units.time(without_ns),
                " ".join(cause.signature.checks if cause.signature else ()),
            ]
            rows.append(Row(name, cells))
    numbers = map(Column, ("packets", "share", "p99.9 without"))
    columns = [Column("cause", kind="left"), *numbers, Column("checks", kind="left")]
    yield from Table(columns, rows).lines()
    yield from _advised(verdict.advice)
    yield from cause_wording.gaps(host)


def _advised(advice: Iterable[Advice]) -> Iterator[str]:
    for number, one in enumerate(advice):
        if not number:
            yield ""
            yield "What the checks ask, and what tailtrim tune plan would change for it:"
        yield f"{one.check}  {one.title}: {one.wanted}"
        for change in one.changes:
            yield f"         {change.title} ({cause_wording.when(change)})"
