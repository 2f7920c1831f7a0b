"""Result of a search, goal by goal."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tailtrim.laboratory.capacity.bounds import bounds, not_measurable, valid
from tailtrim.laboratory.capacity.trial import Purpose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.capacity.bounds import Bounds, Goal
    from tailtrim.laboratory.capacity.search import Search
    from tailtrim.laboratory.capacity.trial import TrialResult


class EndReason(StrEnum):
    """Why the bounds of a goal are not nearer."""

    WIDTH = "width"
    #: Loads between them were measured as long as a goal allows, and are not decided.
    NOT_DECIDED = "not decided"
    #: The generator or the taps were not up to more.
    GENERATOR = "generator"
    #: The highest load of the plan meets the goal; its lowest does not.
    HIGHEST = "highest load"
    LOWEST = "lowest load"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class GoalBound:
    """A bound of a goal: its load, and the result of its trials.

    ``verified`` is whether it was measured again at the end of the search, which did not contradict
    it; ``None`` if the budget had no time for that. ``cold`` is whether its bad trials, two at
    least, lost packets at their start only.
    """

    load: int
    trials: int
    good_trials: int
    duration_s: float
    verified: bool | None
    cold: bool = False


@dataclass(frozen=True, slots=True)
class GoalResult:
    """Result for a goal; loads are in the unit of the search.

    ``throughput`` is the conditional throughput (RFC 9971): the rate forwarded at the lower bound.
    ``limit`` names the limit of the generator or the taps that was reached.
    """

    goal: str
    lower: GoalBound | None
    upper: GoalBound | None
    throughput: float | None
    ended: EndReason
    not_decided: tuple[int, ...] = ()
    limit: str | None = None

    @property
    def width(self) -> float | None:
        """Distance between the bounds as a share of the upper one."""
        if self.lower is None or self.upper is None:
            return None
        return 1 - self.lower.load / self.upper.load

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self) | {"width": self.width}


def goal_results(search: Search, seen: Sequence[TrialResult]) -> list[GoalResult]:
    """Return what trials say of each goal of a search."""
    return [_goal_result(search, goal, seen) for goal in search.goals]


def _goal_result(search: Search, goal: Goal, seen: Sequence[TrialResult]) -> GoalResult:
    known, trials = bounds(goal, seen, search.pps), valid(seen)
    lower, upper = (
        None if load is None else _bound(goal, load, trials[load])
        for load in (known.lower, known.upper)
    )
    throughput = None
    if lower is not None:
        throughput = lower.load * goal.throughput_share(trials[lower.load])
    ended = _end_reason(search, goal, known, seen)
    limit = None
    if ended is EndReason.GENERATOR:
        lowest = min(known.between(not_measurable(seen)))
        limit = next(one.invalid for one in reversed(seen) if one.trial.load == lowest)
    undecided = tuple(known.between(known.given_up))
    return GoalResult(goal.name, lower, upper, throughput, ended, undecided, limit)


def _bound(goal: Goal, load: int, seen: Sequence[TrialResult]) -> GoalBound:
    good = [goal.good(one) for one in seen]
    again = any(one.trial.purpose is Purpose.VERIFICATION for one in seen)
    duration_s = math.fsum(one.trial.duration_s for one in seen)
    bad = [one for one, is_good in zip(seen, good, strict=True) if not is_good]
    cold = len(bad) > 1 and all(one.cold for one in bad)
    return GoalBound(load, len(seen), sum(good), duration_s, again or None, cold)


def _end_reason(
    search: Search, goal: Goal, known: Bounds, seen: Sequence[TrialResult]
) -> EndReason:
    lower, upper = known.lower, known.upper
    if lower is not None and upper is not None:
        at = search.loads.index
        if at(upper) - at(lower) <= search.steps:
            return EndReason.WIDTH
    if search.wants(goal, seen):
        return EndReason.BUDGET
    if known.between(known.given_up):
        return EndReason.NOT_DECIDED
    if upper is None and known.between(not_measurable(seen)):
        return EndReason.GENERATOR
    if upper is None:
        return EndReason.HIGHEST
    return EndReason.LOWEST if lower is None else EndReason.NOT_DECIDED
