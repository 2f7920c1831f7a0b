"""Estimated time of runs: boots and warm-ups count where they begin, and correct the estimate."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tailtrim.cli import progress
from tailtrim.laboratory.experiment import Estimate
from tailtrim.laboratory.experiment.steady_state import WINDOW_S
from tailtrim.laboratory.plan import load
from tailtrim.results.experiments import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.plan import Run

LOCAL = """\
name: x
dut: {preset: bridge}
traffic: {rate_pps: 1000, duration_s: 10}
repeat: 4
floor: false
"""
BOOTING = """\
name: x
dut: {preset: router, node: vm, lifetime: $lifetime}
boot: {kernel: bookworm/cloud}
boots: 2
traffic: {rate_pps: $rate, duration_s: 10}
loop: {rate: [100, 200], lifetime: [configuration]}
floor: false
"""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def runs(folder: Path, text: str) -> list[Run]:
    path = folder / "plan.yml"
    path.write_text(text, "utf-8")
    return load(path)[1]


def test_before_a_run_has_ended_it_is_the_traffic(tmp_path: Path) -> None:
    clock = Clock()
    estimate = Estimate(runs(tmp_path, LOCAL), now=clock)
    assert (estimate.known, estimate.left_s()) == (False, 40)
    clock.now_s += 4
    assert estimate.left_s() == 36


def test_what_runs_take_beside_their_traffic_is_learned(tmp_path: Path) -> None:
    clock, every = Clock(), runs(tmp_path, LOCAL)
    estimate = Estimate(every, now=clock)
    clock.now_s += 13
    estimate.ended(every[0], measured=True)
    assert (estimate.known, estimate.left_s()) == (True, 3 * 13)


def test_a_run_that_failed_says_nothing_of_the_others(tmp_path: Path) -> None:
    clock, every = Clock(), runs(tmp_path, LOCAL)
    estimate = Estimate(every, now=clock)
    clock.now_s += 1
    estimate.ended(every[0], measured=False)
    assert (estimate.known, estimate.left_s()) == (False, 30)


def test_boots_and_warm_ups_are_counted_once_for_their_runs(tmp_path: Path) -> None:
    clock, every = Clock(), runs(tmp_path, BOOTING)
    assert len(every) == 4
    estimate = Estimate(every, boot_s=15, now=clock)
    assert estimate.left_s() == 4 * 10 + 2 * 15 + 2 * WINDOW_S
    # The boot with its warm-up and the time of a run, and then such a run alone.
    clock.now_s += 60
    estimate.ended(every[0], measured=True)
    clock.now_s += 12
    estimate.ended(every[1], measured=True)
    assert estimate.left_s() == pytest.approx(60 + 12)
    clock.now_s += 60
    estimate.ended(every[2], measured=True)
    assert estimate.left_s() == pytest.approx(12)


def test_a_run_that_is_overdue_does_not_shorten_the_others(tmp_path: Path) -> None:
    clock, every = Clock(), runs(tmp_path, LOCAL)
    estimate = Estimate(every, now=clock)
    clock.now_s += 1_000
    assert estimate.left_s() == 30


def test_long_experiments_say_when_they_end(
    experiment: Callable[..., Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = "traffic: {rate_pps: 1, duration_s: 600}\n"
    made = experiment(f"dut: {{preset: bridge}}\nfloor: false\nrepeat: 3\n{traffic}")
    with progress.listener(made, quiet=True) as lines:
        for run in made.runs:
            lines.run_ended(run, Outcome(run.folder, run.label, floor=False, failed="broken"))
    told = capsys.readouterr().err.splitlines()
    assert told[::2] == [f"run-00{number}  bridge: failed: broken" for number in range(3)]
    first, second = told[1::2]
    assert re.match("1 of 3 runs, .*at least 20 min", first)
    assert re.match("2 of 3 runs, .*at least 10 min", second)
