"""Devices that are later with less load are told; others are not, as often as docs say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from trials import Simulated

from tailtrim.laboratory.capacity.asleep import asleep
from tailtrim.laboratory.capacity.result import EndReason, GoalBound, GoalResult
from tailtrim.laboratory.capacity.trial import Purpose, Trial, TrialResult
from tailtrim.publishing.report import capacity_wording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.capacity.runner import CapacitySearch

CURVE = (100, 300, 500, 700, 900)
BOUND = GoalBound(1_000, 3, 3, 3.0, verified=True)
GOALS = [GoalResult("NDR", BOUND, None, 1_000.0, EndReason.HIGHEST)]


def trials(medians_ns: list[float]) -> list[TrialResult]:
    return [
        TrialResult(Trial(load, 1.0, Purpose.CURVE), 1.0, median_ns=round(ns))
        for load, ns in zip(CURVE, medians_ns, strict=True)
    ]


def test_a_device_that_wakes_up_for_each_packet_is_told(
    searching: Callable[..., CapacitySearch], tmp_path: Path
) -> None:
    slept = searching(Simulated(wakes_ns=2_000_000)).capacity
    assert slept.asleep is not None
    assert 1_800_000 < slept.asleep.low_ns - slept.asleep.high_ns < 2_200_000
    told = " ".join(capacity_wording.notes(slept))
    assert "The slower, the later" in told
    assert "PWR-003" in told
    written = json.loads((tmp_path / "out" / "capacity.json").read_text("utf-8"))
    assert written["asleep"]["low_to"] < 334 < written["asleep"]["high_from"]


def test_a_device_that_does_not_sleep_is_not_told(
    searching: Callable[..., CapacitySearch],
) -> None:
    assert searching(Simulated()).capacity.asleep is None


def test_medians_that_differ_from_trial_to_trial_seldom_look_like_sleep() -> None:
    rng = np.random.default_rng(45)
    medians_ns = 20_000 * np.exp(rng.normal(0.0, 0.1, (20_000, len(CURVE))))
    found = sum(asleep(trials(list(of)), GOALS) is not None for of in medians_ns)
    assert 1 / 100 < found / len(medians_ns) < 1 / 70


def test_without_a_lower_bound_nothing_is_told() -> None:
    assert asleep(trials([9e4, 8e4, 2e4, 2e4, 2e4]), GOALS) is not None
    assert asleep(trials([9e4, 8e4, 2e4, 2e4, 2e4]), []) is None
