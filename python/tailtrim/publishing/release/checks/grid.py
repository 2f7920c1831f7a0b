"""The level ``grid``: the runs that the plan asks for, and the outcome of each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.publishing.release.checks import CheckResult
from tailtrim.publishing.release.safe_files import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.plan import Run
    from tailtrim.publishing.release.untrusted_release import UntrustedRelease


def check(release: UntrustedRelease) -> CheckResult:
    """Compare the runs with the plan."""
    if release.imported:
        told = f"results of {release.imported} have no plan"
        return CheckResult("grid", told, tuple(_folders(release)), (told,), without=True)
    if release.trials is not None:
        return _of_search(release, release.trials)
    try:
        _, runs = release.planned
    except PlanError as error:
        return CheckResult("grid", "the plan cannot be read", tuple(map(str, error.args)))
    planned = {run.folder: run for run in runs}
    there = {run.outcome.run: run for run in release.experiment.runs}
    counted = Counter(run.outcome.run for run in release.experiment.runs)
    wrong = [
        f"{name}: {count} outcomes, expected one" for name, count in counted.items() if count > 1
    ]
    for name, run in planned.items():
        if name not in there:
            wrong.append(f"{name} ({run.label}): missing, the record has no outcome of it")
        elif there[name].directory is None and there[name].problem is None:
            wrong.append(f"{name} ({run.label}): missing, its folder has no result")
        elif there[name].directory is not None:
            wrong += _of_plan(release, run)
    folders = _folders_of(release)
    wrong += [f"{name}: not a run of the plan" for name in sorted({*there, *folders} - {*planned})]
    if release.told.get("order") != [run.label for run in runs]:
        wrong.append("experiment.json: order: not the order of the plan")
    told = f"{len(planned):,} runs of the plan, {len(release.experiment.complete):,} with a result"
    return CheckResult("grid", told, tuple(wrong), (), tuple(_notes(release)))


def _of_search(release: UntrustedRelease, trials: list[str]) -> CheckResult:
    """Compare the runs with the trials of a search, which chose them one after the other."""
    there = {run.outcome.run for run in release.experiment.runs}
    wrong = [f"{name}: missing, a trial without an outcome" for name in trials if name not in there]
    wrong += [f"{name}: not a trial of the search" for name in sorted(there - {*trials})]
    wrong += _folders(release)
    told = f"{len(trials):,} trials, {len(release.experiment.complete):,} with a result"
    return CheckResult("grid", told, tuple(wrong), (), tuple(_notes(release)))


def _notes(release: UntrustedRelease) -> Iterator[str]:
    for run in release.experiment.runs:
        if run.problem:
            yield f"{run.outcome.run} ({run.name}): {run.problem}"
    for run in release.experiment.runs:
        for why in run.outcome.repeated:
            yield f"{run.outcome.run} ({run.name}): repeated: {why}"


def _folders_of(release: UntrustedRelease) -> set[str]:
    return {name.split("/")[1] for name in release.files if name.startswith("experiment/run-")}


def _folders(release: UntrustedRelease) -> Iterator[str]:
    """Yield what differs between the record of runs and their folders, where no plan says more."""
    there = {run.outcome.run: run for run in release.experiment.runs}
    for name in sorted(_folders_of(release) - {*there}):
        yield f"{name}: the record has no outcome of it"
    for name, run in there.items():
        if run.directory is None and run.problem is None:
            yield f"{name} ({run.name}): missing, its folder has no result"


def _of_plan(release: UntrustedRelease, run: Run) -> list[str]:
    """Return whether a run says of itself what the plan says of it."""
    place = release.place / run.folder / "loop.json"
    if not place.is_file():
        return [f"{run.folder}/loop.json: missing"]
    said, planned = record(place), run.model_dump(mode="json")
    different = [key for key in planned if said.get(key) != planned[key]]
    return [
        f"{run.folder}/loop.json: {key} is {said.get(key)!r}, in the plan {planned[key]!r}"
        for key in different
    ]
