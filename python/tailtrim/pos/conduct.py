"""An experiment of pos from beginning to end: the script, and the nodes that it asks for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.nodes.host import environment
from tailtrim.pos import library
from tailtrim.pos.controller import Controller
from tailtrim.pos.library.poslib import _client
from tailtrim.pos.machines import SOCKET
from tailtrim.pos.session import Local, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tailtrim.pos.allocation import Allocation
    from tailtrim.pos.jobs import RunEnded
    from tailtrim.pos.journal import Journal

# The kernel ends the script with all that it started when this process ends, whatever ends it.
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--")


@dataclass(frozen=True, slots=True)
class Ended:
    """How an experiment ended: the script's exit code, what it left, and doubts about it."""

    code: int
    allocations: tuple[Allocation, ...]
    doubts: tuple[str, ...]
    failed: tuple[str, ...]


def conduct(
    script: Path,
    arguments: Sequence[str],
    journal: Journal,
    settings: Local,
    told: Callable[[RunEnded], None],
) -> Ended:
    """Run the script of an experiment to its end, with a ``pos`` of ours.

    Args:
        script: it runs in its folder, as it would on the controller of a testbed.
        arguments: what is behind it.
        journal: what is remembered of it.
        settings: of the nodes and the runs.
        told: is called when a run has ended.

    Raises:
        HostError: this host cannot.

    """
    folder = Path(tempfile.mkdtemp(prefix="tailtrim-pos-"))
    # Removes the sockets also where this process is killed: its standard input ends then.
    keeper = subprocess.Popen(
        ["sh", "-c", 'cat >/dev/null; rm -rf "$1"', "sh", str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        return asyncio.run(
            _conduct(folder, (script.absolute(), arguments), journal, settings, told)
        )
    finally:
        keeper.communicate()


async def _conduct(
    folder: Path,
    started: tuple[Path, Sequence[str]],
    journal: Journal,
    settings: Local,
    told: Callable[[RunEnded], None],
) -> Ended:
    session = Session(folder, journal, settings, told)
    controller = Controller(folder, session)
    try:
        await controller.listen()
        code = await _script(folder, *started)
        await session.finished()
        failed = [job for job in session.jobs.all.values() if job.failed]
        names = (f"{job.machine.name}: {job.launch.name}: {job.last_lines()}" for job in failed)
        return Ended(code, tuple(session.results), tuple(session.doubts), tuple(names))
    finally:
        await session.end()
        await controller.end()


async def _script(folder: Path, script: Path, arguments: Sequence[str]) -> int:
    """Run the script; return its exit code."""
    own = environment()
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
            *(*_WITH_US, *python, *shell, str(script), *arguments),
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
