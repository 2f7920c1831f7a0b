"""The loop of a search: it applies the host's changes of each trial, measures, and reverts them."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from tailtrim.errors import OutputError, RunError
from tailtrim.laboratory.trim import state as records
from tailtrim.laboratory.trim.schedule import BASELINE
from tailtrim.laboratory.trim.search import Search
from tailtrim.laboratory.trim.trial import Observation
from tailtrim.results.experiments import SEARCH

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tailtrim.laboratory.trim.request import Request
    from tailtrim.laboratory.trim.trial import Settings, Trial, TrialListener
    from tailtrim.laboratory.trim.verdict import Result

#: After so many first trials without a tail the search stops: on a busy host, some runs are valid.
_SILENT = 8


class Loop:
    """A search on a workload; its folder is locked until the context ends.

    Args:
        request: the changes to try, and the workload.
        folder: the directory of the trials.
        settings: how to search; ``None``: take up the search that is there.

    Raises:
        HostError: the host has changes of another search or of a user.
        OutputError: the directory belongs to something else.

    """

    def __init__(self, request: Request, folder: Path, settings: Settings | None) -> None:
        """Begin, or replay the observations from before the interruption."""
        self._request, self._folder = request, folder
        self.quantile = request.trimming.quantile
        if settings is None:
            self._state = records.load(folder, self.quantile, request.candidates)
        else:
            self._state = records.State(self.quantile, settings, request.candidates)
        tuning = request.tuning
        if tuning is not None and not self._state.applied:
            tuning.require_untuned()
        self.search = Search(self._state.candidates, self._state.settings)
        #: The workload of the trials.
        self.workload = request.workload(
            folder, list(self._replayed()), self.search.trial, resume=settings is None
        )
        with ExitStack() as stack:
            stack.callback(self.workload.close)
            if tuning is not None and self._state.applied:
                # The search that was interrupted: only now is the folder locked.
                tuning.revert()
                self._applied(BASELINE)
            self._save(None)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the search itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Unlock its folder."""
        self._stack.close()

    def _replayed(self) -> Iterator[Trial]:
        """Tell the search the recorded observations, and yield their trials."""
        for seen in self._state.observations:
            if self.search.trial is None:
                told = f"{self._folder / SEARCH}: has trials that this version would not do"
                raise OutputError(told)
            yield self.search.trial
            self.search.tell(seen)

    def go(self, listener: TrialListener) -> Result:
        """Try until the search ends; the host is left with what is kept.

        Args:
            listener: hears what was observed in each trial.

        Raises:
            HostError: this host cannot do it, or the host's changes cannot be taken back.
            OutputError: results cannot be written.

        """
        with self.workload:
            while self.search.trial is not None:
                trial = self.search.trial
                seen = self._try(trial)
                self.search.tell(seen)
                self._save(self.search.result)
                listener.trial_ended(trial, seen)
                self._give_up()
            result = self.search.result
            assert result is not None  # noqa: S101 - a search without a trial has a result
            result = replace(result, found=(*result.found, *self._request.impossible))
            left = (*self.workload.leave(result), *self._leave(result))
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

    def _try(self, trial: Trial) -> Observation:
        began_s = time.monotonic()
        with self._host(self._request.of_host(trial.changes)) as refused:
            if refused is not None:
                self.workload.passed_over(trial)
                seen = Observation(None, failed=refused)
            else:
                seen = self.workload.measure(trial)
        return replace(seen, seconds=time.monotonic() - began_s)

    @contextmanager
    def _host(self, changes: frozenset[str]) -> Iterator[str | None]:
        """Apply the host's changes for a while; yield the reason of a failure."""
        tuning = self._request.tuning
        if tuning is None or not changes:
            yield None
            return
        self._applied(changes)
        try:
            yield tuning.apply(changes)
        finally:
            tuning.revert()
            self._applied(BASELINE)

    def _leave(self, result: Result) -> Iterator[str]:
        """Apply the kept changes of the host, and write them as files of other tools."""
        tuning, kept = self._request.tuning, self._request.of_host(frozenset(result.kept))
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
