"""Words for what happened to a target in a span: bad probes, outages, the slowest, the meter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.analysis.watched import TAP, TAP_SUMS, UNANSWERED
from tailtrim.publishing.watch_report.account_wording import moment, notes, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.watched import Account

#: A late probe that was kept, in a folder named by its time (UTC).
_CATCH = "catches/*/catch.json"
SCHEMA = "tailtrim.watch-explanation/1"
#: So many outages, and so many of the slowest probes, are printed; the JSON has more.
_SHOWN = 5
#: Of probes, and of packets at a device: noun, and words for good and bad ones.
_WORDS = (
    ("probe", "that left were answered in time", "that left were not answered in time"),
    ("packet", "that entered left in time", "that entered did not leave in time"),
)
_FAULTS = {"lateness_max_ns": "departures up to {} late", "stolen_ns": "up to {} CPU time stolen"}


def lines(account: Account, now_ns: int) -> Iterator[str]:
    """Yield what happened, in lines."""
    begins_ns = sorted(account.begins_ns)
    span = f"{moment(begins_ns[0])} to {moment(begins_ns[-1] + 60 * 10**9)}"
    yield (
        f"{units.printable(account.target.name)}: {units.counted(len(begins_ns), 'minute')}, {span}"
    )
    yield f"  {_bad(account)}"
    outages = account.outages.longest()
    for outage in outages[:_SHOWN]:
        yield (
            f"  outage: {units.time(outage.length_ns)} from {moment(outage.begin_ns)}"
            f" ({units.counted(outage.probes, 'probe')})"
        )
    if account.outages.count > _SHOWN:
        yield f"  and {account.outages.count - _SHOWN:,} shorter outages"
    is_tap = account.target.kind == TAP
    came = [f"{count:,} {kind}" for kind, count in sorted(_others(account).items()) if count]
    if came:
        beside = "beside matched packets" if is_tap else "beside first replies in time"
        yield f"  {beside}: {', '.join(came)}"
    for one in account.slowest()[:_SHOWN]:
        # A device is one part.
        parts = "" if is_tap else f": {where(one)}"
        yield f"  slow: {units.time(one.latency_ns)} at {moment(one.begin_ns)}{parts}"
    health = account.health
    faults = [
        told.format(units.time(health[name])) for name, told in _FAULTS.items() if health[name]
    ]
    if faults:
        yield f"  this host in one minute: {', '.join(faults)}"
    if caught := _caught(account):
        folder = units.printable(str(account.target.folder))
        yield (
            f"  {units.counted(caught, 'late probe')} kept with what was around:"
            f" tailtrim explain {folder}"
        )
    for note in notes(account, now_ns):
        yield f"  {units.printable(note)}"


def _others(account: Account) -> dict[str, int]:
    """Return other packets that came."""
    told = account.arrivals.items()
    return {name: count for name, count in told if name not in TAP_SUMS}


def _bad(account: Account) -> str:
    counts = account.counts
    noun, good, not_good = _WORDS[account.target.kind == TAP]
    kinds = [f"{counts[name]:,} {name}" for name in UNANSWERED if counts[name]]
    bad = sum(counts[name] for name in UNANSWERED)
    known = counts["answered"] + bad
    if not known:
        return f"no {noun} counts"
    if not bad:
        return f"all of {units.counted(known, noun)} {good}"
    share = units.loss(bad, known)
    return f"{bad:,} of {units.counted(known, noun)} {not_good} ({share} %): {', '.join(kinds)}"


def _caught(account: Account) -> int:
    """Return how many late probes of the span the watch has kept with what was around them."""
    begins_ns = (_begin_of(place.parent.name) for place in account.target.folder.glob(_CATCH))
    begin_ns, end_ns = account.span
    return sum(ns is not None and begin_ns <= ns < end_ns for ns in begins_ns)


def _begin_of(name: str) -> int | None:
    try:
        time = datetime.strptime(name, "%Y-%m-%dT%H-%M-%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None
    return round(time.timestamp() * 1_000) * 1_000_000


def as_json(account: Account, now_ns: int) -> dict[str, Any]:
    """Return the same as JSON data: times in ns."""
    return {
        "host": account.target.host,
        "target": account.target.name,
        "minutes": len(account.begins_ns),
        "missing": [span._asdict() for span in account.missing(now_ns)],
        "left_out": {
            "repeated": account.repeated,
            "damaged": account.damaged,
            "wrong": account.wrong,
            "places": account.places,
        },
        "counts": dict(account.counts),
        "arrivals": _others(account),
        "health": dict(account.health),
        "outages": {
            "longest": [outage._asdict() for outage in account.outages.longest()],
            "count": account.outages.count,
        },
        "slowest": [one._asdict() for one in account.slowest()],
    }
