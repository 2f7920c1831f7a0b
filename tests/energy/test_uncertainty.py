"""Watts and joules a packet: their uncertainty, refused results, and the blocks they would need."""

from __future__ import annotations

import json
import math
import random
from typing import TYPE_CHECKING

import pytest

from tailtrim.analysis.energy import (
    IDLE,
    LOADED,
    READY,
    Estimate,
    MeteredNode,
    RunEnergy,
    State,
    costs,
)
from tailtrim.analysis.energy.uncertainty import COVERAGE, estimate
from tailtrim.laboratory.energy.record import type_b_w
from tailtrim.laboratory.nodes.meters import Channel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.energy import Cost

OUTLET = Channel("power", counts=False, resolution=1.0)
#: Gallenmüller et al. 2020, Table III, power saving enabled.
TABLE_3 = {IDLE: 31.0, READY: 42.0, LOADED: 45.0}


def run(watts: dict[str, float], *, rate: float = 10_000, type_b: float = 0.0) -> RunEnergy:
    states = {name: State(one, type_b, 10.0) for name, one in watts.items()}
    return RunEnergy(rate, (MeteredNode("dut", "gude outlet 1", 1.0, states),))


def cost(runs: Sequence[RunEnergy]) -> Cost:
    (found,) = costs([("forward", one) for one in runs])
    return found


def test_the_factor_is_students_with_few_blocks_and_2_with_many() -> None:
    assert Estimate(1, 0.1, 0, 3).factor == pytest.approx(4.527, abs=1e-3)
    assert Estimate(1, 0.1, 0, 11).factor == pytest.approx(2.284, abs=1e-3)
    assert Estimate(1, 0.1, 0, 2_000).factor == 2.0
    assert Estimate(1, 0, 0.1, 3).factor == 2.0
    # GUM G.4: type B, which is known, makes more of few blocks.
    assert Estimate(1, 0.1, 0.2, 3).factor < 2.3
    assert pytest.approx(0.9545, abs=1e-4) == COVERAGE


def test_joules_a_packet_above_ready_and_in_all() -> None:
    drift = (-0.1, 0.0, 0.1, 0.05, -0.05)
    runs = [run({name: watts + one for name, watts in TABLE_3.items()}) for one in drift]
    found = cost(runs)
    assert found.watts == pytest.approx(TABLE_3)
    assert found.blocks == 5
    assert found.above_ready_j is not None
    assert found.above_ready_j.value == pytest.approx(3 / 10_000)
    # A drift from run to run is in both states: their difference has none.
    assert found.above_ready_j.expanded == pytest.approx(0, abs=1e-12)
    assert found.whole_j is not None
    assert found.whole_j.value == pytest.approx(45 / 10_000)
    assert found.whole_j.expanded > 0
    json.dumps(found.as_json())


def test_a_step_of_1_w_is_29_uj_of_each_packet_at_10_kpkt_s() -> None:
    shared_w = type_b_w([OUTLET], 45.0, 10.0, None)
    assert shared_w == pytest.approx(1 / math.sqrt(12))
    runs = [run(TABLE_3, type_b=shared_w) for _ in range(3)]
    found = cost(runs)
    assert found.whole_j is not None
    assert found.whole_j.type_b == pytest.approx(28.9e-6, abs=1e-7)


def test_accuracy_is_rectangular_and_of_what_is_told() -> None:
    assert type_b_w([OUTLET], 45.0, 10.0, 1.0) == pytest.approx(
        math.hypot(1 / math.sqrt(12), 0.45 / math.sqrt(3))
    )


def test_a_counter_is_sure_to_a_step_and_an_update_at_each_end() -> None:
    package = Channel("package-0", counts=True, resolution=61e-6, update_s=1e-3)
    part = Channel("core", counts=True, resolution=1e9, whole=False)
    found = type_b_w([package, part], 100.0, 10.0, None)
    assert found == pytest.approx(math.sqrt(2 / 12) * (61e-6 + 0.1) / 10)


def test_what_is_not_resolved_is_refused_with_the_rate_that_would_be_needed() -> None:
    found = cost([run({READY: 47.0, LOADED: 47.2}, type_b=1 / math.sqrt(12)) for _ in range(5)])
    assert found.above_ready_j is None
    told = found.refused["above_ready_j_per_packet"]
    assert told.startswith("0.2 W ± 0.82 W above ready: ")
    # 2 · sqrt(2/12) W is 0.816 W: 4.08 times as much as 10,000 packets/s make.
    for fact in ("at most 0.0001 J ", "no number of blocks", " 40,825 packets/s"):
        assert fact in told


def test_what_is_not_resolved_is_refused_with_the_blocks_that_would_be_needed() -> None:
    noise = (-1.0, 1.0, -1.0, 1.0)
    found = cost([run({READY: 42.0, LOADED: 42.5 + one}) for one in noise])
    assert found.above_ready_j is None
    told = found.refused["above_ready_j_per_packet"]
    needed = estimate([0.5 + one for one in noise], 0).blocks_for(0.5)
    for fact in (f" {needed} blocks ", f"repeat: {needed})"):
        assert fact in told
    assert needed is not None
    deviation = math.sqrt(4 / 3)
    assert Estimate(0.5, deviation / math.sqrt(needed), 0, needed).expanded <= 0.5
    assert Estimate(0.5, deviation / math.sqrt(needed - 1), 0, needed - 1).expanded > 0.5


def test_less_power_with_packets_than_without_is_refused() -> None:
    found = cost([run({READY: 47.0, LOADED: 45.0}, type_b=0.3) for _ in range(3)])
    assert found.above_ready_j is None
    assert "at most" not in found.refused["above_ready_j_per_packet"]


def test_one_block_says_nothing_of_how_blocks_differ() -> None:
    found = cost([run(TABLE_3)])
    assert found.watts == TABLE_3
    assert not found.uncertain
    assert found.above_ready_j is found.whole_j is None
    for fact in ("1 block", "expected 2 or more", "repeat"):
        assert fact in found.refused["whole_j_per_packet"]


def test_without_the_state_ready_only_the_whole_is_known() -> None:
    found = cost([run({LOADED: 45.0 + one}) for one in (0.0, 0.1)])
    assert found.whole_j is not None
    for fact in ("no block", "state ready"):
        assert fact in found.refused["above_ready_j_per_packet"]


def test_a_state_that_was_not_measured_is_told_and_left_out() -> None:
    broken = State(None, 0.0, 10.0, "not read for 9.0 s")
    measured = MeteredNode("dut", "gude outlet 1", None, {LOADED: broken})
    found = cost([run(TABLE_3), run(TABLE_3), RunEnergy(10_000, (measured,))])
    assert found.blocks == 3
    assert found.uncertain[LOADED].blocks == 2
    assert f"loaded: {broken.problem}" in found.remarks
    assert any("no accuracy_percent" in one for one in found.remarks)


def test_the_interval_contains_the_truth_in_95_of_100_experiments() -> None:
    # benchmarks/energy.py has more of it, and docs/energy.md its table.
    source = random.Random(1)  # noqa: S311 - a simulation
    held, experiments, truth = 0, 2_000, 3.0
    for _ in range(experiments):
        values = [truth + source.gauss(0, 0.5) for _ in range(4)]
        found = estimate(values, 0.0)
        held += abs(found.value - truth) <= found.expanded
    # 95.45 %, and four standard deviations of 2,000 draws below and above.
    assert 0.935 <= held / experiments <= 0.974
