"""Changes within a run of hours, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.analysis.change_points import SHORTEST, Drift, Step, changes, unchanged
from tailtrim.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.report.inputs.run_tables import Floats, ReportedRun
    from tailtrim.results.minutes import Counted, Minute

#: The percentiles whose changes are told: higher ones of one minute are those of a few packets.
_PERCENTILES = ("p50", "p99", "p99.9")
_MINUTE_NS = 60 * 10**9
_COUNTERS = {"smi": "SMIs", "throttled": "thermal throttling", "steal_ms": "ms of steal"}
#: Names of counters by which the agent says why it cannot read them.
_UNREAD = {"smi": "SMI", "throttled": "throttling"}


def over_time(run: ReportedRun) -> list[str]:
    """Return sentences on the minutes of a run; none where it was not kept by minute."""
    minutes = run.minutes
    if not minutes:
        return []
    first, last = minutes[0], minutes[-1]
    length = (last.begin_ns - first.begin_ns) // _MINUTE_NS + 1
    told = [f"{units.count(length)} minutes from {_clock(first.begin_ns)} on."]
    if (empty := length - sum(minute.samples > 0 for minute in minutes)) > 0:
        told.append(f"{units.count(empty)} of them have no samples.")
    told += _changes(_series(minutes), first.begin_ns)
    told += _counted(run.counted)
    return told


def _series(minutes: Sequence[Minute]) -> dict[str, Floats]:
    """Return the percentiles of each minute from the first to the last; NaN where there is none."""
    at = [(minute.begin_ns - minutes[0].begin_ns) // _MINUTE_NS for minute in minutes]
    series = {}
    for name in _PERCENTILES:
        values = series[name] = np.full(at[-1] + 1, np.nan)
        values[at] = [minute.latency_ns.get(name, np.nan) for minute in minutes]
    return series


def _changes(series: dict[str, Floats], begin_ns: int) -> Iterator[str]:
    if min(map(len, series.values())) < SHORTEST + 2:
        too_short = Verdict(needed=SHORTEST + 2)
        yield f"Step or drift: {too_short.told('minutes')}."
        return
    for name, values in series.items():
        # The first and the last one may be partial.
        values[[0, -1]] = np.nan
        found = changes(values)
        if not found:
            yield f"Step or drift of {name}: {unchanged(values).told('minutes')}."
        for one in found:
            yield _step(name, one, begin_ns) if isinstance(one, Step) else _drift(name, one)


def _step(name: str, step: Step, begin_ns: int) -> str:
    style = units.Times.of([[step.before, step.after]])
    told = (
        f"{name} changed at {_clock(begin_ns + step.at * _MINUTE_NS)} (minute"
        f" {_number(step.at)}): the median of its minutes was {style.number(step.before)} before"
        f" and {style.text(step.after)} after: {step.verdict.told()}."
    )
    if step.by == step.after - step.before:
        return told
    way = "rose" if step.by > 0 else "fell"
    return f"{told} Without its drift, it {way} by {units.time(abs(step.by))}."


def _drift(name: str, drift: Drift) -> str:
    way = "rose" if drift.slope > 0 else "fell"
    return (
        f"{name} {way} by {units.time(abs(drift.slope) * 60)} an hour from minute"
        f" {_number(drift.begin)} to minute {_number(drift.end)}: {drift.verdict.told()}."
    )


def _number(at: int) -> str:
    return units.count(at + 1)


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
