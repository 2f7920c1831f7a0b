"""Words for what a span of a watch has, and for what it lacks."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.watched import MINUTE_NS, OF_THE_METER, TAP
from tailtrim.publishing.watch_report import tap_wording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.watched import Account, Span, Worst

#: So many gaps are told one by one.
_GAPS = 3


def moment(ns: int) -> str:
    """Return a time in the zone of this host."""
    return datetime.fromtimestamp(ns // 10**9).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def notes(account: Account, now_ns: int) -> Iterator[str]:
    """Yield what a reader must know of a span before trusting its numbers."""
    if account.target.fault:
        yield f"described by its folder alone ({account.target.fault})"
    if gaps := account.missing(now_ns):
        count = sum(map(_length, gaps))
        told = ", ".join(f"{moment(gap.begin_ns)} to {moment(gap.end_ns)}" for gap in gaps[:_GAPS])
        more = f" and {len(gaps) - _GAPS:,} other times" if len(gaps) > _GAPS else ""
        yield f"{units.counted(count, 'minute')} without a line: {told}{more}"
    left_out = [
        f"{units.counted(count, noun)}{what}"
        for count, noun, what in (
            (account.repeated, "line", " repeated"),
            (account.damaged, "place", " where the file is damaged or cut"),
            (account.wrong, "line", " no minute"),
        )
        if count
    ]
    if left_out:
        where = f" ({'; '.join(account.places)})" if account.places else ""
        yield f"left out: {', '.join(left_out)}{where}"
    if account.unordered:
        yield (
            f"{units.counted(account.unordered, 'minute')} with counts of latencies alone:"
            " intervals take these for independent, and periods and clusters are unknown"
        )
    own = [f"{account.counts[name]:,} {name}" for name in OF_THE_METER if account.counts[name]]
    if own:
        yield f"probes left out as faults of the meter: {', '.join(own)}"
    if account.target.kind == TAP:
        yield from tap_wording.notes(account)
    if account.health["clock_stepped_ns"]:
        yield f"the clock was stepped by up to {units.time(account.health['clock_stepped_ns'])}"


def _length(gap: Span) -> int:
    return (gap.end_ns - gap.begin_ns) // MINUTE_NS


def where(one: Worst) -> str:
    """Return the parts of a slow probe's time.

    >>> from tailtrim.analysis.watched import Worst
    >>> where(Worst(0, 9_000_000, 15_000, 20_000))
    'network 9.00 ms, far host 15.0 µs, own host 20.0 µs'
    >>> where(Worst(0, 9_000_000, None, None))
    'network and far host 9.00 ms'

    """
    parts = {
        "network" if one.residence_ns is not None else "network and far host": one.latency_ns,
        "far host": one.residence_ns,
        "own host": one.own_host_ns,
    }
    return ", ".join(f"{name} {units.time(ns)}" for name, ns in parts.items() if ns is not None)
