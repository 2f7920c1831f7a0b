"""A search on a testbed: each trial is a run of one experiment."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from tailtrim.errors import OutputError, RunError
from tailtrim.laboratory.capacity import record
from tailtrim.laboratory.capacity.record import Capacity, results
from tailtrim.laboratory.capacity.result import goal_results
from tailtrim.laboratory.capacity.search import beside_s
from tailtrim.laboratory.capacity.trial import ATTEMPTS
from tailtrim.laboratory.capacity.trial_result import trial_result
from tailtrim.laboratory.experiment import Experiment, Listener, conduct
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.laboratory.capacity.request import SearchRequest
    from tailtrim.laboratory.capacity.trial import Trial, TrialListener, TrialResult
    from tailtrim.laboratory.plan import Plan, Run
    from tailtrim.results.experiments import Outcome


class Trials(Experiment):
    """An experiment whose runs are found one after the other."""

    def missing(self) -> list[Run]:
        """Return the runs without an outcome: a trial that failed is repeated as another one."""
        return [run for run in self.runs if run.folder not in self.outcomes]

    def goes_on(self, order: Sequence[str]) -> bool:
        """Whether a record has the same runs, or fewer: it is written after a trial begins."""
        return [run.label for run in self.runs][: len(order)] == list(order)


class CapacitySearch:
    """A search and its trials; its folder is locked until the context ends.

    Args:
        path: the folder of the experiment.
        plan: its plan.
        request: what to search for.
        resume: whether to go on with a search that is there.

    Raises:
        OutputError: the folder holds something else, or cannot be written.
        RunDirectoryError: the record of the search is damaged.

    """

    def __init__(self, path: Path, plan: Plan, request: SearchRequest, *, resume: bool) -> None:
        """Make the folder, or take up the search that is there."""
        self.request = request
        self.trials: list[tuple[Trial, TrialResult | None]] = []
        known = record.read(path) if resume else None
        if known is not None:
            record.same_search(path, known.search, request.as_json())
            self.trials = list(known.trials)
        elif resume and (path / "experiment.json").exists():
            raise OutputError(f"{path}: holds an experiment that is not a search of capacity")
        runs = [self._run(number) for number in range(len(self.trials))]
        with ExitStack() as stack:
            self.experiment = stack.enter_context(Trials(path, plan, runs, resume=resume))
            self.experiment.quantiles = [one.p for one in request.conditions]
            for number, (trial, result) in enumerate(self.trials):
                outcome = self.experiment.outcomes.get(runs[number].folder)
                if result is None and outcome is not None:
                    took_s = trial.duration_s + beside_s(results(self.trials))
                    self._note(number, took_s, outcome)
            self._stack = stack.pop_all()
        self._began_s = 0.0

    def __enter__(self) -> Self:
        """Return the search itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Unlock its folder."""
        self._stack.close()

    @property
    def capacity(self) -> Capacity:
        """The record of the search as it is now."""
        done = results(self.trials)
        goals = goal_results(self.request.search, done) if done else []
        return Capacity(self.request.as_json(), tuple(self.trials), tuple(goals))

    def conduct(self, listener: TrialListener) -> None:
        """Do the trials that are missing.

        Args:
            listener: hears what each run is doing, and the result of each trial.

        Raises:
            HostError: this host cannot do it.
            OutputError: results cannot be written.
            RunError: trials fail again and again.

        """
        self._began_s = time.monotonic()
        experiment = self.experiment
        if not experiment.missing() and (first := self._next()) is not None:
            experiment.runs.append(first)
        if experiment.missing():
            conduct(experiment, _RunListener(self, listener), following=self._next)
        record.write(experiment.path, self.capacity)

    def run_ended(self, run: Run, outcome: Outcome) -> TrialResult:
        """Take the result of a trial from its run."""
        result = self._note(run.number, time.monotonic() - self._began_s, outcome)
        self._began_s = time.monotonic()
        return result

    def _next(self) -> Run | None:
        """Begin the next trial, and return its run."""
        trial = self.request.search.next_trial(results(self.trials))
        if trial is None:
            return None
        self.trials.append((trial, None))
        record.write(self.experiment.path, self.capacity)
        return self._run(len(self.trials) - 1)

    def _run(self, number: int) -> Run:
        trial, _ = self.trials[number]
        before = sum(other.load == trial.load for other, _ in self.trials[:number])
        return self.request.run_of(number, trial, before)

    def _note(self, number: int, took_s: float, outcome: Outcome) -> TrialResult:
        """Take what a trial showed."""
        trial, _ = self.trials[number]
        place = self.experiment.path / outcome.run
        run = None if outcome.failed or outcome.skipped else RunDirectory(place)
        limits = self.experiment.plan.limits
        result = trial_result(trial, took_s, outcome, run, self.request.conditions, limits=limits)
        self.trials[number] = (trial, result)
        record.write(self.experiment.path, self.capacity)
        return result

    def refuse_failures(self, outcome: Outcome) -> None:
        """End a search whose last trials all failed: that says nothing of a load."""
        outcomes = self.experiment.outcomes
        last = [outcomes.get(run.folder) for run in self.experiment.runs[-ATTEMPTS:]]
        if len(last) == ATTEMPTS and all(one is not None and one.failed for one in last):
            raise RunError(f"{ATTEMPTS} trials in a row failed, the last: {outcome.failed}")


class _RunListener(Listener):
    """A listener to the runs of a search, which are its trials."""

    def __init__(self, search: CapacitySearch, listener: TrialListener) -> None:
        self._search, self._listener = search, listener

    def progress(self, run: Run, what: str) -> None:
        self._listener.progress(run, what)

    def run_ended(self, run: Run, outcome: Outcome) -> None:
        result = self._search.run_ended(run, outcome)
        self._listener.trial_ended(result, outcome)
        self._search.refuse_failures(outcome)
