"""A program in a namespace, together with everything that it starts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.nodes.node import Node

#: How long a program may take to end when it is told to.
_END_S = 3.0
_LAST_LINES = 5

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


class Contained:
    """A program in a node whose processes are this host's, for as long as the context lasts.

    It runs in a PID namespace of its own: leaving the context, and the end of this process, also by
    kill -9, end it with everything that it started. Its output goes to a file.
    """

    def __init__(
        self, node: Node, command: Sequence[str], log: Path, more: Mapping[str, str] | None = None
    ) -> None:
        """Start it.

        Args:
            node: where.
            command: program and arguments.
            log: file for what it prints.
            more: environment variables beside those of this process.

        """
        self._log = log
        with log.open("w", encoding="utf-8") as output:
            # Standard input stays open: testpmd ends with it.
            self._process = node.open(
                *("unshare", "--pid", "--fork", "--kill-child", "--"),
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
        with ExitStack() as stack:
            first = self._first()
            if first is not None:
                stack.callback(os.close, first)
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(first, signal.SIGTERM)
                select.select([first], [], [], _END_S)
            self._process.kill()
            self._process.wait()
            if first is not None:
                select.select([first], [], [], _END_S)
        if self._process.stdin:
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
            text = self._log.read_text("utf-8", "replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " | ".join(lines[-_LAST_LINES:])

    def _first(self) -> int | None:
        """Return process 1 of the PID namespace; ``None`` where it is gone."""
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
            return os.pidfd_open(int(children.split()[0]))
        except (OSError, IndexError):
            return None
