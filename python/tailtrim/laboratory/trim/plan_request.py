"""The request of a plan: its candidates, and the run of each trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.laboratory.experiment.estimate import Effort
from tailtrim.laboratory.plan import load, loop_variables
from tailtrim.laboratory.trim.elimination import sets_of
from tailtrim.laboratory.trim.request import Request
from tailtrim.laboratory.trim.testbed_workload import TestbedWorkload
from tailtrim.laboratory.trim.trial import BOOT, EXPLAIN, Candidate, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.laboratory.plan import Boot, Plan, Run
    from tailtrim.laboratory.plan.trimming import PlannedChange

#: Shortest time of a run beside its traffic, in s: the testbed is made and removed.
_BESIDE_S = 2.0
#: Boot parameters that take away protection or CPUs: what ``mitigations=off`` stands for
#: (Documentation/admin-guide/kernel-parameters.txt of Linux 6.12, x86), that word itself, and those
#: that leave out CPUs or what keeps programs apart.
RISKY = frozenset(
    {
        *("mitigations", "gather_data_sampling", "indirect_target_selection", "l1tf", "mds"),
        *("mmio_stale_data", "reg_file_data_sampling", "retbleed", "spec_rstack_overflow"),
        *("spec_store_bypass_disable", "spectre_bhi", "spectre_v2", "spectre_v2_user", "srbds"),
        *("ssbd", "tsx_async_abort", "kvm.nx_huge_pages", "nopti", "pti", "nobp", "tsx"),
        *("nospectre_bhb", "nospectre_v1", "nospectre_v2", "nospec_store_bypass_disable"),
        *("nosmt", "maxcpus", "nr_cpus", "nosmp", "nokaslr", "nosmap", "nosmep"),
        *("apparmor", "selinux", "lockdown", "module.sig_enforce"),
    }
)
_WHAT_IT_NEEDS = "such as trim: {candidates: {batch: {baseline: 32, changed: 4}}}"


class PlanRequest(Request):
    """A plan with changes to try.

    Args:
        path: the plan.
        explained: a run that says why packets were late: changes of the host against these causes
            come first.
        out: as of :class:`.request.Request`, as is ``resume``.
        resume: the search is taken up.

    Raises:
        HostError: the host to be changed is not this one, or cannot be.
        PlanError: the plan makes no sense, with or without one of its changes.
        RunDirectoryError: the explanation cannot be read.
        ValueError: the run has no explanation.

    """

    def __init__(
        self,
        path: Path,
        explained: Path | None = None,
        out: Path | None = None,
        *,
        resume: bool = False,
    ) -> None:
        """Read it, and look at the run of each change alone."""
        #: Where the plan is.
        self.path = path
        self.plan: Plan
        self.plan, runs = load(path)
        if self.plan.trim is None:
            raise PlanError(f"{path}: trim is missing, {_WHAT_IT_NEEDS}")
        if self.plan.by_minute:
            raise PlanError(
                f"{path}: by_minute: not with tailtrim trim, which compares all packets of trials,"
                " leave it out"
            )
        trimming = self.plan.trim
        told = f"{path}: tailtrim trim needs one combination and one repetition"
        # With boot, each block of trials boots anew: boots says nothing here.
        again = self.plan.boots_node
        if len([one for one in runs if not (one.floor or (again and one.repetition))]) != 1:
            raise PlanError(f"{told}, without loop, factors, repeat and trace: both")
        self._booting = loop_variables(path, ("boot",)) & set(trimming.candidates)
        for name in sorted(self._booting):
            _refuse_risks(path, name, trimming.candidates[name])
        if trimming.host is not None and self.plan.testbed != "local":
            raise PlanError(f"{path}: trim.host: possible with testbed: local only")
        super().__init__(trimming, self.plan.name, explained, out, resume=resume)
        self.explains = bool(self.plan.trace) and explained is None
        for name in trimming.candidates:
            load(path, changed={name})

    @property
    def candidates(self) -> list[Candidate]:
        """The changes in order of expected gain: those of the plan, then those of the host."""
        planned = [
            Candidate(name, one.group or name, boots=name in self._booting)
            for name, one in self.trimming.candidates.items()
        ]
        return planned + super().candidates

    @property
    def each_s(self) -> float:
        """Shortest duration of a trial in s: traffic, making and removing the testbed, boots."""
        each_s = self.plan.traffic.duration_s + _BESIDE_S
        if not self.boots():
            return each_s
        # A round of all changes: it boots without changes, with all, and without each that boots.
        names = [one.name for one in self.candidates]
        sets = sets_of(frozenset(names), names)
        runs = [self.run(Trial(n, one, "eliminate", 0)) for n, one in enumerate(sets)]
        return max(each_s, Effort.of(self.plan, runs).takes_s / len(runs))

    def workload(
        self, folder: Path, done: Sequence[Trial], next_one: Trial | None, *, resume: bool
    ) -> TestbedWorkload:
        """Return the testbed of the plan."""
        return TestbedWorkload(self, folder, done, next_one, resume=resume)

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
        """Return the boots of the node without changes, with each of them, and with all."""
        every = [one.name for one in self.candidates if one.boots]
        sets = [frozenset[str](), *(frozenset([name]) for name in every), frozenset(every)]
        found = (self.run(Trial(0, one, BOOT, 0)).boot for one in sets)
        return [boot for boot in dict.fromkeys(found) if boot is not None]


def _refuse_risks(path: Path, name: str, change: PlannedChange) -> None:
    """Refuse a change of a boot line that has a risk which the plan does not name.

    Raises:
        PlanError: the change has one.

    """
    before = str(change.baseline).split()
    words = [word.partition("=")[0] for word in str(change.changed).split() if word not in before]
    unnamed = [word for word in words if word in RISKY and word not in change.risk]
    if unnamed:
        told = f"{path}: trim.candidates.{name}: {unnamed[0]} takes away CPUs or protection"
        raise PlanError(f"{told}, it is tried only with risk: [{', '.join(unnamed)}]")
