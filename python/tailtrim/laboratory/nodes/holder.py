"""Child processes that hold something until their standard input ends: :class:`Holder`."""

from __future__ import annotations

import select
import subprocess
import tempfile
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Protocol

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.nodes.node import Process

#: Time for a first line; a process that says nothing by then hangs.
_READY_S = 15.0


class Starting(Protocol):
    """Starts a process whose standard input this process holds, such as ``Node.open``."""

    def __call__(self, *, output: int | IO[str], errors: int | IO[str]) -> Process:
        """Return the process."""


class Holder:
    """A child process that holds something, says so in a line, and ends with its standard input.

    Args:
        start: starts it.
        what: the thing that it holds, for the error.
        grace_s: seconds to end in after its standard input, before it is killed; 0: it is killed at
            once; ``None``: it takes back what it did, and is never killed.
        ready: whether its first line says that it holds the thing.

    Raises:
        HostError: it does not say so; has what it wrote to standard error.

    """

    def __init__(
        self,
        start: Starting,
        what: str,
        *,
        grace_s: float | None,
        ready: Callable[[str], bool] = bool,
    ) -> None:
        """Start it, and wait for its line."""
        self._grace_s, self._errors = grace_s, errors_file()
        self._ended: tuple[int, str] | None = None
        self.process = start(output=subprocess.PIPE, errors=self._errors)
        #: Its first line.
        self.line = first_line(self.process)
        if not ready(self.line):
            raise HostError(f"{what}: {self.end()[1]}")

    def end(self) -> tuple[int, str]:
        """End it, if it runs; return its exit code, and its standard error in a line."""
        if self._ended is None:
            code = end(self.process, self._grace_s)
            with self._errors:
                self._errors.seek(0)
                told = "; ".join(self._errors.read().strip().splitlines())
            self._ended = code, told or "no answer"
        return self._ended


def end(process: Process, grace_s: float | None) -> int:
    """End a process by the end of its standard input, and kill it after ``grace_s``."""
    if process.stdin:
        with suppress(OSError):
            process.stdin.close()
    try:
        code = process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if process.stdout:
        process.stdout.close()
    return code


def first_line(process: Process, within_s: float = _READY_S) -> str:
    """Return the first line of a process that says when it is ready; empty if it does not."""
    output = process.stdout
    if output is None or not select.select([output], [], [], within_s)[0]:
        return ""
    return output.readline().strip()


def errors_file() -> IO[str]:
    """Return a file for standard error: a pipe that is not emptied would stop its writer."""
    return tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
