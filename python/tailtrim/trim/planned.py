"""What a plan asks to be tried, and the run of each trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.plan import load
from tailtrim.rundir import RunDirectory
from tailtrim.trim.expected import by_causes
from tailtrim.trim.host import HostTuning
from tailtrim.trim.trial import Candidate, Limits

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.plan import Plan, Run
    from tailtrim.plan.trimming import Trimming
    from tailtrim.trim.trial import Trial
    from tailtrim.trim.verdict import Found

_WHAT_IT_NEEDS = "such as trim: {candidates: {batch: {baseline: 32, changed: 4}}}"


class Planned:
    """A plan with changes to try.

    Args:
        path: the plan.
        explained: a run that says why packets were late: changes of the host against these causes
            come first.

    Raises:
        HostError: the host to be changed is not this one, or cannot be.
        PlanError: the plan makes no sense, with or without one of its changes.
        RunDirectoryError: the explanation cannot be read.
        ValueError: there is none.

    """

    def __init__(self, path: Path, explained: Path | None = None) -> None:
        """Read it, and look at the run of each change alone."""
        #: Where the plan is.
        self.path = path
        self.plan: Plan
        self.plan, runs = load(path)
        if self.plan.trim is None:
            raise PlanError(f"{path}: trim is missing, {_WHAT_IT_NEEDS}")
        self.trimming: Trimming = self.plan.trim
        told = f"{path}: tailtrim trim needs one combination and one repetition"
        if len([run for run in runs if not run.floor]) != 1:
            raise PlanError(f"{told}, without loop, factors, repeat and trace: both")
        if self.plan.boot is not None or self.plan.in_guest:
            raise PlanError(f"{path}: tailtrim trim changes no boot lines yet, leave boot out")
        if self.trimming.host is not None and self.plan.testbed != "local":
            raise PlanError(f"{path}: trim.host: possible with testbed: local only")
        self.tuning = HostTuning(self.trimming.host) if self.trimming.host else None
        self._of_host = self.tuning.candidates if self.tuning else []
        if explained is not None:
            checks = self.tuning.checks if self.tuning else {}
            of_run = RunDirectory(explained)
            self._of_host = by_causes(self._of_host, checks, of_run, self.trimming.quantile)
        for name in self.trimming.candidates:
            load(path, changed={name})

    @property
    def candidates(self) -> list[Candidate]:
        """The changes in order of expected gain: those of the plan, then those of the host."""
        planned = [
            Candidate(name, one.group or name) for name, one in self.trimming.candidates.items()
        ]
        return planned + self._of_host

    @property
    def impossible(self) -> list[Found]:
        """The changes of the host that cannot be tried."""
        return self.tuning.impossible if self.tuning else []

    @property
    def limits(self) -> Limits:
        """What a change must not cost."""
        limits = self.trimming.limits
        return Limits(loss=limits.loss, rate_loss=limits.throughput)

    def of_host(self, changes: frozenset[str]) -> frozenset[str]:
        """Return those of the changes that are the host's."""
        return changes - set(self.trimming.candidates)

    def run(self, trial: Trial) -> Run:
        """Return the run of a trial; its variables tell which changes are made."""
        _, runs = load(self.path, changed=trial.changes)
        (run,) = (run for run in runs if not run.floor)
        planned = self.trimming.candidates
        values = {
            name: planned[name].changed if name in planned else "applied"
            for name in sorted(trial.changes)
        }
        return run.model_copy(update={"number": trial.number, "loop": values})
