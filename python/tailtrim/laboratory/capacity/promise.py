"""A promise such as ``p99.9 < 200us, loss < 1e-4``: loads are decided by proof."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from tailtrim.laboratory.capacity import proof
from tailtrim.laboratory.capacity.bounds import Bound, Judgement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.slo import Objective
    from tailtrim.laboratory.capacity.trial import Count, TrialResult

#: So many times the fewest independent packets, or the least time, are measured at a load before
#: it is given up. With independent packets that separates half the ratio, or 1.7 times it, from
#: the ratio itself (docs/capacity.md).
_MOST = 10
#: A load waits until a lower bound is known if it has had so many times that, and would take as
#: long again.
_HARD = 2
#: The longest trial, in s: of a longer one too much is lost if it is invalid. RFC 2544 has it, too.
_LONGEST_S = 60.0
#: Where bad packets cluster, so many clusters must have been possible at the ratio: fewer tell too
#: little of how large they are (docs/intervals.md). Of independent packets, one run in 50 has a
#: design effect above 2.
_CLUSTERS, _CLUSTERED = 10, 2.0


@dataclass(frozen=True, slots=True)
class Condition:
    """A share of packets that may be bad: lost, unsent or not within the deadline.

    Without a deadline only lost and unsent packets are bad. ``p`` is the quantile beyond which the
    share lies, as summaries write it.
    """

    text: str
    ratio: float
    p: str
    deadline_ns: int | None = None

    @classmethod
    def of(cls, objective: Objective) -> Condition:
        """Return what an objective asks for.

        Raises:
            ValueError: no number of packets proves it.

        """
        if objective.what == "quantile" and objective.p is not None:
            ratio = float(1 - Decimal(objective.p))
            return cls(objective.text, ratio, objective.p, math.ceil(objective.limit))
        if objective.what == "loss":
            share = Decimal(objective.limit.numerator) / objective.limit.denominator
            if share == 1:
                raise ValueError(f"{objective.text!r}: the limit must be below 1")
            return cls(objective.text, float(share), f"{1 - share:f}")
        raise ValueError(
            f"{objective.text!r} is not a share of packets, expected a quantile such as"
            " 'p99.9 < 200us' or 'loss < 1e-4'"
        )


@dataclass(frozen=True, slots=True)
class Promise:
    """Conditions that all have to hold, each with this confidence.

    A load is an upper bound as soon as one condition is disproved, and a lower bound when all are
    proved and trials have lasted ``least_s`` together, the shortest ``trial_s`` each.
    """

    name: str
    conditions: tuple[Condition, ...]
    confidence: float
    trial_s: float
    least_s: float

    def good(self, one: TrialResult) -> bool:
        """Whether the ratios of a trial are below those of all conditions."""
        return all(_share(one.counts[each.text]) < each.ratio for each in self.conditions)

    def contradicts(self, one: TrialResult, bound: Bound, pps: float) -> bool:
        """Whether a trial alone proves the contrary."""
        return self.judge([one], pps).bound not in {None, bound}

    def judge(self, seen: Sequence[TrialResult], pps: float) -> Judgement:
        """Decide a load, or say how long the next trial has to be."""
        enough, missing_s = -math.log(1 - self.confidence), 0.0
        done_s, clear_s = sum(one.trial.duration_s for one in seen), self.least_s
        for condition in self.conditions:
            effect = _design_effect(seen, condition)
            bad, packets = _effective(seen, condition, effect)
            if proof.above(bad, packets, condition.ratio) >= enough:
                return Judgement(Bound.UPPER)
            if proof.below(bad, packets, condition.ratio) < enough:
                missing = _missing(bad, packets, condition.ratio, self.confidence)
                if missing <= 0:
                    return Judgement(None)
            else:
                clusters = _CLUSTERS if effect > _CLUSTERED else 0
                missing = clusters / condition.ratio - packets
            missing_s = max(missing_s, missing * effect / pps)
            clear_s = max(clear_s, proof.fewest(condition.ratio, self.confidence) / pps)
        missing_s = max(missing_s, self.least_s - done_s)
        if missing_s <= 0:
            return Judgement(Bound.LOWER)
        if done_s >= _MOST * clear_s:
            return Judgement(None)
        hard = done_s >= _HARD * clear_s and missing_s > done_s
        missing_s = min(missing_s, _MOST * clear_s - done_s)
        more_s = min(max(missing_s, self.trial_s), max(_LONGEST_S, self.trial_s))
        return Judgement(None, more_s, hard)

    def throughput_share(self, seen: Sequence[TrialResult]) -> float:
        """Return the share of packets that were not bad by any condition."""
        ratios = []
        for condition in self.conditions:
            counts = [one.counts[condition.text] for one in seen]
            ratios.append(sum(one.bad for one in counts) / max(sum(c.known for c in counts), 1))
        return 1 - max(ratios)


def _share(count: Count) -> float:
    """Return the share of bad packets among those that are known to be good or bad."""
    return count.bad / max(count.known, 1)


def _design_effect(seen: Sequence[TrialResult], condition: Condition) -> float:
    """Return that of the packets of all trials together.

    Variances of independent trials add up: so effects are weighted by packets, and by bad packets,
    since trials without any say little of how large their clusters are. The larger one counts.
    """
    counts = [one.counts[condition.text] for one in seen]
    weights = [one.known for one in counts], [one.bad for one in counts]
    return max(_mean([one.design_effect for one in counts], each) for each in weights)


def _mean(effects: Sequence[float], weights: Sequence[int]) -> float:
    """Return the weighted mean; 1 where all weights are 0."""
    weight = sum(weights)
    return sum(map(operator.mul, effects, weights)) / weight if weight else 1.0


def _effective(
    seen: Sequence[TrialResult], condition: Condition, design_effect: float
) -> tuple[float, float]:
    """Return how many independent packets those of all trials are worth: the bad ones, and all."""
    counts = [one.counts[condition.text] for one in seen]
    bad, packets = sum(one.bad for one in counts), sum(one.known for one in counts)
    return bad / design_effect, packets / design_effect


def _missing(bad: float, packets: float, ratio: float, confidence: float) -> float:
    """Return how many more packets decide a condition, if bad ones go on coming as they did.

    0 or less where as many as are allowed have not decided it.
    """
    enough, fewest = -math.log(1 - confidence), proof.fewest(ratio, confidence)
    if not bad:
        return fewest - packets
    wanted, most = packets, _MOST * fewest
    while wanted < most:
        wanted = min(wanted * 1.2, most)
        told = bad / packets * wanted, wanted, ratio
        if max(proof.below(*told), proof.above(*told)) >= enough:
            break
    # The share is known better after twice as many packets than now.
    return min(wanted - packets, max(packets, fewest))
