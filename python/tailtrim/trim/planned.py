"""What a plan asks to be tried, and the run of each trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.plan import load, loop_variables
from tailtrim.rundir import RunDirectory
from tailtrim.trim.expected import by_causes, costs
from tailtrim.trim.host import HostTuning
from tailtrim.trim.risk import refuse
from tailtrim.trim.trial import BOOT, EXPLAIN, Candidate, Limits, Trial

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.plan import Boot, Plan, Run
    from tailtrim.plan.trimming import Trimming
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
        # With boot, each block of trials boots anew: boots says nothing here.
        again = self.plan.boots_node
        if len([one for one in runs if not (one.floor or (again and one.repetition))]) != 1:
            raise PlanError(f"{told}, without loop, factors, repeat and trace: both")
        self._booting = loop_variables(path, ("boot",)) & set(self.trimming.candidates)
        for name in sorted(self._booting):
            refuse(path, name, self.trimming.candidates[name])
        if self.trimming.host is not None and self.plan.testbed != "local":
            raise PlanError(f"{path}: trim.host: possible with testbed: local only")
        self.tuning = HostTuning(self.trimming.host) if self.trimming.host else None
        self._of_host = self.tuning.candidates if self.tuning else []
        if explained is not None:
            costs_ns = costs(RunDirectory(explained), self.trimming.quantile)
            if costs_ns is None:
                told = f"{explained}: no explanation of a trace"
                raise ValueError(f"{told}, expected a run with one")
            self._of_host = by_causes(self._of_host, costs_ns)
        #: The first trials are to have a trace, which orders the changes of the host.
        self.explains = bool(self.plan.trace) and explained is None
        for name in self.trimming.candidates:
            load(path, changed={name})

    @property
    def candidates(self) -> list[Candidate]:
        """The changes in order of expected gain: those of the plan, then those of the host."""
        planned = [
            Candidate(name, one.group or name, boots=name in self._booting)
            for name, one in self.trimming.candidates.items()
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
        run = next(run for run in runs if not run.floor)
        planned = self.trimming.candidates
        values = {
            name: planned[name].changed if name in planned else "applied"
            for name in sorted(trial.changes)
        }
        told = {"number": trial.number, "loop": values, "traced": trial.phase == EXPLAIN}
        # A boot is one observation, so that no two blocks share one.
        told |= {"repetition": trial.block} if run.boot is not None else {}
        return run.model_copy(update=told)

    def boots(self) -> list[Boot]:
        """Return what the node boots without changes, with each of them, and with all."""
        every = [one.name for one in self.candidates if one.boots]
        sets = [frozenset[str](), *(frozenset([name]) for name in every), frozenset(every)]
        found = (self.run(Trial(0, one, BOOT, 0)).boot for one in sets)
        return [boot for boot in dict.fromkeys(found) if boot is not None]
