"""A process on a node whose standard streams are this process's."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from tailtrim.errors import RunError

if TYPE_CHECKING:
    import subprocess

    from tailtrim.nodes.ssh.session import SshSession

_START_S = 10.0
_LOOK_S = 0.02
_END_S = 2.0


class RemoteProcess:
    """A process on a node: the client of SSH stands for it here.

    Args:
        session: with the node.
        client: the client.
        pid_file: where the node has its number.

    """

    def __init__(self, session: SshSession, client: subprocess.Popen[str], pid_file: str) -> None:
        """Take the client that was started."""
        self._session, self._client, self._pid_file = session, client, pid_file
        self._pid: int | None = None

    @property
    def pid(self) -> int:
        """Its number on the node.

        Raises:
            RunError: it was not started.

        """
        until_s = time.monotonic() + _START_S
        while self._pid is None:
            ended = self._session.call("cat", self._pid_file)
            if ended.stdout.strip().isdecimal():
                self._pid = int(ended.stdout)
            elif self._client.poll() is not None or time.monotonic() > until_s:
                raise RunError(f"{self._session.role}: a program was not started")
            else:
                time.sleep(_LOOK_S)
        return self._pid

    @property
    def stdin(self) -> IO[str] | None:
        """Its standard input."""
        return self._client.stdin

    @property
    def stdout(self) -> IO[str] | None:
        """Its standard output, if it was asked for."""
        return self._client.stdout

    def poll(self) -> int | None:
        """Return its exit code; ``None`` while it runs."""
        return self._client.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code."""
        return self._client.wait(timeout)

    def send_signal(self, sig: int) -> None:
        """Send it a signal."""
        if self.poll() is None:
            name = signal.Signals(sig).name.removeprefix("SIG")
            self._session.call("kill", "-s", name, str(self.pid))

    def kill(self) -> None:
        """End it at once; where the connection is lost, the node does."""
        with suppress(RunError):
            self.send_signal(signal.SIGKILL)
            with suppress(TimeoutError):
                self._until_end()
        self._client.kill()

    def _until_end(self) -> None:
        until_s = time.monotonic() + _END_S
        while self._client.poll() is None and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
