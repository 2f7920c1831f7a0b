"""A search as an experiment: its trials are runs, and it goes on after an interruption."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from trials import Simulated

from tailtrim.errors import OutputError, RunDirectoryError, RunError
from tailtrim.laboratory.capacity import record
from tailtrim.laboratory.capacity.result import EndReason
from tailtrim.laboratory.capacity.trial import LOST
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.capacity.runner import CapacitySearch


def trials(path: Path) -> list[dict[str, Any]]:
    told = json.loads((path / "capacity.json").read_text("utf-8"))["trials"]
    return [{key: value for key, value in one.items() if key != "took_s"} for one in told]


def test_the_trials_are_runs_of_one_experiment(
    searching: Callable[..., CapacitySearch], tmp_path: Path
) -> None:
    made = searching(Simulated())
    ndr, pdr, slo = made.capacity.goals
    for one in (ndr, pdr, slo):
        assert one.lower is not None
        assert one.upper is not None
        assert one.ended in {EndReason.WIDTH, EndReason.NOT_DECIDED}
        assert one.lower.load < 1_030 < one.upper.load
    experiment = recorded(tmp_path / "out")
    assert len(experiment.complete) == len(made.trials)
    for (trial, seen), (run, directory) in zip(made.trials, experiment.complete, strict=True):
        assert run.loop == {"rate": trial.load}
        assert seen is not None
        assert seen.counts[LOST].bad == directory.summary.ingress.lost
    known = record.read(tmp_path / "out")
    assert known is not None
    assert known.goals == made.capacity.goals
    assert json.loads(json.dumps(known.as_json())) == json.loads(
        json.dumps(made.capacity.as_json())
    )


@pytest.mark.parametrize("deaf_s", [0.0, 0.08])
def test_a_bound_of_a_device_that_loses_only_at_the_start_is_told(
    searching: Callable[..., CapacitySearch], deaf_s: float
) -> None:
    ndr, _, slo = searching(Simulated(cold_pps=400, deaf_s=deaf_s), slo="p80 < 30ms").capacity.goals
    assert ndr.upper is not None
    assert slo.upper is not None
    assert ndr.upper.load < 600 < slo.upper.load
    assert (ndr.upper.cold, slo.upper.cold) == (True, False)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("breaks", [0, 5])
def test_a_search_that_was_killed_goes_on_as_if_it_had_not_been(
    searching: Callable[..., CapacitySearch], tmp_path: Path, breaks: int, *, late: bool
) -> None:
    searching(Simulated())
    expected = trials(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        searching(Simulated(breaks=breaks, late=late))
    device = Simulated()
    searching(device, resume=True)
    assert trials(tmp_path / "out") == expected
    # Complete trials are not measured again.
    assert device.ran[0] == f"run-{breaks + late:03d}"


def test_a_search_that_has_ended_has_nothing_to_go_on_with(
    searching: Callable[..., CapacitySearch],
) -> None:
    searching(Simulated())
    device = Simulated()
    searching(device, resume=True)
    assert device.ran == []


def test_other_goals_are_another_search(searching: Callable[..., CapacitySearch]) -> None:
    searching(Simulated())
    with pytest.raises(OutputError, match="different goals"):
        searching(Simulated(), resume=True, slo="p99 < 20ms")


def test_an_experiment_that_is_no_search_is_left_alone(
    searching: Callable[..., CapacitySearch], tmp_path: Path
) -> None:
    searching(Simulated())
    (tmp_path / "out" / "capacity.json").unlink()
    with pytest.raises(OutputError, match="not a search"):
        searching(Simulated(), resume=True)


def test_a_damaged_record_is_told(searching: Callable[..., CapacitySearch], tmp_path: Path) -> None:
    searching(Simulated())
    (tmp_path / "out" / "capacity.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunDirectoryError, match=r"capacity\.json: not the record"):
        searching(Simulated(), resume=True)


def test_what_the_taps_drop_is_their_limit_not_loss(
    searching: Callable[..., CapacitySearch],
) -> None:
    device = Simulated()
    device.invalid = ("tap dropped 3",)
    made = searching(device)
    for one in made.capacity.goals:
        assert (one.lower, one.upper, one.ended) == (None, None, EndReason.GENERATOR)
        assert one.limit == device.invalid[0]


def test_trials_that_all_fail_end_the_search(searching: Callable[..., CapacitySearch]) -> None:
    device = Simulated()
    device.failed = "dut: died with exit code 1"
    with pytest.raises(RunError, match=r"^3 trials .*dut: died with exit"):
        searching(device)
