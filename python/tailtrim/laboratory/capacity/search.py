"""The search: which trial is next, as a function of the trials so far.

It keeps nothing and measures nothing, so that a search can be simulated, and gone on with after an
interruption.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from tailtrim.laboratory.capacity.bounds import bounds, not_measurable, valid
from tailtrim.laboratory.capacity.trial import LOST, Purpose, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tailtrim.laboratory.capacity.bounds import Bounds, Goal
    from tailtrim.laboratory.capacity.trial import TrialResult

#: Steps of the grid of loads in a width: goals meet at the same loads, and share their trials.
_STEPS = 2
#: Shares of the highest lower bound at which the curve of latency against load has points.
_CURVE = (0.1, 0.3, 0.5, 0.7, 0.9)
#: Assumed overhead of a trial in s, added to its duration, as long as none was done.
_BESIDE_S = 5.0


@dataclass(frozen=True)
class Search:
    """Parameters of a search for bounds at most ``width`` apart (relatively) for each goal.

    ``smallest`` and ``largest`` are the lowest and highest load, ``pps`` says how many packets per
    second a load has. ``trial_s`` is the duration of the first trial at a load, and the shortest
    one; the longest has ``most_packets``: more of them disturb the measurement. ``seed`` is that of
    the order in which bounds are verified.
    """

    goals: tuple[Goal, ...]
    smallest: int
    largest: int
    pps: Callable[[int], float]
    trial_s: float
    width: float = 0.02
    budget_s: float = 600.0
    seed: int = 1
    most_packets: float = math.inf

    #: Largest distance between the bounds of a goal, in steps of the grid of loads.
    steps = _STEPS

    @cached_property
    def loads(self) -> list[int]:
        """All loads that may be tried, ascending: about the same factor apart."""
        found, load = {self.smallest, self.largest}, float(self.largest)
        while load > self.smallest:
            found.add(round(load))
            load /= (1 + self.width) ** (1 / _STEPS)
        return sorted(found)

    def next_trial(self, seen: Sequence[TrialResult]) -> Trial | None:
        """Return the trial that follows others; ``None`` at the end of the search.

        Args:
            seen: the trials so far, in order.

        """
        beside = beside_s(seen)
        left_s = self.budget_s - sum(one.took_s for one in seen) - beside
        if not seen:
            return self._in_time(Trial(self.largest, self.trial_s, Purpose.WARM_UP), left_s)
        if (again := self._repeated(seen)) is not None:
            return self._in_time(again, left_s)
        found = {goal: bounds(goal, seen, self.pps) for goal in self.goals}
        last = [*self._curve(found, seen), *self._verifications(found, seen)]
        # Time is kept for the trials that end the search, also where a goal could go on for longer.
        kept_s = sum(one.duration_s + beside for one in last)
        for one in self._wanted(found, seen):
            if one.duration_s <= left_s - kept_s:
                return one
        return next((one for one in last if one.duration_s <= left_s), None)

    @staticmethod
    def _in_time(trial: Trial, left_s: float) -> Trial | None:
        return trial if trial.duration_s <= left_s else None

    def wants(self, goal: Goal, seen: Sequence[TrialResult]) -> bool:
        """Whether a goal needs more trials."""
        return self._of(goal, bounds(goal, seen, self.pps), seen) is not None

    def _wanted(self, found: dict[Goal, Bounds], seen: Sequence[TrialResult]) -> list[Trial]:
        """Return the trials that goals need, the best first."""
        wanted = [
            (known.lower is not None, trial.duration_s, trial)
            for goal, known in found.items()
            if (trial := self._of(goal, known, seen))
        ]
        # Goals without a lower bound first, so that each has one if the budget ends. Then short
        # trials: their results may spare the long ones.
        return [trial for _, _, trial in sorted(wanted, key=lambda one: one[:2])]

    def _repeated(self, seen: Sequence[TrialResult]) -> Trial | None:
        """Return the last trial if it was invalid and may be repeated, then as long as may be."""
        last = seen[-1]
        if last.invalid is None or last.trial.purpose is Purpose.WARM_UP:
            return None
        if last.trial.load in not_measurable(seen):
            return None
        longest_s = self._longest_s(last.trial.load, seen)
        return replace(last.trial, duration_s=min(last.trial.duration_s, longest_s))

    def _longest_s(self, load: int, seen: Sequence[TrialResult]) -> float:
        """Return how long a trial may be: half of the shortest one that was invalid.

        By its packets: taps that are too slow for more spoil trials of so many at any load.
        """
        packets = self.most_packets
        for one in seen:
            if one.invalid is not None and one.trial.duration_s > self.trial_s:
                packets = min(packets, self.pps(one.trial.load) * one.trial.duration_s / 2)
        return max(packets / self.pps(load), self.trial_s)

    def _of(self, goal: Goal, known: Bounds, seen: Sequence[TrialResult]) -> Trial | None:
        """Return the trial that a goal needs next."""
        load = _doubted(goal, known, seen)
        if load is None:
            # Below a load that is hard to decide, a lower bound may be found sooner.
            at = _Place(self, known, seen, without_hard=known.lower is None).next()
            if at is None and known.hard:
                at = _Place(self, known, seen).next()
            if at is None:
                return None
            load = self.loads[at]
        begun = known.judgements.get(load)
        more_s = begun.more_s if begun is not None else self.trial_s
        return Trial(load, min(more_s, self._longest_s(load, seen)))

    def _curve(self, found: dict[Goal, Bounds], seen: Sequence[TrialResult]) -> Iterator[Trial]:
        """Yield trials at loads below the bounds: for the curve, and to find holes."""
        lowers = [known.lower for known in found.values() if known.lower is not None]
        tried = {one.trial.load for one in seen}
        for share in _CURVE if lowers else ():
            load = self.loads[max(bisect_right(self.loads, share * max(lowers)) - 1, 0)]
            if load not in tried:
                yield Trial(load, self.trial_s, Purpose.CURVE)

    def _verifications(
        self, found: dict[Goal, Bounds], seen: Sequence[TrialResult]
    ) -> Iterator[Trial]:
        """Yield trials at bounds that were not measured again, in random order."""
        verified = {s.trial.load for s in seen if s.trial.purpose is Purpose.VERIFICATION}
        ends = {at for known in found.values() for at in (known.lower, known.upper)}
        left = sorted(at for at in ends if at is not None and at not in verified)
        random.Random(self.seed + len(seen)).shuffle(left)  # noqa: S311 - an order, not a secret
        counted = valid(seen)
        for load in left:
            duration_s = median(one.trial.duration_s for one in counted[load])
            yield Trial(load, duration_s, Purpose.VERIFICATION)


def _doubted(goal: Goal, known: Bounds, seen: Sequence[TrialResult]) -> int | None:
    """Return a load below the lower bound whose trials say that it may be an upper one."""
    trials = valid(seen)
    for load, one in known.judgements.items():
        begun = one.bound is None and not one.given_up
        if begun and load < (known.lower or 0) and not all(map(goal.good, trials[load])):
            return load
    return None


def beside_s(seen: Sequence[TrialResult]) -> float:
    """Return the overhead of a trial, in addition to its duration."""
    return median(s.took_s - s.trial.duration_s for s in seen) if seen else _BESIDE_S


class _Place:
    """Where a goal's next trial is, as a place on the grid of loads."""

    def __init__(
        self,
        search: Search,
        known: Bounds,
        seen: Sequence[TrialResult],
        *,
        without_hard: bool = False,
    ) -> None:
        self._loads, self._seen = search.loads, seen
        self._counted = [one for trials in valid(seen).values() for one in trials]
        place = {load: at for at, load in enumerate(self._loads)}
        self._lower = None if known.lower is None else place[known.lower]
        self._upper = None if known.upper is None else place[known.upper]
        missing = not_measurable(seen)
        without = sorted({*known.given_up, *missing, *(known.hard if without_hard else ())})
        self._without = [place[load] for load in known.between(without)]
        self._roofs = [place[load] for load in known.between(missing)]
        self._hard = [place[load] for load in known.between(known.hard)]
        self._begun = [place[load] for load in known.between([*known.judgements])]

    def next(self) -> int | None:
        """Return the place; ``None`` where the bounds are as near as they can be."""
        if self._upper is None:
            return self._upwards()
        if self._lower is None:
            return self._downwards(self._upper)
        return self._within([self._lower, *self._without, self._upper])

    def _upwards(self) -> int | None:
        top = len(self._loads) - 1
        roof = min(self._roofs, default=None)
        hint = self._hint()
        if self._lower is None:
            # Loads that could not be measured do not say how far down the device's capacity is.
            start = hint if roof is None else min(hint, roof - _STEPS * 2 ** len(self._roofs))
            return self._downwards(max(start, 0) + 1)
        if roof is not None:
            return self._within([self._lower, *self._without])
        if self._hard and (at := self._within([self._lower, self._hard[0]])) is not None:
            return at
        at = min(top, self._lower + _stride(self._lower - hint))
        while at in self._without and at < top:
            at += 1
        return None if at <= self._lower or at in self._without else at

    def _downwards(self, below: int) -> int | None:
        """Return a place below one that is too high, farther with each."""
        hint = self._hint()
        at = min(below - 1, hint) if below > hint else below - _stride(hint - below)
        at = max(at, 0)
        while at in self._without and at > 0:
            at = max(at - _stride(hint - at), 0)
        return None if at >= below or at in self._without else at

    def _within(self, points: Sequence[int]) -> int | None:
        """Return the middle of the widest gap that is wider than the search's width."""
        low, high = max(pairwise(points), key=lambda pair: pair[1] - pair[0])
        if high - low <= _STEPS:
            return None
        # Trials of other goals near the middle are used, too.
        room = (high - low) // 4
        near = [at for at in self._begun if low + room < at < high - room]
        middle = (low + high) // 2
        return min(near, key=lambda at: abs(at - middle), default=middle)

    def _hint(self) -> int:
        """Return the place of the highest load that was forwarded so far."""
        forwarded = {
            counts: [one.trial.load * _forwarded(one) for one in seen]
            for counts, seen in ((True, self._counted), (False, self._seen))
        }
        rate = max(forwarded[True] or forwarded[False])
        return max(bisect_right(self._loads, rate) - 1, 0)


def _forwarded(one: TrialResult) -> float:
    """Return the share of a trial's load that was sent and forwarded."""
    return one.sent_share * (1 - one.counts[LOST].ratio if one.counts else 1.0)


def _stride(done: int) -> int:
    """Return how far the next step goes after so many places: twice as far as all before."""
    return max(_STEPS, 2 * done)
