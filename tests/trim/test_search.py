"""Searches in worlds whose truth is known."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from simulated_worlds import Noise, World, simulate

from tailtrim.laboratory.trim.alpha_spending import Looks
from tailtrim.laboratory.trim.search import Search
from tailtrim.laboratory.trim.trial import Candidate, Limits, Observation, Settings
from tailtrim.verdict import BETTER, NOT_DECIDED, WORSE

pytest.importorskip("pydoe", reason="needs tailtrim[trim]")

PLANTED = World(
    groups={
        "interrupts": ("irq_affinity", "isolation"),
        "scheduler": ("rt_priority",),
        "power": ("idle_states",),
        "memory": ("decoy_1", "decoy_2"),
        "clocks": ("decoy_3",),
        "network": ("harmful",),
    },
    alone={"rt_priority": -0.25, "idle_states": -0.35, "harmful": 0.2},
    together={frozenset(("irq_affinity", "isolation")): -0.3},
)
SETTINGS = Settings(trials=300)
CHECKS = {"swap": "MEM-007", "tick": "ISO-003", "irq": "IRQ-002"}


def test_keeps_exactly_what_helps_in_19_of_20() -> None:
    kept = [set(simulate(PLANTED, replace(SETTINGS, seed=n), n).kept) for n in range(20)]

    assert sum(one == PLANTED.helpful for one in kept) >= 19


@pytest.mark.simulations
@pytest.mark.parametrize("noise", ["normal", "heavy", "disturbed"])
def test_false_keeps_stay_below_the_asked_rate_in_200_searches(noise: Noise) -> None:
    world = replace(PLANTED, noise=noise)
    kept = [set(simulate(world, replace(SETTINGS, seed=n), 5_000 + n).kept) for n in range(200)]

    assert sum(not one <= world.helpful for one in kept) <= SETTINGS.error * 200


def test_a_harmful_change_within_a_helpful_group_is_told_to_be_worse() -> None:
    groups = {"power": ("idle_states", "harmful"), "rest": ("decoy_1", "decoy_2", "decoy_3")}
    result = simulate(replace(PLANTED, groups=groups, together={}), SETTINGS, 1)

    verdicts = {one.name: one.verdict for one in result.found}
    assert verdicts["idle_states"] == BETTER
    assert verdicts["harmful"] == WORSE


def test_of_two_changes_that_replace_each_other_one_is_kept() -> None:
    world = World(
        groups={"power": ("governor", "pm_qos")},
        alone={"governor": -0.4, "pm_qos": -0.4},
        together={frozenset(("governor", "pm_qos")): 0.4},
    )
    kept = [len(simulate(world, replace(SETTINGS, seed=n), n).kept) for n in range(20)]

    assert kept.count(1) >= 19


def test_an_interrupted_search_goes_on_with_the_same_trial() -> None:
    first, again = (Search(PLANTED.candidates, SETTINGS) for _ in range(2))
    rng = random.Random(1)  # noqa: S311 - noise, not a secret
    for _ in range(50):
        assert first.trial is not None
        first.tell(PLANTED.run(first.trial, rng))
    for _, observation in list(first.seen):
        again.tell(observation)

    assert again.trial == first.trial


@pytest.mark.parametrize("trials", [20, 40, 60, 100])
def test_a_budget_of_trials_is_kept_and_what_is_missing_is_told(trials: int) -> None:
    world = replace(PLANTED, sigma=0.5)
    result = simulate(world, replace(SETTINGS, trials=trials), 1)

    assert result.trials <= trials
    needed = [one.needed for one in result.found if one.needed is not None]
    assert max(needed, default=None) == result.needed_trials
    assert all(one.verdict == NOT_DECIDED for one in result.found if one.needed is not None)
    assert len(result.found) == len(world.candidates)


def test_a_budget_of_time_is_kept() -> None:
    # A simulated trial takes 8 s.
    result = simulate(PLANTED, replace(SETTINGS, seconds=600.0), 1)

    assert result.seconds <= 600


def test_with_too_small_a_budget_the_first_candidates_are_tried() -> None:
    result = simulate(PLANTED, replace(SETTINGS, trials=36), 1)

    untried = [one.name for one in result.found if not one.tried]
    names = [one.name for one in PLANTED.candidates]
    assert untried == names[-len(untried) :]
    assert 0 < len(untried) < len(names)


def test_a_clear_case_ends_early() -> None:
    world = World({"power": ("idle_states",)}, {"idle_states": -1.5}, {}, sigma=0.05)
    result = simulate(world, SETTINGS, 1)

    assert result.kept == ("idle_states",)
    assert result.trials < 40


def test_a_drifting_host_is_told_and_a_steady_one_is_not() -> None:
    drifting = simulate(replace(PLANTED, drift=0.3), SETTINGS, 1)
    steady = simulate(PLANTED, SETTINGS, 1)

    assert any("the host drifts" in one for one in drifting.notices)
    assert not steady.notices


def _with_cost(
    limits: Limits, cost: Observation, *, candidates: int = 2
) -> dict[str, tuple[str, str]]:
    """Search where ``fast`` cuts the tail to a half, and has a cost."""
    names = ["fast", *(f"decoy_{n}" for n in range(candidates - 1))]
    search = Search([Candidate(one, one) for one in names], replace(SETTINGS, limits=limits))
    number = 0
    while search.trial is not None:
        # Small and not regular, so that differences have a spread.
        tail_ns = 100_000 * (1 + 0.02 * (number * 7 % 11) / 11)
        seen = Observation(tail_ns, rate_pps=10_000.0, watts=100.0)
        if "fast" in search.trial.changes:
            seen = replace(cost, tail_ns=tail_ns / 2 if cost.tail_ns else None)
        search.tell(seen)
        number += 1
    assert search.result is not None
    assert not search.result.kept
    return {one.name: (one.verdict, one.reason) for one in search.result.found}


@pytest.mark.parametrize("candidates", [2, 6])
@pytest.mark.parametrize(
    ("limits", "cost", "told"),
    [
        (Limits(loss=0.001), Observation(1.0, loss=0.01), "loss 1.000%"),
        (Limits(rate_loss=0.02), Observation(1.0, rate_pps=9_000.0), "throughput -10.0%"),
        (Limits(watts=120.0), Observation(1.0, watts=150.0), "150 W"),
        (Limits(), Observation(None, failed="the device ended"), "the device ended"),
    ],
)
def test_a_change_beyond_a_limit_is_rejected_though_it_cuts_the_tail(
    limits: Limits, cost: Observation, told: str, candidates: int
) -> None:
    verdict, reason = _with_cost(limits, cost, candidates=candidates)["fast"]

    assert verdict == WORSE
    assert told in reason


@pytest.mark.parametrize("rounds", [1, 4, 5, 9, 30, 60, 500])
def test_the_looks_spend_all_of_the_error_and_no_more(rounds: int) -> None:
    looks = Looks(rounds)
    shares = [looks.share(done) or 0.0 for done in range(looks.longest + 1)]

    assert sum(shares) == pytest.approx(1)


BOOTING = World(
    groups={"line": ("isolated", "panics"), "device": ("batch",), "rest": ("decoy",)},
    alone={"isolated": -0.4, "batch": -0.3},
    together={},
    booting=frozenset({"isolated", "panics"}),
    unbootable=frozenset({"panics"}),
)


def test_trials_of_one_boot_are_together_and_each_block_boots_anew() -> None:
    search = Search(BOOTING.candidates, SETTINGS)
    rng = random.Random(1)  # noqa: S311 - noise, not a secret
    while search.trial is not None:
        search.tell(BOOTING.run(search.trial, rng))

    blocks: dict[int, list[frozenset[str]]] = {}
    for trial, _ in search.seen:
        blocks.setdefault(trial.block, []).append(trial.changes & BOOTING.booting)
    for boots in blocks.values():
        changed = sum(one != before for one, before in pairwise(boots))
        assert changed == len(set(boots)) - 1
    orders = {tuple(boots) for boots in blocks.values() if len(set(boots)) > 1}
    assert len(orders) > 1


def test_a_change_that_does_not_boot_is_left_out_and_the_search_goes_on() -> None:
    result = simulate(BOOTING, SETTINGS, 1)

    assert set(result.kept) == {"isolated", "batch"}
    panics = next(one for one in result.found if one.name == "panics")
    assert (panics.verdict, panics.tried) == (NOT_DECIDED, False)
    assert "did not boot" in panics.reason


def test_changes_that_do_not_boot_together_only_are_beyond_a_limit() -> None:
    groups = {"line": ("isolated", "other"), "rest": ("decoy",)}
    both = frozenset({"isolated", "other"})
    world = replace(BOOTING, groups=groups, booting=both, unbootable=frozenset(), clash=both)
    result = simulate(world, SETTINGS, 1)

    found = {one.name: one for one in result.found}
    assert len(both & set(result.kept)) < 2
    assert any("did not boot" in found[name].reason for name in both)


def test_the_causes_of_the_baseline_order_the_changes_of_the_host() -> None:
    planned = Candidate("batch", "batch")
    host = [Candidate(name, name, checks=(check,)) for name, check in CHECKS.items()]
    # So few trials that one of them is tried, and the plan's own.
    search = Search([planned, *host], replace(SETTINGS, trials=35, explain=True))
    rng = random.Random(1)  # noqa: S311 - noise, not a secret
    phases: list[str] = []
    while search.trial is not None:
        seen, phase = PLANTED.run(search.trial, rng), search.trial.phase
        # One run of three says something else.
        costs = {"MEM-007": 9e9, "ISO-003": 0.0} if not phases else {"ISO-003": 2e6, "IRQ-002": 1e6}
        search.tell(replace(seen, costs_ns=costs) if phase == "explain" else seen)
        phases.append(phase)

    assert phases[:4] == ["explain"] * 3 + ["eliminate"]
    assert search.result is not None
    untried = [one.name for one in search.result.found if not one.tried]
    assert untried == ["irq", "swap"]
