"""Estimated trials and time of a search.

The search is done with a model of a device that loses exactly the packets beyond its capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError, Remedy
from tailtrim.laboratory.capacity import proof
from tailtrim.laboratory.capacity.promise import Promise
from tailtrim.laboratory.capacity.search import beside_s
from tailtrim.laboratory.capacity.trial import LOST, Count, TrialResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.capacity.request import SearchRequest
    from tailtrim.laboratory.capacity.search import Search
    from tailtrim.laboratory.capacity.trial import Trial

#: More trials than any search of a sensible width has.
_MOST_TRIALS = 10_000
#: Where the capacity of the device may lie, as shares of the highest load.
_FAST, _SLOW = 0.5, 0.05
#: Widths of 0.5 and more are refused.
_WIDEST = 0.49


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """Number of trials of a search and the time that they take without interruptions."""

    trials: int
    time_s: float


def effort(search: Search, capacity: float) -> SearchEffort:
    """Return the trials and time of a search for a device of this capacity, without a budget."""
    free, seen = replace(search, budget_s=math.inf), list[TrialResult]()
    while len(seen) < _MOST_TRIALS and (trial := free.next_trial(seen)) is not None:
        seen.append(_ideal(free, trial, capacity))
    return SearchEffort(len(seen), sum(one.took_s for one in seen))


def needs(request: SearchRequest) -> Iterator[str]:
    """Yield what a search needs, in lines."""
    search = request.search
    for goal in search.goals:
        if not isinstance(goal, Promise):
            continue
        for one in goal.conditions:
            packets = math.ceil(proof.fewest(one.ratio, goal.confidence))
            slow = search.largest * _SLOW
            yield (
                f"{one.text}: takes {packets:,} independent packets a load or more,"
                f" {packets / search.pps(search.largest):,.1f} s at the highest load,"
                f" {packets / search.pps(round(slow)):,.1f} s at a twentieth of it"
            )
    fast, slow_one = (effort(search, share * search.largest) for share in (_FAST, _SLOW))
    yield (
        f"about {fast.trials} trials, {_minutes(fast.time_s)}, if the capacity is half of the"
        f" highest load; {_minutes(slow_one.time_s)} if it is a twentieth"
    )


def refuse_undecidable(search: Search) -> None:
    """Refuse a search with a goal that its budget cannot decide, even of a fast device.

    Raises:
        PlanError: says what the goal needs.

    """
    for goal in search.goals:
        needed = effort(replace(search, goals=(goal,)), _FAST * search.largest)
        if needed.time_s > search.budget_s:
            error = PlanError(
                f"{goal.name}: cannot be decided within {search.budget_s:g} s, it takes"
                f" {needed.trials} trials and {needed.time_s:,.0f} s or more"
            )
            wider = effort(replace(search, goals=(goal,), width=_WIDEST), _FAST * search.largest)
            helps = ", or allow a larger {width}" if wider.time_s <= search.budget_s else ""
            error.add_note(Remedy("give it more time with {budget}" + helps))
            raise error


def _ideal(search: Search, trial: Trial, capacity: float) -> TrialResult:
    packets = max(round(search.pps(trial.load) * trial.duration_s), 1)
    count = Count(round(packets * max(1 - capacity / trial.load, 0.0)), packets)
    texts = [one.text for g in search.goals if isinstance(g, Promise) for one in g.conditions]
    return TrialResult(trial, trial.duration_s + beside_s(()), dict.fromkeys([LOST, *texts], count))


def _minutes(time_s: float) -> str:
    return f"{time_s / 60:,.0f} min" if time_s >= 90 else f"{time_s:,.0f} s"  # noqa: PLR2004
