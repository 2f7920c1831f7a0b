"""Prediction of a search by the model of one trial: :func:`prediction_of`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.analysis.queueing import predicted
from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.capacity.trial import Purpose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.capacity.record import Capacity
    from tailtrim.results import RunDirectory
    from tailtrim.results.experiments import RecordedExperiment

#: Predictions are best from half of the highest rate (docs/predict.md): there packets wait, and
#: others find the device idle.
_BEST = 0.5
#: Keys of a prediction that the record of a search keeps.
_KEPT = (
    "run",
    "basis",
    "rate_pps",
    "t_cpu_ns",
    "stolen_us_per_s",
    "r_max_pps",
    "points",
    "promise",
    "warnings",
)


def prediction_of(experiment: RecordedExperiment, capacity: Capacity) -> dict[str, Any]:
    """Return the prediction of a trial below the bounds, as JSON data.

    The trial is the one nearest to half of the highest lower bound that says what a packet takes;
    ``problem`` tells why none does. ``promise_problem`` tells why a promise is not predicted.
    """
    promise = ", ".join(
        condition["text"]
        for goal in capacity.search["goals"]
        for condition in goal.get("conditions", ())
        if condition["deadline_ns"] is not None
    )
    problem = "no load below the bounds was measured"
    for run in _runs(experiment, capacity):
        try:
            found = predicted(run)
        except (RunDirectoryError, ValueError) as error:
            problem = str(error)
            continue
        told = {key: value for key, value in found.as_json().items() if key in _KEPT}
        if promise:
            try:
                more = predicted(run, rates_pps=[found.rate_pps], promise=promise).as_json()
                told["promise"] = more["promise"]
            except ValueError as error:
                told["promise_problem"] = str(error)
        return told
    return {"problem": problem}


def _runs(experiment: RecordedExperiment, capacity: Capacity) -> Iterator[RunDirectory]:
    """Yield the trials below the bounds, the best first."""
    lowers = [one.lower.load for one in capacity.goals if one.lower is not None]
    places = {run.outcome.run: directory for run, directory in experiment.complete}
    known = [
        (abs(trial.load / max(lowers) - _BEST), number)
        for number, (trial, seen) in enumerate(capacity.trials)
        if lowers
        and seen is not None
        and seen.invalid is None
        and trial.purpose is not Purpose.WARM_UP
        and trial.load <= max(lowers)
    ]
    for _, number in sorted(known):
        if (directory := places.get(f"run-{number:03d}")) is not None:
            yield directory
