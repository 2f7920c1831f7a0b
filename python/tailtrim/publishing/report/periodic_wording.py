"""Periodic causes in words, and the late packets by cause as a table that adds up."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.publishing.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.explain import (
        Batch,
        Explanation,
        Interval,
        Limit,
        PeriodicCause,
        PhaseDifference,
    )

# Aliases that are listed in text; the JSON form has all.
_LISTED = 3
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
# The sum of all excess has at least four digits, so that those of the parts say something.
_LEAST = 1_000
_PER_MILLE = 1_000


def sentence(found: Explanation) -> str:
    """Return how many packets are late, and by how much together."""
    return (
        f"{units.count(found.late_packets)} packets are late (above"
        f" {units.time(found.late_above_ns)}, median {units.time(found.median_ns)}), by"
        f" {units.count(found.stalls)} stalls; together they are {units.time(found.excess_ns)}"
        " above the median."
    )


def table(found: Explanation) -> Table:
    """Return the late packets by cause: each is in one row, and the rows add up."""
    rows = [row for row in found.rows if row.packets or row.kind not in {"behind", "several"}]
    sizes = {unit: size for unit, size in _SIZES.items() if found.excess_ns >= _LEAST * size}
    unit, size = next(iter(sizes.items()), ("ns", 1))
    named = [_row_name(found, row.name, row.cause, row.kind) for row in rows]
    cells = _cells([row.packets for row in rows], [row.excess_ns for row in rows], size)
    (whole,) = _cells([found.late_packets], [found.excess_ns], size)
    columns = [
        Column("cause", kind="left"),
        Column("late\npackets"),
        Column("share", label="share of the packets"),
        Column(f"above the\nmedian, {unit}"),
        Column("share", label="share of that"),
    ]
    return Table(
        columns,
        [
            *(Row(name, of) for name, of in zip(named, cells, strict=True)),
            Row("all late packets", whole, kind="whole"),
        ],
    )


def _cells(packets: Sequence[int], excess_ns: Sequence[int], size: int) -> list[tuple[str, ...]]:
    """Return the cells of rows, in units of so many ns; each column adds up."""
    columns = (
        map(units.count, packets),
        _shares(packets),
        map(units.count, rounded(excess_ns, 1, size)),
        _shares(excess_ns),
    )
    return list(zip(*columns, strict=True))


_SIZES = {"s": units.SECOND, "ms": units.MILLISECOND, "µs": units.MICROSECOND}


def rounded(parts: Sequence[int], numerator: int, denominator: int) -> list[int]:
    """Return fractions of parts as whole numbers which add up to the rounded sum.

    >>> rounded([14, 14, 72], 10, 100)
    [1, 2, 7]

    """
    sums = [(2 * part * numerator + denominator) // (2 * denominator) for part in accumulate(parts)]
    return [after - before for before, after in pairwise([0, *sums])]


def _shares(parts: Sequence[int]) -> list[str]:
    per_mille = rounded(parts, _PER_MILLE, max(sum(parts), 1))
    return [f"{units.fixed(share, 10, 1)} %" for share in per_mille]


def _row_name(found: Explanation, name: str, place: int | None, kind: str) -> str:
    if kind == "cause" and place is not None and place < len(found.periodic):
        return f"{name}{_vectors(found.periodic[place])}"
    return name


def details(found: Explanation) -> Iterator[list[str]]:
    """Yield lines for each source, for what has the same frequency, for batches and limits."""
    if not found.periodic:
        yield ["No periodic cause is found."]
    sources = dict.fromkeys(cause.source for cause in found.periodic)
    for source in sources:
        yield list(_of_source([one for one in found.periodic if one.source == source]))
    for one in found.phase_differences:
        yield [_apart(found, one)]
    yield from ([_of_batch(batch)] for batch in found.batches)
    if limits := list(_of_limits(found.limits)):
        yield limits


def basis(found: Explanation) -> str:
    """Return what an explanation cannot know without a trace; nothing with one."""
    if found.host is not None:
        return ""
    return (
        "This explanation is statistical: without a trace of the host, it knows rhythms and"
        " rates, not which interrupt met which packet."
    )


def _of_source(causes: list[PeriodicCause]) -> Iterator[str]:
    shortest, *longer = sorted(causes, key=lambda cause: cause.height_ns)
    about = "about " if shortest.wanders else ""
    yield f"{about}{shortest.frequency_hz:.1f} Hz{_vectors(shortest)}: {_level(shortest)}"
    for cause in longer:
        yield (
            f"every {_ordinal(cause.every)} time longer,"
            f" {cause.frequency_hz:.1f} Hz{_vectors(cause)}: {_level(cause)}"
        )
    yield (
        f"  {units.about(shortest.touched)} % of the packets meet it, {_interval(shortest.excess)}"
        f" longer on average. It lasts {_interval(shortest.width)}{_unsure(shortest)}."
    )


def _apart(found: Explanation, one: PhaseDifference) -> str:
    first, second = (found.periodic[place] for place in one.causes)
    part = 100 * one.apart_ns / first.period_ns
    return (
        f"Two clocks have {first.frequency_hz:.1f} Hz: the second one ends"
        f" {units.time(one.apart_ns)} ({part:.0f} % of the period) after the first one, all"
        f" {found.searched_ns / units.SECOND:.0f} s (within {units.time(max(one.moved_ns, 1))})."
        f" They delay {100 * first.purity:.0f} and {100 * second.purity:.0f} % of the packets that"
        " come in time for them, so each strikes in every period. Ticks of a host and its guest are"
        " such a pair."
    )


def _of_batch(batch: Batch) -> str:
    return (
        f"Some of every {_ordinal(batch.packets)} packet are {units.time(batch.delay_ns)} late: a"
        " batch of the device or its card, or something of"
        f" {batch.frequency_hz:.1f} Hz."
    )


def _interval(interval: Interval) -> str:
    ends = interval.value_ns, interval.low_ns, interval.high_ns
    return units.Times.of([ends]).bounded(*ends)


def _unsure(cause: PeriodicCause) -> str:
    told = "; its clock wanders, or it delays packets at some times only" if cause.wanders else ""
    if cause.clock_hz is not None:
        times = _ordinal(round(cause.clock_hz / cause.frequency_hz))
        told += f"; it may be every {times} occurrence of a clock of {cause.clock_hz:.1f} Hz"
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
        yield f"No other cause longer than {told} (at {100 * least:.0f} % of its phases or more)."
    missed = ", ".join(f"{one.frequency_hz:g}" for one in limits if one.longer_than_ns is None)
    if missed:
        yield f"Not covered by the packets, so not known: {missed} Hz."


def _level(cause: PeriodicCause) -> str:
    return f"up to {units.time(cause.height_ns)} ({units.time(cause.delay_ns)} above the median)"


def _vectors(cause: PeriodicCause) -> str:
    named = ", ".join(map(units.printable, cause.vectors))
    return f" ({named} by its rate)" if named else ""


def _ordinal(number: int) -> str:
    """Return the word for one in so many.

    >>> _ordinal(3), _ordinal(12), _ordinal(32)
    ('third', '12th', '32nd')

    """
    if number in {2, 3}:
        return {2: "second", 3: "third"}[number]
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else _ENDINGS.get(number % 10, 'th')}"
