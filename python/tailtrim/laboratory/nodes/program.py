"""A program on a node, together with everything that it starts."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tailtrim.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.node import Node

#: Grace period of a program in s, after which it is killed.
_END_S = 3
_LAST_LINES, _LAST_BYTES = 5, 2_000

# Process 1 of the program's PID namespace: when it ends, the kernel ends all others there. As
# process 1 a program without a handler would not get SIGTERM, so the program is its child. What
# polls must not wait for what happens to run beside it, as the agent does not: the scheduler shares
# the CPU out among sessions first (autogroup), then within one (nice).
_INIT = """
{ echo -20 >/proc/self/autogroup; renice -n -20 -p 1; } >/dev/null 2>&1
exec 3<&0
trap 'kill -TERM "$program" 2>/dev/null' TERM
"$@" <&3 3<&- &
program=$!
# Standard input ends with the process that made this one, also when it died too early for setpriv.
(cat <&3 >/dev/null; kill -KILL "$program") &
exec 3<&-
wait "$program"; code=$?
while kill -0 "$program" 2>/dev/null; do wait "$program"; code=$?; done
exit "$code"
"""

# Process 1 is told to end, and so are all others, by the kernel, when it does not.
_END = """
set -- "$2" $(cat "/proc/$1/task/$1/children")
[ $# = 2 ] || exit 0
gone() { timeout "$1" tail --pid="$2" --sleep-interval=0.02 --follow /dev/null; }
kill -s TERM "$2" && gone "$@" || { kill -s KILL "$2" && gone "$@"; }
"""


class Contained:
    """A program in a node, for as long as the context lasts.

    It runs in a PID namespace of its own: leaving the context, and the end of this process, also by
    kill -9, end it with everything that it started. Its output goes to a file here.
    """

    def __init__(
        self,
        node: Node,
        command: Sequence[str],
        log: Path,
        *,
        more: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
    ) -> None:
        """Start it.

        Args:
            node: where.
            command: program and arguments.
            log: file for what it prints.
            more: environment variables beside those of this process.
            around: what starts it, and process 1 of its namespace.

        """
        self._node, self._log = node, log
        with log.open("w", encoding="utf-8") as output:
            # Standard input stays open: testpmd ends with it.
            self._process = node.open(
                *(*around, "unshare", "--pid", "--fork", "--kill-child", "--"),
                *("sh", "-c", _INIT, "sh", *command),
                output=output,
                errors=subprocess.STDOUT,
                environment=more,
            )

    def __enter__(self) -> Self:
        """Return the program itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        # A node that cannot be reached any more ends it itself.
        with suppress(RunError):
            self._node.call("sh", "-c", _END, "sh", str(self._process.pid), str(_END_S))
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """Return the end of what it printed, in one line."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - _LAST_BYTES, 0))
                text = log.read(_LAST_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-_LAST_LINES:])
