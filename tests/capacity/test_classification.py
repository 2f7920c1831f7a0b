"""Loads are classified as the reference implementation of RFC 9971 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailtrim.laboratory.capacity.bounds import Bound, bounds
from tailtrim.laboratory.capacity.loss_goal import LossGoal
from tailtrim.laboratory.capacity.trial import LOST, Count, Trial, TrialResult

if TYPE_CHECKING:
    from collections.abc import Sequence

reference = pytest.importorskip(
    "MLRsearch", reason="the reference implementation (MLRsearch 1.2.1) is not installed"
)

#: Load, trial duration and lost packets of 1,000.
TRIALS = st.lists(
    st.tuples(
        st.sampled_from([1_000, 2_000, 3_000]),
        st.sampled_from([0.5, 1.0, 2.0]),
        st.sampled_from([0, 0, 1, 5, 6, 500]),
    ),
    max_size=24,
)
GOALS = st.builds(
    LossGoal,
    name=st.just("goal"),
    loss_ratio=st.sampled_from([0.0, 0.005]),
    final_trial_s=st.sampled_from([1.0, 2.0]),
    duration_sum_s=st.sampled_from([2.0, 3.0, 7.0]),
    exceed_ratio=st.sampled_from([0.0, 0.25, 0.5, 0.75]),
)


def seen(trials: Sequence[tuple[int, float, int]]) -> list[TrialResult]:
    return [
        TrialResult(Trial(load, duration_s), duration_s, {LOST: Count(lost, 1_000)})
        for load, duration_s, lost in trials
    ]


def database(goal: LossGoal, trials: Sequence[tuple[int, float, int]]) -> tuple[object, object]:
    """Return what the reference keeps of trials, and its target."""
    from MLRsearch.discrete_load import DiscreteLoad  # noqa: PLC0415 - may be missing
    from MLRsearch.discrete_result import DiscreteResult  # noqa: PLC0415
    from MLRsearch.discrete_width import DiscreteWidth  # noqa: PLC0415
    from MLRsearch.load_rounding import LoadRounding  # noqa: PLC0415
    from MLRsearch.measurement_database import MeasurementDatabase  # noqa: PLC0415
    from MLRsearch.target_spec import TargetSpec  # noqa: PLC0415
    from MLRsearch.trial_measurement.measurement_result import MeasurementResult  # noqa: PLC0415

    rounding = LoadRounding(min_load=500.0, max_load=5_000.0, float_goals=[0.01])
    target = TargetSpec(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        discrete_width=DiscreteWidth(rounding=rounding, float_width=0.01),
        trial_duration=goal.final_trial_s,
        duration_sum=goal.duration_sum_s,
        expansion_coefficient=2,
        fail_fast=False,
        preceding=None,
    )
    known = MeasurementDatabase((target,))
    for load, duration_s, lost in trials:
        at = DiscreteLoad.float_conver(rounding)(float(load)).rounded_down()
        result = MeasurementResult(duration_s, float(at), offered_count=1_000, loss_count=lost)
        known.add(DiscreteResult.with_load(result=result, load=at))
    return known, target


@given(goal=GOALS, trials=TRIALS)
def test_bounds_and_throughput_are_those_of_the_reference(
    goal: LossGoal, trials: list[tuple[int, float, int]]
) -> None:
    mine = bounds(goal, seen(trials), float)
    known, target = database(goal, trials)
    its = known.get_relevant_bounds(target)  # type: ignore[attr-defined]
    loads = sorted({load for load, _, _ in trials})
    by_place = dict(zip(known.load_to_stats, loads, strict=True))  # type: ignore[attr-defined]
    for bound, stat in ((mine.lower, its.clo), (mine.upper, its.chi)):
        assert bound == (None if stat is None else by_place[stat.hashable()])
    if mine.lower is not None:
        share = goal.throughput_share(seen([one for one in trials if one[0] == mine.lower]))
        (stat,) = its.clo.target_to_stat.values()
        assert share == pytest.approx(1 - stat.pessimistic_loss_ratio)


def test_of_a_device_that_loses_less_at_a_higher_load_the_lower_bound_counts() -> None:
    goal = LossGoal("NDR", 0.0, 1.0, 1.0)
    inverted = [(1_000, 1.0, 0), (2_000, 1.0, 9), (3_000, 1.0, 0)]
    found = bounds(goal, seen(inverted), float)
    assert (found.lower, found.upper) == (1_000, 2_000)


def test_two_of_three_trials_decide_a_load() -> None:
    goal = LossGoal("NDR", 0.0, 1.0, 3.0)
    for lost, bound in (
        ([0], None),
        ([0, 0], Bound.LOWER),
        ([7, 7], Bound.UPPER),
        ([0, 7], None),
        ([0, 7, 0], Bound.LOWER),
    ):
        assert goal.judge(seen([(1_000, 1.0, one) for one in lost]), 1e3).bound is bound
