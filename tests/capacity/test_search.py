"""Searches on devices whose capacity is known."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from simulated_devices import Device, Queue, Server

from tailtrim.analysis.slo import objectives
from tailtrim.laboratory.capacity.estimate import effort
from tailtrim.laboratory.capacity.loss_goal import LossGoal
from tailtrim.laboratory.capacity.promise import Condition, Promise
from tailtrim.laboratory.capacity.result import EndReason, GoalResult, goal_results
from tailtrim.laboratory.capacity.search import Search
from tailtrim.laboratory.capacity.trial import Purpose, Trial, TrialResult

if TYPE_CHECKING:
    from collections.abc import Callable

#: Chosen when the search was done; others were used before.
SEEDS = range(20_261_123, 20_261_143)
LATE = "p99 < 5ms"

NDR = LossGoal("NDR", 0.0, 1.0, 3.0)
PDR = LossGoal("PDR", 0.005, 1.0, 3.0)
SLO = Promise(LATE, (Condition.of(objectives(LATE)[0]),), 0.95, 1.0, 3.0)


def search(*goals: LossGoal | Promise, **more: float) -> Search:
    return Search(goals, 20, 20_000, float, trial_s=1.0, **{"budget_s": 3_600.0, **more})  # type: ignore[arg-type]


def contained(make: Callable[[int], Device], asked: Search, *capacities: float) -> int:
    """Return in how many searches each goal has bounds with its capacity between them."""
    right = 0
    for seed in SEEDS:
        goals = goal_results(asked, make(seed).searched(asked))
        right += all(
            one.lower and one.upper and one.lower.load <= capacity <= one.upper.load
            for one, capacity in zip(goals, capacities, strict=True)
        )
    return right


def a_server(seed: int, **more: Any) -> Server:
    return Server(np.random.default_rng(seed), buffer=20, noise=0.02, **more)


#: It serves 10,000 packets/s, and its buffer takes 20 more within a trial of 1 s.
NDR_PPS = 10_020
PDR_PPS = NDR_PPS / (1 - 0.005)


def test_the_capacity_of_a_noisy_server_lies_between_the_bounds() -> None:
    assert contained(a_server, search(NDR, PDR), NDR_PPS, PDR_PPS) >= 19


def test_of_a_queue_whose_latency_is_known_the_promise_is_found() -> None:
    capacity = Queue(np.random.default_rng(), ()).capacity(0.01, 0.005)
    make = lambda seed: Queue(np.random.default_rng(seed), SLO.conditions)  # noqa: E731
    assert contained(make, search(SLO, budget_s=1_200.0), capacity) >= 19


def test_stalls_of_single_trials_do_not_move_ndr() -> None:
    stalling = partial(a_server, stalls=0.05, stall_s=0.02)
    assert contained(stalling, search(NDR, PDR), NDR_PPS, PDR_PPS) >= 19


def test_beyond_the_generator_nothing_is_said_of_the_device() -> None:
    for seed in SEEDS:
        device = a_server(seed)
        device.generator_pps = 7_000
        for one in goal_results(search(NDR, PDR), device.searched(search(NDR, PDR))):
            assert one.upper is None
            assert one.ended is EndReason.GENERATOR
            assert one.limit == "the generator was late"
            assert one.lower is not None
            assert 0.98 * 7_000 <= one.lower.load <= 7_000


def test_a_generator_that_is_slower_than_the_device_at_all_loads_ends_the_search() -> None:
    device = a_server(1)
    device.generator_pps = 10
    seen = device.searched(search(NDR, PDR))
    assert len(seen) < 60
    (ndr, _) = goal_results(search(NDR, PDR), seen)
    assert (ndr.lower, ndr.upper, ndr.ended) == (None, None, EndReason.GENERATOR)


def test_of_a_hole_the_lower_end_counts() -> None:
    device = a_server(1, hole=(6_000, 7_200))
    asked = replace(search(NDR), largest=7_000)
    (ndr,) = goal_results(asked, device.searched(asked))
    assert ndr.lower is not None
    assert ndr.upper is not None
    assert ndr.lower.load <= 6_000 <= ndr.upper.load


def test_a_hole_far_below_the_throughput_is_found_by_the_curve() -> None:
    holed = partial(a_server, hole=(6_000, 8_000))
    assert contained(holed, search(NDR, PDR), 6_000, 6_000) >= 19


def test_the_curve_has_points_below_the_bounds() -> None:
    seen = a_server(1).searched(search(NDR))
    loads = [one.trial.load for one in seen if one.trial.purpose is Purpose.CURVE]
    assert loads == pytest.approx([1_000, 3_000, 5_000, 7_000, 9_000], rel=0.03)


def test_a_device_that_takes_all_has_no_upper_bound() -> None:
    (ndr,) = goal_results(asked := replace(search(NDR), largest=9_000), a_server(1).searched(asked))
    assert (ndr.lower and ndr.lower.load, ndr.upper, ndr.ended) == (9_000, None, EndReason.HIGHEST)


def test_a_device_that_loses_at_any_load_has_no_lower_bound() -> None:
    device = a_server(1, hole=(0, 30_000))
    (ndr,) = goal_results(search(NDR), device.searched(search(NDR)))
    assert (ndr.lower, ndr.upper and ndr.upper.load, ndr.ended) == (None, 20, EndReason.LOWEST)


def test_the_same_trials_are_followed_by_the_same_one() -> None:
    asked = search(NDR, PDR)
    seen = a_server(3).searched(asked)
    for place, one in enumerate(seen):
        assert asked.next_trial(seen[:place]) == one.trial
    assert asked.next_trial(seen) is None


def test_goals_share_trials() -> None:
    alone = [len(a_server(5).searched(search(one))) for one in (NDR, PDR)]
    assert len(a_server(5).searched(search(NDR, PDR))) < sum(alone)


def test_the_first_trial_warms_up_and_does_not_count() -> None:
    asked = search(NDR)
    first = asked.next_trial([])
    assert first == Trial(20_000, 1.0, Purpose.WARM_UP)
    assert goal_results(asked, [a_server(1).measure(first)])[0].upper is None


def test_bounds_are_measured_again_at_the_end_in_random_order() -> None:
    asked = search(NDR, PDR)
    orders = set()
    for seed in range(8):
        seen = a_server(2).searched(replace(asked, seed=seed))
        again = [one.trial.load for one in seen if one.trial.purpose is Purpose.VERIFICATION]
        assert [one.trial.load for one in seen[-len(again) :]] == again
        ends = {
            bound.load
            for one in goal_results(asked, seen)
            for bound in (one.lower, one.upper)
            if bound
        }
        assert ends == set(again)
        orders.add(tuple(again))
    assert len(orders) > 1


def test_bounds_of_a_device_that_has_changed_when_they_are_measured_again_are_found_anew() -> None:
    """A bound of which two trials of six were good was reported."""
    asked, device = search(NDR), a_server(4)
    while (trial := asked.next_trial(device.done)) is not None:
        # From then on it is a tenth slower.
        if trial.purpose is Purpose.VERIFICATION:
            device.served_pps = 9_000
        device.done.append(device.measure(trial))
    (ndr,) = goal_results(asked, device.done)
    assert ndr.lower is not None
    assert ndr.upper is not None
    assert ndr.lower.verified
    assert ndr.lower.good_trials == ndr.lower.trials
    # The buffer of the device takes 20 packets more within a trial.
    assert ndr.lower.load <= 9_020 <= ndr.upper.load
    assert (ndr.upper.good_trials, ndr.upper.verified) == (0, True)


#: Loads at which half of 101 trials of the noisier server meet a goal.
NOISY_PPS = {"NDR": 9_993.5, "PDR": 10_068.5}


def contradicted(seed: int) -> tuple[int, int]:
    """Search on a noisier server.

    Returns:
        how many bounds their verifications contradict, and how many goals have their capacity
        between their bounds.

    """
    asked = search(NDR, PDR)
    device = Server(np.random.default_rng(seed), buffer=20, noise=0.2)
    wrong, right = 0, 0
    for goal, one in zip((NDR, PDR), goal_results(asked, device.searched(asked)), strict=True):
        assert one.lower is not None
        assert one.upper is not None
        right += one.lower.load <= NOISY_PPS[goal.name] <= one.upper.load
        for bound, good in ((one.lower, True), (one.upper, False)):
            again = [
                goal.good(done)
                for done in device.done
                if (done.trial.load, done.trial.purpose) == (bound.load, Purpose.VERIFICATION)
            ]
            assert again
            wrong += any(one is not good for one in again)
    return wrong, right


@pytest.mark.parametrize("seed", range(8))
def test_no_bound_is_reported_that_its_own_verification_contradicts(seed: int) -> None:
    assert contradicted(seed)[0] == 0


@pytest.mark.simulations
def test_bounds_that_were_measured_again_hold_the_capacity_of_a_noisier_server() -> None:
    """Without a second look at contradictions, 107 of 120 did, and 7 of 240 were contradicted."""
    found = [contradicted(seed) for seed in range(20_261_200, 20_261_260)]
    assert sum(wrong for wrong, _ in found) == 0
    assert sum(right for _, right in found) >= 108


def test_an_invalid_trial_is_repeated_and_never_counted_as_loss() -> None:
    asked, device = search(NDR), a_server(6)
    invalid = 0
    while (trial := asked.next_trial(device.done)) is not None:
        one = device.measure(trial)
        if len(device.done) % 3 == 2:
            invalid += 1
            one = replace(one, invalid="the ingress tap dropped 7 frames")
        device.done.append(one)
    (ndr,) = goal_results(asked, device.done)
    assert invalid > 2
    assert ndr.lower is not None
    assert ndr.upper is not None
    assert ndr.lower.load <= NDR_PPS <= ndr.upper.load


def test_a_load_whose_trials_are_all_invalid_is_left_after_three() -> None:
    asked, done = search(NDR), list[TrialResult]()
    while (trial := asked.next_trial(done)) is not None:
        done.append(TrialResult(trial, 1.0, {}, "the egress tap dropped 1 frames"))
    tried = [one.trial.load for one in done if one.trial.purpose is not Purpose.WARM_UP]
    assert {tried.count(load) for load in tried} == {3}


def test_no_trial_begins_that_the_budget_has_no_time_for() -> None:
    asked = search(SLO, budget_s=40.0)
    device = Queue(np.random.default_rng(1), SLO.conditions)
    seen = device.searched(asked)
    assert sum(one.took_s for one in seen) <= 40
    assert {one.ended for one in goal_results(asked, seen)} == {EndReason.BUDGET}


def test_what_a_search_takes_is_known_beforehand() -> None:
    asked = search(NDR, PDR)
    told = effort(asked, 10_000)
    seen = a_server(7).searched(asked)
    assert told.trials == pytest.approx(len(seen), abs=8)
    assert told.time_s == pytest.approx(6.0 * told.trials)


def test_width_and_throughput_are_those_of_the_lower_bound() -> None:
    (ndr,) = goal_results(search(NDR), a_server(8).searched(search(NDR)))
    assert isinstance(ndr, GoalResult)
    assert ndr.lower is not None
    assert ndr.throughput == ndr.lower.load
    assert ndr.width is not None
    assert 0 < ndr.width <= 0.02 + 1e-3
    assert math.isclose(ndr.as_json()["width"], ndr.width)


def test_trials_are_as_short_as_the_taps_hold() -> None:
    asked = search(SLO, budget_s=1_200.0)
    device = Queue(np.random.default_rng(4), SLO.conditions, taps_hold=60_000)
    (one,) = goal_results(asked, device.searched(asked))
    assert one.lower is not None
    assert one.upper is not None
    invalid = [seen.trial.load * seen.trial.duration_s for seen in device.done if seen.invalid]
    # Each invalid one makes all that follow shorter by half: longer trials soon end.
    assert 1 <= len(invalid) <= 6
    capacity = device.capacity(0.01, 0.005)
    assert one.lower.load <= capacity <= one.upper.load


def test_where_it_is_known_what_the_taps_hold_no_trial_is_longer() -> None:
    asked = replace(search(SLO, budget_s=1_200.0), most_packets=60_000)
    device = Queue(np.random.default_rng(4), SLO.conditions, taps_hold=60_000)
    assert not [seen for seen in device.searched(asked) if seen.invalid]
    assert max(seen.trial.duration_s for seen in device.done) > 4


class Undecided(Device):
    """A device with two thirds of the late packets that are allowed, in one stretch of a trial.

    Below 2,000 packets/s none is late, from 9,000 packets/s on every second one.
    """

    def latency(self, load: int, packets: int) -> Any:
        latency_s = np.full(packets, 0.001)
        if load >= 9_000:
            latency_s[::2] = 0.010
        elif load >= 2_000:
            latency_s[: round(0.0067 * packets)] = 0.010
        return latency_s


def test_a_budget_that_ends_at_loads_hard_to_decide_leaves_a_lower_bound() -> None:
    asked = search(SLO, budget_s=80.0)
    seen = Undecided(np.random.default_rng(1), SLO.conditions).searched(asked)
    (promise,) = goal_results(asked, seen)
    assert promise.lower
    assert promise.upper
    assert 1_000 < promise.lower.load < 2_000 < promise.upper.load


def test_the_end_of_the_budget_is_kept_for_the_curve_and_for_measuring_bounds_again() -> None:
    asked = search(NDR, SLO, budget_s=150.0)
    seen = Queue(np.random.default_rng(2), SLO.conditions).searched(asked)
    (_, promise) = goal_results(asked, seen)
    assert promise.ended is EndReason.BUDGET
    purposes = [one.trial.purpose for one in seen]
    assert purposes.count(Purpose.CURVE) >= 5
    assert Purpose.VERIFICATION in purposes
    assert sum(one.took_s for one in seen) <= 150
