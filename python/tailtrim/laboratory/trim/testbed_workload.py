"""The testbed of a plan as the workload of a search: trials are runs of one experiment."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError, RunError
from tailtrim.laboratory.experiment import Experiment, conduct, images_for, keep_plan, nodes_of
from tailtrim.laboratory.experiment.context import SILENT
from tailtrim.laboratory.trim.observation import observation, with_power
from tailtrim.laboratory.trim.ranking import costs
from tailtrim.laboratory.trim.schedule import BASELINE
from tailtrim.laboratory.trim.trial import BOOT, EXPLAIN, Trial
from tailtrim.results import RunDirectory
from tailtrim.results.experiments import RECORD, SEARCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.laboratory.experiment import Boots, Listener
    from tailtrim.laboratory.nodes.vm.image import Image
    from tailtrim.laboratory.plan import Boot, Run
    from tailtrim.laboratory.trim.plan_request import PlanRequest
    from tailtrim.laboratory.trim.trial import Observation
    from tailtrim.laboratory.trim.verdict import Result


class TestbedWorkload:
    """The testbed of a plan: a workload of searches.

    Args:
        request: the plan.
        folder: the directory of the experiment.
        done: the trials that are there.
        next_one: the one that may have been interrupted.
        resume: take up the experiment that is there.

    Raises:
        OutputError: the directory belongs to something else.

    """

    def __init__(
        self,
        request: PlanRequest,
        folder: Path,
        done: Sequence[Trial],
        next_one: Trial | None,
        *,
        resume: bool,
    ) -> None:
        """Begin the experiment, or take it up."""
        self._request, self._folder = request, folder
        self.quantile = request.trimming.quantile
        trials = list(done)
        if resume and next_one is not None and _begun(folder) > len(trials):
            trials.append(next_one)
        runs = [request.run(one) for one in trials]
        self._tried_boots = any(one.phase == BOOT for one in done)
        resume = resume or _only_begun(folder)
        with ExitStack() as stack:
            experiment = Experiment(folder, request.plan, runs, resume=resume)
            self.experiment = stack.enter_context(experiment)
            self.experiment.quantiles = [self.quantile]
            self.experiment.save()
            keep_plan(request.path, self.experiment)
            self._folder_lock = stack.pop_all()
        self._images: dict[Boot, Image] = {}
        self._stack = ExitStack()
        self._nodes: Boots | None = None
        testbed = request.plan.testbed
        self._device_node = None if testbed == "local" else testbed.roles_of_nodes["dut"]

    def __enter__(self) -> Self:
        """Reserve the nodes."""
        self._nodes = self._stack.enter_context(nodes_of(self.experiment, self._images))
        return self

    def __exit__(self, *_: object) -> None:
        """End the programs on the nodes, and release these."""
        self._nodes = None
        self._stack.close()

    def close(self) -> None:
        """Unlock the folder of the experiment."""
        self._folder_lock.close()

    @property
    def notices(self) -> Sequence[str]:
        """Notices for users."""
        return [*self.experiment.testbed.notices, *self.experiment.notices]

    def prepare(self, listener: Listener) -> None:
        """Make the images that trials boot, and check their boot lines.

        Args:
            listener: hears steps that take time, and warnings about boot lines.

        Raises:
            HostError: this host cannot make it.
            OutputError: the cache cannot be written.
            PlanError: a boot line does not do what it says.

        """
        self._images |= images_for(self.experiment, listener, self._request.boots())

    def passed_over(self, trial: Trial) -> None:
        """Take note of a trial that cannot be measured."""
        self._noted(trial)

    def measure(self, trial: Trial) -> Observation:
        """Do the run of a trial.

        Raises:
            HostError: this host cannot do it, or a host has died.
            OutputError: results cannot be written.
            RunError: the node does not boot without changes.

        """
        experiment, run = self.experiment, self._noted(trial)
        if self._request.tuning is not None:
            # Changes of the host by a trial do not make its run invalid.
            experiment.environment.clear()
        if run.boot is not None and run.boot not in self._images:
            self._images |= images_for(experiment, SILENT, [run.boot])
        conduct(experiment, SILENT, runs=[run], within=self._nodes)
        if experiment.testbed.gone is not None:
            # The trial is not told: it is done again when the host is back.
            raise HostError(experiment.testbed.gone)
        outcome = experiment.outcomes[run.folder]
        complete = not (outcome.failed or outcome.skipped)
        of_run = RunDirectory(self._folder / run.folder) if complete else None
        seen = observation(outcome, of_run.summary if of_run else None, self.quantile)
        if of_run:
            seen = with_power(seen, of_run.path, self._device_node)
        if of_run and trial.phase == EXPLAIN:
            return replace(seen, costs_ns=costs(of_run, self.quantile) or {})
        return seen if run.boot is None else replace(seen, untried=self._untried(trial))

    def _untried(self, trial: Trial) -> str | None:
        """Return the reason if the node is not in the boot of a trial."""
        untried = self._nodes.untried if self._nodes else None
        if trial.phase == BOOT:
            self._tried_boots = True
            if untried and trial.changes == BASELINE:
                raise RunError(f"nothing can be tried, without changes: {untried}")
        return untried

    def _noted(self, trial: Trial) -> Run:
        run = self._request.run(trial)
        if len(self.experiment.runs) == trial.number:
            self.experiment.runs.append(run)
        self.experiment.save()
        return run

    def leave(self, result: Result) -> Iterator[str]:
        """Leave a node that boots in the boot that is kept; yield how to make that last."""
        run = self._request.run(Trial(0, frozenset(result.kept), BOOT, 0))
        if run.boot is None or self._nodes is None or not self._tried_boots:
            return
        line = " ".join(run.boot.cmdline.split())
        boot = f"kernel {run.boot.kernel}, boot line {line!r}"
        try:
            stays = self._nodes.leave(run.boot)
        except (HostError, RunError) as error:
            yield f"the device's node could not be left in what is kept ({boot}): {error}"
            return
        if stays is None:
            yield f"what is kept boots with {boot}; no virtual machine of the search is left"
        else:
            told = f"{stays} is in what is kept: {boot}"
            yield f"{told}; its next reset boots what its boot loader says"


def _only_begun(folder: Path) -> bool:
    """Whether a search was killed before it had written more than an empty record."""
    there = (folder / RECORD).exists() and not (folder / SEARCH).exists()
    return there and _begun(folder) == 0


def _begun(folder: Path) -> int:
    """Return the number of runs in the experiment's record, with the one that was interrupted."""
    try:
        return len(json.loads((folder / RECORD).read_text("utf-8"))["order"])
    except (OSError, ValueError, KeyError, TypeError):
        # Whoever takes up the experiment says what is wrong with it.
        return 0
