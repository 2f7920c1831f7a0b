"""An experiment of pos from beginning to end: the script, and the nodes that it asks for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.local_host import environment
from tailtrim_pos import library
from tailtrim_pos.controller import Controller
from tailtrim_pos.jobs import Waiting
from tailtrim_pos.library.poslib import _client
from tailtrim_pos.programs import SOCKET
from tailtrim_pos.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tailtrim_pos.allocation import Allocation
    from tailtrim_pos.experiment import PosExperiment
    from tailtrim_pos.jobs import RunEnded
    from tailtrim_pos.journal import Journal

# The kernel ends the script with all that it started when this process ends, whatever ends it.
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child")


@dataclass(frozen=True, slots=True)
class Ended:
    """End of an experiment: the script's exit code, allocations, doubts, failed commands."""

    code: int
    allocations: tuple[Allocation, ...]
    doubts: tuple[str, ...]
    failed: tuple[str, ...]


def conduct(
    experiment: PosExperiment, journal: Journal, told: Callable[[RunEnded | Waiting], None]
) -> Ended:
    """Run the script of an experiment to its end, with a ``pos`` of ours.

    Args:
        experiment: its script runs in its folder, as it would on the controller of a testbed.
        journal: of what was run.
        told: is called when a run has ended, and when the script ends before its commands.

    Raises:
        HostError: this host cannot.
        KeyboardInterrupt: SIGINT came, and everything has been taken down.
        SystemExit: likewise SIGTERM or SIGHUP.

    """
    folder = Path(tempfile.mkdtemp(prefix="tailtrim-pos-"))
    # Removes the sockets also where this process is killed: its standard input ends then.
    keeper = subprocess.Popen(
        ["sh", "-c", 'cat >/dev/null; rm -rf "$1"', "sh", str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        ended = asyncio.run(_conduct(folder, experiment, journal, told))
    finally:
        keeper.communicate()
    if ended is signal.SIGINT:
        raise KeyboardInterrupt
    if isinstance(ended, signal.Signals):
        raise SystemExit(128 + ended)
    return ended


async def _conduct(
    folder: Path,
    experiment: PosExperiment,
    journal: Journal,
    told: Callable[[RunEnded | Waiting], None],
) -> Ended | signal.Signals:
    """Return how it ended, or the signal that ended it."""
    ended_by = _signals()
    session = Session(folder, experiment, journal, told)
    controller = Controller(folder, session)
    try:
        await controller.listen()
        code = await _script(folder, experiment.script.absolute(), experiment.arguments)
        if active := session.jobs.active():
            told(Waiting(tuple(f"{one.launch.name} on {one.machine.name}" for one in active)))
        await session.finished()
        failed = [job for job in session.jobs.all.values() if job.failed]
        names = (f"{job.machine.name}: {job.launch.name}: {job.last_lines()}" for job in failed)
        return Ended(code, tuple(session.results), tuple(session.doubts), tuple(names))
    except asyncio.CancelledError:
        if not ended_by:
            raise
        return ended_by[0]
    finally:
        await session.end()
        await controller.end()


def _signals() -> list[signal.Signals]:
    """Cancel the present task by signals; return the list of those that came.

    An exception in a handler would leave the loop in the middle of a step.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    came: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if not came and task is not None:
            task.cancel()
        came.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # To outlive the terminal is what nohup is for.
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    return came


async def _script(folder: Path, script: Path, arguments: Sequence[str]) -> int:
    """Run the script; return its exit code."""
    own = environment()
    # Users without root have nodes elsewhere only.
    rights = () if os.geteuid() == 0 else ("--user", "--map-current-user")
    path = f"{folder / 'bin'}{os.pathsep}{own['PATH']}"
    modules = [str(Path(library.__path__[0])), *own.get("PYTHONPATH", "").split(os.pathsep)]
    own |= {
        "PATH": path,
        "PYTHONPATH": os.pathsep.join(filter(None, modules)),
        _client.SOCKET: str(folder / SOCKET),
    }
    python = ["python3"] if script.suffix == ".py" and not os.access(script, os.X_OK) else []
    shell = [] if python or os.access(script, os.X_OK) else ["bash"]
    try:
        process = await asyncio.create_subprocess_exec(
            *(*_WITH_US, *rights, "--", *python, *shell, str(script), *arguments),
            cwd=script.parent,
            env=own,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(f"{script}: cannot be started: {error.strerror}") from error
    try:
        return await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
