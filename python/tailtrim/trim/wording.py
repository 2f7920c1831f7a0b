"""A search in words: what it would do, how far it is, and what it found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim.report import units
from tailtrim.trim.screening import FEWEST_CANDIDATES, design, rows_allowed
from tailtrim.trim.search import CONFIRM, CONFIRM_MOST, EXPLAINED
from tailtrim.trim.spending import FEWEST
from tailtrim.trim.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.trim.trial import Candidate, Observation, Settings, Trial
    from tailtrim.trim.verdict import Found, Gain, Result

_ORDER = (
    (Verdict.KEPT, "Kept"),
    (Verdict.NOTHING, "Did nothing worth it"),
    (Verdict.WORSE, "Made it worse"),
    (Verdict.LIMIT, "Beyond a limit"),
    (Verdict.UNDECIDED, "Not proven"),
    (Verdict.UNTRIED, "Not tried"),
)
_MINUTE_S = 60


def tree(
    candidates: Sequence[Candidate],
    impossible: Sequence[Found],
    settings: Settings,
    each_s: float,
) -> Iterator[str]:
    """Yield the lines of what a search would try, with the estimated time."""
    groups: dict[str, list[str]] = {}
    for one in candidates:
        groups.setdefault(one.group, []).append(one.name)
    yield f"{len(candidates)} changes in {len(groups)} groups, in the order of expected gain"
    for group, names in groups.items():
        yield f"  {group}: {', '.join(names)}"
    for found in impossible:
        yield f"  not tried: {found.name}: {found.reason}"
    yield f"About {each_s:.0f} s a trial, at most {settings.trials} trials"
    yield "1. baseline"
    if settings.explain:
        yield f"   {EXPLAINED} trials with a trace, whose causes order the changes of the host"
    booting = [one.name for one in candidates if one.boots]
    if booting:
        yield (
            f"   a boot without changes and one with each of: {', '.join(booting)}; what does not"
            " come up is left out. Each block boots anew, once for each kernel and boot line"
        )
    if len(candidates) >= FEWEST_CANDIDATES and len(groups) > 1:
        yield from _screening(list(groups), settings.trials, each_s)
    each = len(candidates) + 2
    yield (
        f"2. one at a time out of the whole: rounds of at most {each} trials"
        f" (baseline, all changes, all but each one), {FEWEST} rounds or more:"
        f" {_time(FEWEST * each * each_s)} or more without screening"
    )
    yield (
        f"3. what is kept against the baseline: {CONFIRM} to {CONFIRM_MOST} pairs,"
        f" {_time(2 * CONFIRM * each_s)} or more"
    )
    yield f"In all at most {_time(settings.seconds or settings.trials * each_s)}"


def _screening(groups: Sequence[str], trials: int, each_s: float) -> Iterator[str]:
    matrix = design(len(groups))
    pair = 2 * (len(matrix) + 1)
    allowed = rows_allowed(trials, len(matrix))
    if allowed < pair:
        yield "   no screening: the budget is too small"
        return
    yield (
        f"   screening of the groups: {pair} to {allowed} trials,"
        f" {_time(pair * each_s)} to {_time(allowed * each_s)}; each of these, and its opposite:"
    )
    for row in matrix:
        on = [name for name, there in zip(groups, row, strict=True) if there]
        yield f"     {' + '.join(on) or 'baseline'}"


def progress(trial: Trial, seen: Observation, left: int) -> str:
    """Return a line about a trial that has ended."""
    tail = units.time(round(seen.tail_ns)) if seen.tail_ns else "no tail"
    changes = " + ".join(sorted(trial.changes)) or "baseline"
    why = "".join(f": {reason}" for reason in (seen.failed, seen.doubt) if reason)
    costs = sorted(seen.costs_ns.items(), key=lambda one: -one[1])
    causes = [f"{check} {units.time(round(cost))}" for check, cost in costs if cost > 0]
    why += f": longer by the causes of {', '.join(causes)}" if causes else ""
    told = f"run-{trial.number:03d}  {trial.phase:<9}  {tail:>9}  {changes}{why}"
    return f"{told}  (at most {left} more)"


def report(result: Result, quantile: str) -> Iterator[str]:
    """Yield the lines of what a search found."""
    took = f"{result.trials} trials in {_time(result.seconds)}"
    if result.total is None:
        yield f"Nothing is kept: no gain is proven at p{units.percent(quantile)} ({took})"
    else:
        told = _gain(result.total)
        yield f"p{units.percent(quantile)} of all packets: {told} ({took})"
    width = max((len(one.name) for one in result.found), default=0)
    for verdict, title in _ORDER:
        of_kind = [one for one in result.found if one.verdict is verdict]
        if of_kind:
            yield ""
            yield title
        for one in of_kind:
            gain = f"{_gain(one.gain)}; " if one.gain else ""
            of_group = f" (all of {one.group} together)" if one.of_group else ""
            yield f"  {one.name:<{width}}  {gain}{one.reason}{of_group}"
    if result.needed_trials is not None:
        yield ""
        yield f"To decide the rest: about {result.needed_trials:,} more trials"


def _gain(gain: Gain) -> str:
    low, high = sorted((-gain.low, -gain.high))
    return f"{-gain.share:+.1%} ({low:+.1%} to {high:+.1%}, {gain.confidence:.1%} interval)"


def _time(time_s: float) -> str:
    return f"{time_s:.0f} s" if time_s < _MINUTE_S else f"{math.ceil(time_s / _MINUTE_S)} min"
