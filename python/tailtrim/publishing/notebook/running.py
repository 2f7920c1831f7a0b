"""An experiment in a process of its own: :func:`run`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError, OutputError, RunError
from tailtrim.laboratory.plan import load
from tailtrim.results.experiments import RecordedExperiment, is_experiment

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

#: Exit codes of ``tailtrim run``.
_NEGATIVE, _USAGE, _IMPOSSIBLE, _BROKEN = 1, 2, 3, 4
#: Lines that are kept of what it says: its errors are the last ones.
_KEPT = 200


def run(
    plan: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[str], object] | None = None,
) -> RecordedExperiment:
    """Run an experiment as ``tailtrim run`` does, and return what it left.

    It has a process of its own, which may make namespaces without this one being root; an interrupt
    ends it in order.

    Args:
        plan: the file with the plan.
        out: where results go, by default ``results/NAME`` of the plan.
        resume: go on with an experiment that was interrupted.
        progress: called with a line for each run that ended, such as ``print``.

    Returns:
        The experiment; runs that failed or are invalid say so in their ``problem``.

    Raises:
        PlanError: the plan asks for what makes no sense.
        HostError: this host cannot do it.
        OutputError: results cannot be put there, or an experiment is there already.
        RunError: it broke before any run was complete.

    """
    loaded, _ = load(Path(plan))
    place = Path("results") / loaded.name if out is None else Path(out)
    command = [sys.executable, "-m", "tailtrim.cli", "run", str(plan), "--out", str(place)]
    code, lines = _followed([*command, *(["--resume"] if resume else [])], progress)
    known = is_experiment(place)
    if known and code in {0, _NEGATIVE}:
        return RecordedExperiment(place)
    if known and code == _BROKEN and (found := RecordedExperiment(place)).complete:
        return found
    kinds = {_USAGE: OutputError, _IMPOSSIBLE: HostError}
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    failure = kinds.get(code, RunError)("; ".join(errors) or f"tailtrim run ended with {code}")
    for line in lines:
        if line.startswith("hint: "):
            failure.add_note(line.removeprefix("hint: "))
    raise failure


def _followed(
    command: list[str], progress: Callable[[str], object] | None
) -> tuple[int, list[str]]:
    """Run a command; return its exit code and the last lines of its standard error."""
    lines: deque[str] = deque(maxlen=_KEPT)
    with subprocess.Popen(  # noqa: S603 - this package, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            for line in process.stderr or ():
                lines.append(line.rstrip("\n"))
                if progress is not None:
                    progress(lines[-1])
        except BaseException:
            # It takes down what it set up, and then it ends.
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
    return process.returncode, list(lines)
