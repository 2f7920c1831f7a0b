"""A search in words: how far it is, and what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.report import units
from tailtrim.trim.tree import duration
from tailtrim.trim.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.trim.trial import Observation, Trial
    from tailtrim.trim.verdict import Gain, Result

#: In which order verdicts are told, and by which title.
ORDER = (
    (Verdict.KEPT, "Kept"),
    (Verdict.NOTHING, "Did nothing worth it"),
    (Verdict.WORSE, "Made it worse"),
    (Verdict.LIMIT, "Beyond a limit"),
    (Verdict.UNDECIDED, "Not proven"),
    (Verdict.UNTRIED, "Not tried"),
)


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


def headline(result: Result, quantile: str) -> str:
    """Return what a search found in a line."""
    took = f"{result.trials} trials in {duration(result.seconds)}"
    if result.total is None:
        return f"Nothing is kept: no gain is proven at p{units.percent(quantile)} ({took})"
    return f"p{units.percent(quantile)} of all packets: {_gain(result.total)} ({took})"


def report(result: Result, quantile: str) -> Iterator[str]:
    """Yield the lines of what a search found."""
    yield headline(result, quantile)
    width = max((len(one.name) for one in result.found), default=0)
    for verdict, title in ORDER:
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
    confidence = f"{100 * gain.confidence:.4g} %"
    return f"{-gain.share:+.1%} ({low:+.1%} to {high:+.1%}, {confidence} interval)"
