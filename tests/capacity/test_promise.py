"""Proof of a promise by trials, and its rate of errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tailtrim.analysis.slo import objectives
from tailtrim.laboratory.capacity import proof
from tailtrim.laboratory.capacity.bounds import Bound
from tailtrim.laboratory.capacity.promise import Condition, Promise
from tailtrim.laboratory.capacity.trial import LOST, Count, Trial, TrialResult


def promise(text: str, least_s: float = 1.0) -> Promise:
    conditions = tuple(Condition.of(one) for one in objectives(text))
    return Promise(text, conditions, 0.95, 1.0, least_s)


def seen(goal: Promise, *counts: Count, duration_s: float = 1.0) -> list[TrialResult]:
    texts = [LOST, *(one.text for one in goal.conditions)]
    return [TrialResult(Trial(1_000, duration_s), 0.0, dict.fromkeys(texts, one)) for one in counts]


def test_no_bad_packet_of_so_many_proves_a_ratio() -> None:
    # One look takes ln(20) / r packets, 299,573 for 1e-5; looks at any time ln(40) / r.
    assert math.ceil(math.log(20) / -math.log1p(-1e-5)) == 299_572
    assert math.ceil(proof.fewest(1e-5, 0.95)) == 368_887
    goal = promise("p99.999 < 1ms")
    few, enough = Count(0, 300_000), Count(0, 368_887)
    assert goal.judge(seen(goal, few), 1e5).bound is None
    assert goal.judge(seen(goal, enough), 1e5).bound is Bound.LOWER


def test_packets_that_come_in_clusters_count_less() -> None:
    goal = promise("p99.999 < 1ms")
    found = goal.judge(seen(goal, Count(0, 400_000, design_effect=1.9)), 1e5)
    assert found.bound is None
    # Of 700,893 packets that are worth 368,887 independent ones, 300,893 are missing.
    assert found.more_s == pytest.approx(3.0, abs=0.02)


def test_the_next_trial_is_as_long_as_the_decision_takes() -> None:
    goal = promise("p99.9 < 1ms")
    assert goal.judge([], 1_000).more_s == pytest.approx(3.69, abs=0.01)
    # Half of the ratio is bad: that takes longer than no bad packet at all.
    half = goal.judge(seen(goal, Count(5, 10_000)), 1_000)
    assert half.bound is None
    assert half.more_s > 3.69


def test_a_load_that_is_far_too_high_is_decided_by_a_short_trial() -> None:
    goal = promise("p99.999 < 1ms")
    assert goal.judge(seen(goal, Count(300, 1_000)), 1e3).bound is Bound.UPPER


def test_each_condition_has_to_hold() -> None:
    goal = promise("p99.9 < 200us, loss < 1e-4")
    late, lost = (one.text for one in goal.conditions)
    good, bad = Count(0, 100_000), Count(60, 100_000)
    for counts, bound in (
        ({late: good, lost: good}, Bound.LOWER),
        ({late: bad, lost: bad}, Bound.UPPER),
        ({late: bad, lost: good}, None),
    ):
        assert goal.judge([TrialResult(Trial(1, 1.0), 0.0, counts)], 1e6).bound in {
            bound,
            Bound.LOWER,
        }
    assert (
        goal.judge([TrialResult(Trial(1, 1.0), 0.0, {late: bad, lost: bad})], 1e6).bound
        is Bound.UPPER
    )


def test_trials_together_last_as_long_as_they_are_to() -> None:
    goal = promise("p99 < 1ms", least_s=3.0)
    one = Count(0, 100_000)
    found = goal.judge(seen(goal, one), 1e5)
    assert (found.bound, found.more_s) == (None, 2.0)
    assert goal.judge(seen(goal, one, one, one), 1e5).bound is Bound.LOWER


def test_a_load_at_the_limit_itself_is_given_up() -> None:
    goal = promise("p99.9 < 1ms")
    found = goal.judge(seen(goal, Count(40, 40_000)), 1e3)
    assert found.given_up


@pytest.mark.parametrize("share", [1.0, 0.9, 1.1])
def test_looks_after_each_trial_are_wrong_as_seldom_as_promised(share: float) -> None:
    rng, ratio, wrong = np.random.default_rng(20261123), 1e-2, 0
    for _ in range(1_000):
        bad = np.cumsum(rng.random(4_000) < share * ratio)[::50]
        packets = np.arange(1, 4_001)[::50]
        logs = [
            (proof.below(k, n, ratio), proof.above(k, n, ratio))
            for k, n in zip(bad.tolist(), packets.tolist(), strict=True)
        ]
        below = any(one >= math.log(20) for one, _ in logs)
        above = any(one >= math.log(20) for _, one in logs)
        wrong += (below and share >= 1) or (above and share <= 1)
    # At the ratio itself either side may be wrong, in 5 % each.
    assert wrong / 1_000 <= (0.1 if share == 1 else 0.05)


@pytest.mark.parametrize("text", ["mean < 5us", "max < 1ms", "loss < 100%"])
def test_what_packets_cannot_prove_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text.split(maxsplit=1)[0]):
        promise(text)
