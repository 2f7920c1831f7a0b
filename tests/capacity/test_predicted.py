"""Prediction by the model of one trial, shown next to the result of the search."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from simulated_queues import World, left_run

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.capacity import record
from tailtrim.laboratory.capacity.record import Capacity
from tailtrim.laboratory.capacity.result import EndReason, GoalBound, GoalResult
from tailtrim.laboratory.capacity.trial import LOST, Count, Purpose, Trial, TrialResult
from tailtrim.publishing.report import capacity_wording
from tailtrim.publishing.report.capacity_wording import warm_ups
from tailtrim.publishing.report.figures.figure import Axis, Figure, Line, Panel
from tailtrim.publishing.report.figures.limit_lines import with_bounds
from tailtrim.publishing.report.figures.looks import distinct
from tailtrim.publishing.report.inputs.predicted_capacity import prediction_of
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.results.experiments import RecordedExperiment

#: It serves 20,000 packets a second, less what is stolen.
WORLD = World("exponential", mean_ns=50_000.0, seconds=2.0)
CONDITION = {"text": "p99 < 2ms", "ratio": 0.01, "deadline_ns": 2_000_000}


@dataclass
class Outcome:
    """Of a run: where it is."""

    run: str


@dataclass
class Run:
    """Of an experiment."""

    outcome: Outcome


@dataclass
class Experiment:
    """The part of an experiment that :func:`prediction_of` uses."""

    complete: list[tuple[Run, RunDirectory]]


@pytest.fixture
def experiment(tmp_path: Path) -> RecordedExperiment:
    """Return one with a trial at half of the highest rate."""
    left_run(tmp_path / "run-001", WORLD.at(0.5), np.random.default_rng(1), traced=False)
    runs = [(Run(Outcome("run-001")), RunDirectory(tmp_path / "run-001"))]
    return cast("RecordedExperiment", Experiment(runs))


def capacity(*conditions: dict[str, Any], own_pps: float | None = None) -> Capacity:
    """Return a search that has found 19.0 to 19.5 kpkt/s."""
    lower = GoalBound(19_000, 3, 3, 6.0, verified=True)
    found = GoalResult(
        "PDR", lower, replace(lower, load=19_500, good_trials=0), 19_000.0, EndReason.WIDTH
    )
    goals: list[dict[str, Any]] = [{"name": "PDR", "decided_by": "trials", "loss_ratio": 0.005}]
    every = [found]
    if conditions:
        told = {"name": "promise", "decided_by": "proof", "confidence": 0.95}
        goals.append(told | {"conditions": list(conditions)})
        every.append(replace(found, goal="promise", lower=replace(lower, load=17_000), upper=None))
    trials = tuple(
        (
            trial,
            TrialResult(trial, 3.0, {LOST: Count(0, 10)}, own_pps=own_pps and own_pps + more_pps),
        )
        for trial, more_pps in (
            (Trial(30_000, 2.0, Purpose.WARM_UP), -9_000.0),
            (Trial(10_000, 2.0), -8_000.0),
            (Trial(19_500, 2.0), 0.0),
            (Trial(19_000, 2.0), 200.0),
        )
    )
    search = {
        "unit": "packets/s",
        "smallest": 30,
        "largest": 30_000,
        "largest_pps": 30_000.0,
        "goals": goals,
    }
    return Capacity(search, trials, tuple(every))


def test_the_prediction_stands_beside_what_was_found(
    experiment: RecordedExperiment, tmp_path: Path
) -> None:
    asked = capacity(CONDITION, own_pps=19_400.0)
    told = replace(asked, prediction=prediction_of(experiment, asked))
    assert told.prediction is not None
    r_max = told.prediction["r_max_pps"]
    # Without a trace the thefts of busy time alone are seen.
    assert r_max["value"] == pytest.approx(WORLD.r_max_pps, rel=0.05)
    notes = " ".join(capacity_wording.notes(told))
    assert f"R_max: predicted {r_max['value'] / 1e3:.1f} from run-001" in notes
    for fact in (
        "from run-001",
        "at 10.0 kpkt/s",
        "19.0 to 19.5 kpkt/s (PDR)",
        "at least 17.0 kpkt/s",
        "51.0 to 51.5 µs",
        "trials there (2)",
        "19.4 to 19.6 kpkt/s",
    ):
        assert fact in notes
    assert re.search("p99 < 2ms: predicted .* 1", notes)
    record.write(tmp_path, told)
    known = record.read(tmp_path)
    assert known is not None
    assert known.prediction == json.loads(json.dumps(told.prediction))
    figure = with_bounds(measured(), known)
    assert figure.names == ("p50", "p99", "p50 predicted", "p99 predicted")
    assert [band.run for band in figure.panels[0].bands] == [2, 3]
    labels = " ".join(rule.label for rule in figure.panels[0].uprights)
    assert all(name in labels for name in ("PDR", "promise", "R_max", "knee"))
    assert figure.panels[0].y.low <= min(line.y.min() for line in figure.panels[0].lines)


def measured() -> Figure:
    """Return latency against load with a knee at 15 kpkt/s."""
    at = np.array([5.0, 10.0, 15.0, 18.0])
    lines = (
        Line(0, at, np.array([0.1, 0.11, 0.12, 1.5]), draw="line"),
        Line(1, at, np.array([0.2, 0.3, 0.6, 4.0]), draw="line"),
    )
    x = Axis("Offered load (kpkt/s)", "linear", 0.0, 20.0, unit="kpkt/s")
    panel = Panel(x, Axis("Latency (ms)", "log", 0.1, 5.0, unit_ns=1_000_000, unit="ms"), lines)
    return Figure("sweep-rate", "", "", (panel,), ("p50", "p99"), tuple(distinct(2)))


def test_the_knee_is_where_a_load_has_the_most_throughput_for_its_latency() -> None:
    uprights = with_bounds(measured(), capacity()).panels[0].uprights
    assert [rule.at for rule in uprights if "knee" in rule.label] == [15.0]


def test_the_trial_that_warms_up_has_no_place_on_the_curve() -> None:
    assert warm_ups(capacity()) == ["run-000"]
    assert warm_ups(None) == []


def test_what_cannot_be_predicted_is_told(experiment: RecordedExperiment) -> None:
    rare = CONDITION | {"text": "p99.999 < 2ms"}
    told = prediction_of(experiment, capacity(rare))
    assert "needs 1,000,000 packets" in told["promise_problem"]
    assert told["promise"] is None
    none = replace(capacity(), goals=())
    told = prediction_of(experiment, none)
    assert list(told) == ["problem"]
    assert "no load below" in told["problem"]
    notes = capacity_wording.notes(replace(none, prediction=told))
    assert notes[0].startswith("Not predicted: ")
    assert told["problem"] in notes[0]


def test_of_bursts_the_largest_one_is_predicted(experiment: RecordedExperiment) -> None:
    asked = capacity(CONDITION)
    burst = {**asked.search, "unit": "packets in a burst", "largest": 64}
    (_, promise) = asked.goals
    bounds = replace(promise, lower=GoalBound(20, 1, 1, 2.0, verified=None))
    asked = replace(asked, search=burst, goals=(replace(asked.goals[0], lower=None), bounds))
    asked = replace(asked, trials=((Trial(1, 2.0), None), (Trial(10, 2.0), asked.trials[1][1])))
    told = replace(asked, prediction=prediction_of(experiment, asked))
    assert told.prediction is not None
    most = round(told.prediction["promise"]["burst"]["value"])
    notes = capacity_wording.notes(told)
    (said,) = (note for note in notes if note.startswith("p99 < 2ms: predicted"))
    for fact in (f" {most} (", "at least 20 packets", "burst"):
        assert fact in said
    figure = with_bounds(replace(measured(), key="sweep-burst"), told)
    assert "predicted" in " ".join(rule.label for rule in figure.panels[0].uprights)


def test_a_damaged_prediction_is_told() -> None:
    with pytest.raises(RunDirectoryError, match=r"capacity\.json: not a prediction"):
        capacity_wording.notes(replace(capacity(), prediction={"points": 3}))
