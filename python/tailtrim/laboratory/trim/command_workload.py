"""A command as the workload of a search: it leaves a run directory for each trial."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Self

from tailtrim.errors import OutputError, RunDirectoryError
from tailtrim.laboratory.plan.command_plan import load_watched
from tailtrim.laboratory.trim.observation import observation
from tailtrim.laboratory.trim.request import Request
from tailtrim.results import RunDirectory
from tailtrim.results.drafts import locked
from tailtrim.results.experiments import SEARCH, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.laboratory.experiment import Listener
    from tailtrim.laboratory.trim.trial import Observation, Trial
    from tailtrim.laboratory.trim.verdict import Result

#: Environment variable with the place of the run directory.
RUN = "RUN"
#: Grace period of a command after SIGTERM, in s.
_END_S = 5.0
_LOOK_S = 0.02
_LAST = 300
_WITH_US = ("setpriv", "--pdeathsig", "TERM")


class CommandRequest(Request):
    """Changes of this host, tried on a command.

    Args:
        path: the file with the changes.
        command: for ``sh -c``; leaves a run directory at ``$RUN``.
        explained: as of :class:`.request.Request`, as are the others.
        out: the folder of the trials.
        resume: the search is taken up.

    Raises:
        HostError: the host to be changed is not this one, or cannot be.
        PlanError: the file makes no sense.

    """

    def __init__(
        self,
        path: Path,
        command: str,
        explained: Path | None = None,
        out: Path | None = None,
        *,
        resume: bool = False,
    ) -> None:
        """Read the file."""
        plan = load_watched(path)
        super().__init__(plan.trim, plan.name, explained, out, resume=resume)
        self._duration_s, self._command = plan.duration_s, command

    @property
    def each_s(self) -> float:
        """Duration of a trial as the file has it, in s."""
        return self._duration_s

    def workload(
        self, folder: Path, done: Sequence[Trial], next_one: Trial | None, *, resume: bool
    ) -> CommandWorkload:
        """Return the command."""
        del done, next_one
        return CommandWorkload(self._command, folder, self.trimming.quantile, resume=resume)


class CommandWorkload:
    """A command: a workload of searches.

    Args:
        command: for ``sh -c``; leaves a run directory at ``$RUN``.
        folder: for those directories, and what the command prints.
        quantile: as summaries write it.
        resume: take up what is there.

    Raises:
        OutputError: the folder belongs to something else.

    """

    #: None: a command says nothing beside its trials.
    notices: Sequence[str] = ()

    def __init__(self, command: str, folder: Path, quantile: str, *, resume: bool) -> None:
        """Take the folder."""
        self._command, self._folder, self._quantile = command, folder, quantile
        there = folder.exists() and any(folder.iterdir())
        if there and not (resume and (folder / SEARCH).exists()):
            raise OutputError(f"{folder}: is not empty, so nothing is written to it")
        self._stack = ExitStack()
        self._stack.enter_context(locked(folder))

    def __enter__(self) -> Self:
        """Return the workload itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it: a command ends with its trial."""

    def close(self) -> None:
        """Unlock the folder."""
        self._stack.close()

    def prepare(self, listener: Listener) -> None:
        """Do nothing: a command has what it needs."""

    def passed_over(self, trial: Trial) -> None:
        """Do nothing: the record of the search has the trial."""

    def leave(self, result: Result) -> Iterator[str]:
        """Leave nothing."""
        del result
        return iter(())

    def measure(self, trial: Trial) -> Observation:
        """Run the command, and read its run directory.

        Raises:
            OutputError: results cannot be written.

        """
        name = trial.folder
        place, log = self._folder / name, self._folder / f"{name}.log"
        shutil.rmtree(place, ignore_errors=True)
        failed = self._run(place, log)
        summary = None
        if failed is None:
            try:
                summary = RunDirectory(place).summary
            except RunDirectoryError as error:
                failed = f"the command has left no run directory at ${RUN}: {error}"
        outcome = Outcome(name, self._command, floor=False, failed=failed)
        return observation(outcome, summary, self._quantile)

    def _run(self, place: Path, log: Path) -> str | None:
        """Run the command to its end; return the reason of a failure."""
        try:
            output = log.open("wb")
        except OSError as error:
            raise OutputError(f"{log}: cannot be written: {error.strerror}") from error
        with (
            output,
            subprocess.Popen(  # noqa: S603 - the user's own command
                # It ends with this process, also when that is killed.
                [*_WITH_US, "/bin/sh", "-c", self._command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {RUN: str(place.absolute())},
                start_new_session=True,
            ) as process,
        ):
            try:
                code = process.wait()
            finally:
                _end(process)
        if code == 0:
            return None
        lines = log.read_text("utf-8", errors="replace").strip().splitlines() or ["it says nothing"]
        return f"the command ended with {code}: {lines[-1][:_LAST]}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the processes of a command, whatever ended the wait for it."""
    until_s = time.monotonic() + _END_S
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        # The shell may have ended before what it started.
        while time.monotonic() < until_s:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(_LOOK_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
