"""How a run of hours changed, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tailtrim.analysis.change_points import SHORTEST, Drift, Step, changes
from tailtrim.report import units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.report.inputs.run_tables import ReportedRun
    from tailtrim.rundir.minutes import Counted, Minute

#: The percentiles whose changes are told: higher ones of one minute are those of a few packets.
_PERCENTILES = ("p50", "p99", "p99.9")
_MINUTE_NS = 60 * 10**9
_COUNTERS = {"smi": "SMIs", "throttled": "thermal throttling", "steal_ms": "ms of steal"}
#: What the agent calls them where it cannot read them.
_UNREAD = {"smi": "SMI", "throttled": "throttling"}


def over_time(run: ReportedRun) -> list[str]:
    """Return sentences on the minutes of a run; none where it was not kept by minute."""
    minutes = run.minutes
    if not minutes:
        return []
    first, last = minutes[0], minutes[-1]
    length = (last.begin_ns - first.begin_ns) // _MINUTE_NS + 1
    told = [f"{units.count(length)} minutes from {_clock(first.begin_ns)} on."]
    if (empty := length - len(minutes)) > 0:
        told.append(f"{units.count(empty)} of them have no samples.")
    told += _changes(minutes)
    told += _counted(run.counted)
    return told


def _changes(minutes: Sequence[Minute]) -> Iterator[str]:
    if len(minutes) < SHORTEST + 2:
        yield f"Changes are looked for in runs of {SHORTEST + 2} minutes and more."
        return
    # The first and the last one may be partial.
    whole = minutes[1:-1]
    steady = []
    for name in _PERCENTILES:
        values = [minute.latency_ns.get(name, float("nan")) for minute in whole]
        found = changes(values)
        if not found:
            steady.append(name)
        for one in found:
            if isinstance(one, Step):
                yield _step(name, one, whole)
            else:
                yield _drift(name, one, whole)
    if steady:
        yield f"No step or drift of {', '.join(steady)} is significant."


def _step(name: str, step: Step, minutes: Sequence[Minute]) -> str:
    return (
        f"{name} changed at {_clock(minutes[step.at].begin_ns)} (minute"
        f" {_number(minutes, step.at)}): the median of its minutes was {_us(step.before)} before"
        f" and {_us(step.after)} after."
    )


def _drift(name: str, drift: Drift, minutes: Sequence[Minute]) -> str:
    way = "rose" if drift.slope > 0 else "fell"
    return (
        f"{name} {way} by {_us(abs(drift.slope) * 60)} an hour from minute"
        f" {_number(minutes, drift.begin)} to minute {_number(minutes, drift.end)}."
    )


def _number(minutes: Sequence[Minute], at: int) -> str:
    # From 1; the first one of the run is not among these.
    return units.count((minutes[at].begin_ns - minutes[0].begin_ns) // _MINUTE_NS + 2)


def _counted(counted: Sequence[Counted]) -> Iterator[str]:
    for field, name in _COUNTERS.items():
        known = [value for one in counted if (value := getattr(one, field)) is not None]
        if known and any(known):
            minutes = sum(value > 0 for value in known)
            yield (
                f"The device's CPUs counted {units.count(sum(known))} {name}, in"
                f" {units.count(minutes)} of {units.count(len(known))} minutes."
            )
        elif known:
            yield f"The device's CPUs counted no {name}."
        elif counted:
            why = counted[0].unread.get(_UNREAD.get(field, field), "this host does not tell")
            yield f"Not counted: {name} ({why})."


def _clock(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _us(ns: float) -> str:
    return f"{ns / 1e3:,.2f} µs"
