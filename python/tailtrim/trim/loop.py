"""The loop: each trial of a search becomes a run of one experiment, with the host as it asks."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, OutputError, RunError
from tailtrim.experiment import Experiment, conduct, images_for, keep_plan, nodes_of
from tailtrim.experiment.record import RECORD
from tailtrim.rundir import RunDirectory
from tailtrim.trim import state as records
from tailtrim.trim.course import BASELINE
from tailtrim.trim.expected import costs
from tailtrim.trim.observed import observation
from tailtrim.trim.search import Search
from tailtrim.trim.trial import BOOT, EXPLAIN, Observation, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tailtrim.experiment import Booted
    from tailtrim.nodes.vm.image import Image
    from tailtrim.plan import Boot, Run
    from tailtrim.trim.planned import Planned
    from tailtrim.trim.trial import Settings
    from tailtrim.trim.verdict import Result

#: After so many first trials without a tail the search stops: on a busy host, some runs are valid.
_SILENT = 8


class Loop:
    """A search on a testbed.

    Args:
        planned: what may be changed.
        folder: the directory of the experiment.
        settings: how to search; ``None``: take up the search that is there.

    Raises:
        HostError: the host has changes of another search or of a user.
        OutputError: the directory belongs to something else.

    """

    def __init__(self, planned: Planned, folder: Path, settings: Settings | None) -> None:
        """Begin, or replay what was seen before the interruption."""
        self._planned, self._folder = planned, folder
        self.quantile = planned.trimming.quantile
        if settings is None:
            self._state = records.load(folder, self.quantile, planned.candidates)
        else:
            self._state = records.State(self.quantile, settings, planned.candidates)
        tuning = planned.tuning
        if tuning is not None and not self._state.applied:
            tuning.require_untuned()
        self.search = Search(self._state.candidates, self._state.settings)
        runs = [planned.run(trial) for trial in self._replayed()]
        if settings is None and self.search.trial is not None and _begun(folder) > len(runs):
            runs.append(planned.run(self.search.trial))
        resume = settings is None or _only_begun(folder)
        self.experiment = Experiment(folder, planned.plan, runs, resume=resume)
        self.experiment.quantiles = [self.quantile]
        self._images: dict[Boot, Image] = {}
        self.experiment.save()
        if tuning is not None and self._state.applied:
            # The search that was interrupted: only now is the folder locked.
            tuning.revert()
            self._applied(BASELINE)
        self._save(None)
        keep_plan(planned.path, self.experiment)

    def _replayed(self) -> Iterator[Trial]:
        """Tell the search what was seen, and yield the trials again."""
        for seen in self._state.observations:
            if self.search.trial is None:
                told = f"{self._folder / records.NAME}: has trials that this version would not do"
                raise OutputError(told)
            yield self.search.trial
            self.search.tell(seen)

    def prepare(self, told: Callable[[str], None], warned: Callable[[str], None]) -> None:
        """Make what trials boot, and look at their boot lines.

        Args:
            told: is called with what is being done, where it takes time.
            warned: is called with what may be wrong with a boot line.

        Raises:
            HostError: this host cannot make it.
            OutputError: the cache cannot be written.
            PlanError: a boot line does not do what it says.

        """
        self._images |= images_for(self.experiment, told, warned, self._planned.boots())

    def go(
        self, told: Callable[[Run, str], None], ended: Callable[[Trial, Observation], None]
    ) -> Result:
        """Try until the search ends; the host is left with what is kept.

        Args:
            told: is called with a run and what it is doing.
            ended: is called with a trial and what it measured.

        Raises:
            HostError: this host cannot do it, or the host's changes cannot be taken back.
            OutputError: results cannot be written.

        """
        with nodes_of(self.experiment, self._images) as nodes:
            while self.search.trial is not None:
                trial = self.search.trial
                seen = self._try(trial, nodes, told)
                self.search.tell(seen)
                self._save(self.search.result)
                ended(trial, seen)
                self._give_up()
            result = self.search.result
            assert result is not None  # noqa: S101 - a search without a trial has a result
            result = replace(result, found=(*result.found, *self._planned.impossible))
            left = (*self._leave_boot(result, nodes), *self._leave(result))
            result = replace(result, notices=(*result.notices, *left))
        self._save(result)
        return result

    def _give_up(self) -> None:
        """Stop a search whose first trials all say nothing: the others will not either."""
        seen = [one.observation for one in self.search.seen]
        if len(seen) != _SILENT or any(one.tail_ns for one in seen):
            return
        reason = seen[-1].failed or seen[-1].doubt
        raise RunError(f"the first {len(seen)} trials have no tail, the last one because {reason}")

    def _try(self, trial: Trial, nodes: Booted, told: Callable[[Run, str], None]) -> Observation:
        experiment, run = self.experiment, self._planned.run(trial)
        if len(experiment.runs) == trial.number:
            experiment.runs.append(run)
        experiment.save()
        began_s = time.monotonic()
        with self._host(self._planned.of_host(trial.changes)) as refused:
            if refused is not None:
                return Observation(None, seconds=time.monotonic() - began_s, failed=refused)
            if self._planned.tuning is not None:
                # What a trial changes on the host does not make its run invalid.
                experiment.environment.clear()
            if run.boot is not None and run.boot not in self._images:
                made = images_for(experiment, lambda _: None, lambda _: None, [run.boot])
                self._images |= made
            conduct(experiment, told, lambda *_: None, runs=[run], within=nodes)
        if experiment.testbed.gone is not None:
            # The trial is not told: it is done again when the host is back.
            raise HostError(experiment.testbed.gone)
        took_s = time.monotonic() - began_s
        outcome = experiment.outcomes[run.folder]
        place = self._folder / run.folder
        complete = not (outcome.failed or outcome.skipped)
        of_run = RunDirectory(place) if complete else None
        summary = of_run.summary if of_run else None
        seen = observation(outcome, summary, self.quantile, took_s)
        if of_run and trial.phase == EXPLAIN:
            return replace(seen, costs_ns=costs(of_run, self.quantile) or {})
        untried = nodes.untried if run.boot is not None else None
        if untried and trial.phase == BOOT and trial.changes == BASELINE:
            raise RunError(f"nothing can be tried, without changes: {untried}")
        return replace(seen, untried=untried)

    @contextmanager
    def _host(self, changes: frozenset[str]) -> Iterator[str | None]:
        """Have the host's changes applied; yields why they are not."""
        tuning = self._planned.tuning
        if tuning is None or not changes:
            yield None
            return
        self._applied(changes)
        try:
            yield tuning.apply(changes)
        finally:
            tuning.revert()
            self._applied(BASELINE)

    def _leave_boot(self, result: Result, nodes: Booted) -> Iterator[str]:
        """Have a node that boots be in the boot that is kept, and say how that is made to last."""
        run = self._planned.run(Trial(0, frozenset(result.kept), BOOT, 0))
        if run.boot is None or not any(one.trial.phase == BOOT for one in self.search.seen):
            return
        line = " ".join(run.boot.cmdline.split())
        boot = f"kernel {run.boot.kernel}, boot line {line!r}"
        try:
            stays = nodes.leave(run.boot)
        except (HostError, RunError) as error:
            yield f"the device's node could not be left in what is kept ({boot}): {error}"
            return
        if stays is None:
            yield f"what is kept boots with {boot}; no virtual machine of the search is left"
        else:
            told = f"{stays} is in what is kept: {boot}"
            yield f"{told}; its next reset boots what its boot loader says"

    def _leave(self, result: Result) -> Iterator[str]:
        """Apply to the host what is kept, and write it as files of other tools."""
        tuning, kept = self._planned.tuning, self._planned.of_host(frozenset(result.kept))
        if tuning is None or not kept:
            return
        for place in tuning.export(kept, self._folder / "export"):
            yield f"the changes of the host that are kept are in {place}"
        self._applied(kept)
        refused = tuning.apply(kept)
        if refused is not None:
            tuning.revert()
            self._applied(BASELINE)
            yield f"what is kept could not be applied again: {refused}"
            return
        yield "what is kept of the host's changes is applied: tailtrim tune revert takes it back"

    def _applied(self, changes: frozenset[str]) -> None:
        self._state.applied = sorted(changes)
        self._save(None)

    def _save(self, result: Result | None) -> None:
        self._state.save(self._folder, self.search.seen, result)


def _only_begun(folder: Path) -> bool:
    """Whether a search was killed before it had written more than an empty record."""
    there = (folder / RECORD).exists() and not (folder / records.NAME).exists()
    return there and _begun(folder) == 0


def _begun(folder: Path) -> int:
    """Return how many runs the record of the experiment has, with the one that was interrupted."""
    try:
        return len(json.loads((folder / RECORD).read_text("utf-8"))["order"])
    except (OSError, ValueError, KeyError, TypeError):
        # Whoever takes up the experiment says what is wrong with it.
        return 0
