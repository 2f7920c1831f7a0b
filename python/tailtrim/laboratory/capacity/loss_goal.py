"""Throughput at a loss ratio (NDR, PDR): loads are classified as in RFC 9971."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.laboratory.capacity.bounds import Bound, Judgement
from tailtrim.laboratory.capacity.trial import ATTEMPTS, LOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.capacity.trial import TrialResult


@dataclass(frozen=True, slots=True)
class LossGoal:
    """A goal of RFC 9971, with its terms.

    A trial is good if its loss ratio is at most ``loss_ratio``. A load is a lower bound if bad
    trials have at most the share ``exceed_ratio`` of the trial time, which has to be at least
    ``duration_sum_s``. Trials shorter than ``final_trial_s`` count only where they are bad. A
    trial is not counted if its result may be caused by the generator.
    """

    name: str
    loss_ratio: float
    final_trial_s: float
    duration_sum_s: float
    exceed_ratio: float = 0.5

    def good(self, one: TrialResult) -> bool:
        """Whether the loss ratio of a trial is at most that of the goal."""
        return one.counts[LOST].most_ratio <= self.loss_ratio

    def contradicts(self, one: TrialResult, bound: Bound, pps: float) -> bool:  # noqa: ARG002 - a trial is good or bad
        """Whether a trial is bad at a lower bound, or good at an upper one."""
        return self._bad(one) if bound is Bound.LOWER else self.good(one)

    def _bad(self, one: TrialResult) -> bool:
        return one.counts[LOST].ratio > self.loss_ratio

    def judge(self, seen: Sequence[TrialResult], pps: float) -> Judgement:  # noqa: ARG002 - time counts here
        """Classify a load; the missing trials are taken for good, then for bad."""
        good_s, bad_s, short_good_s, short_bad_s = 0.0, 0.0, 0.0, 0.0
        told = [one for one in seen if self.good(one) or self._bad(one)]
        for one in told:
            duration_s = one.trial.duration_s
            long, good = duration_s >= self.final_trial_s, self.good(one)
            good_s += duration_s * (long and good)
            bad_s += duration_s * (long and not good)
            short_good_s += duration_s * (not long and good)
            short_bad_s += duration_s * (not long and not good)
        balanced_s = short_good_s * self.exceed_ratio / (1 - self.exceed_ratio)
        excess_s = bad_s + max(0.0, short_bad_s - balanced_s)
        whole_s = max(good_s + excess_s, self.duration_sum_s)
        optimistic = excess_s <= whole_s * self.exceed_ratio
        pessimistic = whole_s - good_s <= whole_s * self.exceed_ratio
        if optimistic != pessimistic:
            given_up = len(seen) - len(told) >= ATTEMPTS
            return Judgement(None, 0.0 if given_up else self.final_trial_s)
        return Judgement(Bound.LOWER if optimistic else Bound.UPPER)

    def throughput_share(self, seen: Sequence[TrialResult]) -> float:
        """Return 1 less the loss ratio at the exceed ratio of the trial time, as of the longest.

        Time that is missing counts as loss.
        """
        long = [one for one in seen if one.trial.duration_s >= self.final_trial_s]
        whole_s = max(sum(one.trial.duration_s for one in long), self.duration_sum_s)
        left_s, ratio = whole_s * (1 - self.exceed_ratio), None
        for one in sorted(long, key=lambda one: one.counts[LOST].most_ratio):
            if ratio is not None and left_s <= 0:
                return 1 - ratio
            ratio = one.counts[LOST].most_ratio
            left_s -= one.trial.duration_s
        return 1 - ratio if ratio is not None and left_s <= 0 else 0.0
