"""Goals of a search, and the bounds of a goal from the trials at all loads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from tailtrim.laboratory.capacity.trial import ATTEMPTS, Purpose

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tailtrim.laboratory.capacity.trial import TrialResult


class Bound(StrEnum):
    """Kind of bound that a load is for a goal, once that is decided (RFC 9971)."""

    #: The device meets the goal at this load.
    LOWER = "lower"
    #: It does not.
    UPPER = "upper"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result of the trials at a load: a bound, or the duration that the next trial needs.

    With neither, as many trials as the goal allows have decided nothing. A load is ``hard`` if its
    trials were twice as long as the clearest decision takes, and would have to be as long again.
    """

    bound: Bound | None
    more_s: float = 0.0
    hard: bool = False

    @property
    def given_up(self) -> bool:
        """Whether the load is not decided and will not be."""
        return self.bound is None and not self.more_s


class Goal(Protocol):
    """A condition that a load has to meet."""

    @property
    def name(self) -> str:
        """Name in tables and results."""

    def judge(self, seen: Sequence[TrialResult], pps: float) -> Judgement:
        """Judge a load.

        Args:
            seen: all valid trials at this load.
            pps: packets per second at this load.

        """

    def good(self, one: TrialResult) -> bool:
        """Whether the ratios of a trial meet the goal."""

    def contradicts(self, one: TrialResult, bound: Bound, pps: float) -> bool:
        """Whether a trial alone says that a load is not this bound.

        Args:
            one: a valid trial at the load.
            bound: what the load was found to be.
            pps: packets per second at the load.

        """

    def throughput_share(self, seen: Sequence[TrialResult]) -> float:
        """Return the share of the load that counts as conditional throughput."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a goal and the judgements of the loads that were tried.

    The relevant upper bound is the lowest upper bound, the relevant lower bound the highest lower
    bound below it (RFC 9971): of a device that loses less at a higher load, the lower one counts.
    """

    lower: int | None
    upper: int | None
    judgements: Mapping[int, Judgement]

    @property
    def given_up(self) -> list[int]:
        """Loads between the bounds that trials have not decided, in order."""
        return [load for load, one in sorted(self.judgements.items()) if one.given_up]

    @property
    def hard(self) -> list[int]:
        """Return the loads that are hard to decide, in order."""
        return [load for load, one in sorted(self.judgements.items()) if one.hard]

    def between(self, loads: Sequence[int]) -> list[int]:
        """Return those of some loads that lie between the bounds."""
        low = self.lower if self.lower is not None else -1
        return [at for at in loads if low < at and (self.upper is None or at < self.upper)]


def valid(seen: Sequence[TrialResult]) -> dict[int, list[TrialResult]]:
    """Return the trials that count, by their load, in order."""
    found: dict[int, list[TrialResult]] = {}
    for one in seen:
        if one.invalid is None and one.trial.purpose is not Purpose.WARM_UP:
            found.setdefault(one.trial.load, []).append(one)
    return dict(sorted(found.items()))


def not_measurable(seen: Sequence[TrialResult]) -> list[int]:
    """Return the loads at which the last attempts were all invalid, in order.

    Longer trials than the last one do not count: it may be as short as the search has them.
    """
    tried: dict[int, list[TrialResult]] = {}
    for one in seen:
        if one.trial.purpose is not Purpose.WARM_UP:
            tried.setdefault(one.trial.load, []).append(one)
    return sorted(load for load, trials in tried.items() if _failed(trials) >= ATTEMPTS)


def _failed(trials: Sequence[TrialResult]) -> int:
    """Return how many of the last trials at a load, as short as the very last, were invalid."""
    last = trials[-1].trial
    row = takewhile(lambda one: one.invalid is not None, reversed(trials))
    return sum(one.trial.duration_s <= last.duration_s for one in row)


def bounds(goal: Goal, seen: Sequence[TrialResult], pps: Callable[[int], float]) -> Bounds:
    """Return what trials say of a goal.

    A load that was measured again at the end is no bound if that trial contradicts it: it is given
    up, and the search goes on beside it.

    Args:
        goal: which one.
        seen: all trials.
        pps: packets per second at a load.

    """
    judged = {load: _judged(goal, trials, pps(load)) for load, trials in valid(seen).items()}
    lower, upper = None, None
    for load, one in judged.items():
        if one.bound is Bound.UPPER:
            upper = load
            break
        if one.bound is Bound.LOWER:
            lower = load
    return Bounds(lower, upper, judged)


def _judged(goal: Goal, trials: Sequence[TrialResult], pps: float) -> Judgement:
    judgement = goal.judge(trials, pps)
    bound = judgement.bound
    again = [one for one in trials if one.trial.purpose is Purpose.VERIFICATION]
    if bound is not None and any(goal.contradicts(one, bound, pps) for one in again):
        return Judgement(None)
    return judgement
