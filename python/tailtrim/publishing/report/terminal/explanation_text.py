"""An explanation in lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.explain.host_explanation import of_host
from tailtrim.publishing.report import cause_wording
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tailtrim.analysis.explain import Explanation, Interval, Limit, PeriodicCause
    from tailtrim.analysis.explain.host_explanation import Advice, HostExplanation

# Aliases that are listed in text; the JSON form has all.
_LISTED = 3
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def lines(explanation: Explanation) -> Iterator[str]:
    """Return what ``tailtrim explain`` prints, line by line."""
    if explanation.host is not None:
        yield from _of_host(of_host(explanation.host))
        yield ""
    late = units.count(explanation.late_packets)
    yield (
        f"{late} packets are late (above {units.time(explanation.late_above_ns)}, median"
        f" {units.time(explanation.median_ns)}), by {units.count(explanation.stalls)} stalls."
    )
    if not explanation.periodic:
        yield "No periodic cause is found."
    sources = dict.fromkeys(cause.source for cause in explanation.periodic)
    for source in sources:
        yield ""
        yield from _of_source([one for one in explanation.periodic if one.source == source])
    for batch in explanation.batches:
        yield ""
        yield (
            f"Some of every {_ordinal(batch.packets)} packet are {units.time(batch.delay_ns)} late"
            f" ({units.count(batch.events)} packets): a batch of the device or its card, or"
            f" something of {batch.frequency_hz:.1f} Hz."
        )
    yield from _of_limits(explanation.limits)
    yield ""
    unexplained = units.count(explanation.unexplained)
    yield f"{unexplained} of {units.count(explanation.stalls)} stalls are not periodic."
    if explanation.host is None:
        yield (
            "This explanation is statistical: without a trace of the host, it knows rhythms and"
            " rates, not which interrupt met which packet."
        )


def _of_source(causes: list[PeriodicCause]) -> Iterator[str]:
    shortest, *longer = sorted(causes, key=lambda cause: cause.height_ns)
    about = "about " if shortest.wanders else ""
    yield f"{about}{shortest.frequency_hz:.1f} Hz{_named(shortest)}: {_level(shortest)}"
    for cause in longer:
        yield (
            f"every {_ordinal(cause.every)} time longer,"
            f" {cause.frequency_hz:.1f} Hz{_named(cause)}: {_level(cause)}"
        )
    yield (
        f"  {units.about(shortest.touched)} % of the packets meet it, {_interval(shortest.excess)}"
        f" longer on average; they are {100 * shortest.late_share:.0f} % of the late ones."
        f" It lasts {_interval(shortest.width)}{_unsure(shortest)}."
    )


def _interval(interval: Interval) -> str:
    ends = interval.value_ns, interval.low_ns, interval.high_ns
    return units.Times.of([ends]).bounded(*ends)


def _unsure(cause: PeriodicCause) -> str:
    told = "; its clock wanders, or it delays packets at some times only" if cause.wanders else ""
    if cause.aliases_hz:
        listed = ", ".join(f"{hz:.1f}" for hz in cause.aliases_hz[:_LISTED])
        more = len(cause.aliases_hz) - _LISTED
        told += f"; it may as well be {listed} Hz" + (f" or one of {more} more" if more > 0 else "")
    return told


def _of_limits(limits: tuple[Limit, ...]) -> Iterator[str]:
    covered = [one for one in limits if one.longer_than_ns is not None]
    if covered:
        told = ", ".join(
            f"{units.time(one.longer_than_ns or 0)} at {one.frequency_hz:g} Hz" for one in covered
        )
        least = min(one.covered for one in covered)
        yield ""
        yield f"No other cause longer than {told} (at {100 * least:.0f} % of its phases or more)."
    missed = ", ".join(f"{one.frequency_hz:g}" for one in limits if one.longer_than_ns is None)
    if missed:
        yield f"Not covered by the packets, so not known: {missed} Hz."


def _level(cause: PeriodicCause) -> str:
    return (
        f"up to {units.time(cause.height_ns)} ({units.time(cause.delay_ns)} above the median),"
        f" {units.count(cause.events)} events"
    )


def _named(cause: PeriodicCause) -> str:
    return f" ({', '.join(cause.vectors)} by its rate)" if cause.vectors else ""


def _ordinal(number: int) -> str:
    """Return the word for one in so many.

    >>> _ordinal(3), _ordinal(12), _ordinal(32)
    ('third', '12th', '32nd')

    """
    if number in {2, 3}:
        return {2: "second", 3: "third"}[number]
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else _ENDINGS.get(number % 10, 'th')}"


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
