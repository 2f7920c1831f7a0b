"""Commands that run on a node: each has a process here that waits for it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes import local_host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.ssh.session import SshSession

_END_S = 5.0


async def spawn(
    words: Sequence[str], output: BinaryIO, errors: BinaryIO
) -> asyncio.subprocess.Process:
    """Start a process here that stands for one on a node."""
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env=local_host.environment(),
        start_new_session=True,
    )


class NodeCommand:
    """A command that runs on a node."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Wrap the process that waits for it here."""
        self._process = process

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        """End it and what it started: by SIGTERM, and after 5 s by SIGKILL."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.running:
                return
            with suppress(ProcessLookupError, RunError):
                await self._signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _END_S)
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _signal(self, number: signal.Signals) -> None:
        """Send a signal to its session, which began with it: the leader is nsenter's child."""
        os.killpg(child(self._process.pid), number)


class RemoteCommand(NodeCommand):
    """A command that runs in a session.

    Args:
        session: with the host or the guest.
        pid_file: the file there that holds the number of its process.
        process: the one here that waits for its end.
        signalling: a script of a shell that sends a signal; it is given the file and the name.

    """

    def __init__(
        self,
        session: SshSession,
        pid_file: str,
        process: asyncio.subprocess.Process,
        signalling: str,
    ) -> None:
        """Wrap the process that waits for it here."""
        super().__init__(process)
        self._session, self._pid_file, self._signalling = session, pid_file, signalling

    async def _signal(self, number: signal.Signals) -> None:
        name = number.name.removeprefix("SIG")
        words = ("sh", "-c", self._signalling, "sh", self._pid_file, name)
        await asyncio.to_thread(self._session.call, *words)


def child(pid: int) -> int:
    """Return the process that a process here has started.

    Raises:
        RunError: it has ended before.

    """
    until_s = time.monotonic() + 1
    while time.monotonic() < until_s:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        except OSError:
            break
        if children:
            return int(children[0])
        time.sleep(0.001)
    raise RunError(f"process {pid} ended before it began")
