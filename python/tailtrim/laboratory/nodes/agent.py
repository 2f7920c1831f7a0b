"""The agent: on this host, and on a node for as long as it is needed there."""

from __future__ import annotations

import json
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import HostError, PlanError, RunError
from tailtrim.laboratory.nodes.holder import end
from tailtrim.laboratory.nodes.node import allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tailtrim.laboratory.nodes.node import Node

#: The agent's exit codes, see ``tailtrim-agent --help``.
_USAGE, _IMPOSSIBLE = 2, 3

#: Time limits of an agent: to open its ports, and to end when it is told to.
_READY_S, _END_S = 10.0, 10.0
_AUDIT_S = 30.0
#: An agent may take this many times as long as its traffic, and a few seconds more.
_GRACE = 3.0
_MORE_S = 10.0


def program() -> str:
    """Return the path of the agent on this host: beside this Python, or on the PATH.

    Raises:
        HostError: there is none.

    """
    beside = Path(sys.executable).with_name("tailtrim-agent")
    found = str(beside) if beside.is_file() else shutil.which("tailtrim-agent")
    if found is None:
        raise HostError("tailtrim-agent is not installed, expected it beside python or on the PATH")
    return found


def boot_line_findings(line: str, kernel: str, cpus: int) -> list[dict[str, Any]]:
    """Return what is wrong with a boot line, before a kernel boots it.

    Args:
        line: the boot line.
        kernel: what ``uname -r`` will say.
        cpus: number of CPUs of the machine.

    Returns:
        Findings as ``tailtrim audit --boot-line --json`` has them.

    Raises:
        HostError: there is no agent, or it cannot read the line.

    """
    version = re.match(r"\d+\.\d+", kernel)
    command = [program(), "audit", f"--boot-line={line}", "--cpus", f"0-{cpus - 1}", "--json"]
    command += ["--kernel", version.group()] if version else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=_AUDIT_S, check=False)
    try:
        return list(json.loads(done.stdout)["findings"])
    except (ValueError, KeyError) as error:
        raise HostError(f"tailtrim-agent audit --boot-line: {done.stderr.strip()}") from error


class Agent:
    """A verb of the agent that runs for a while.

    Used as a context manager: leaving ends the process, however that happens. The process ends with
    this one, too: its standard input is held open by this process alone.
    """

    def __init__(  # noqa: PLR0913 - each is named
        self,
        node: Node,
        verb: str,
        *arguments: str,
        cpus: Sequence[int] = (),
        tidies_up: bool = False,
        more_s: float = 0,
        program: Sequence[str] = (),
    ) -> None:
        """Start a verb.

        Args:
            node: where.
            verb: what.
            arguments: those of the verb.
            cpus: where it may run; by default where this process may.
            tidies_up: the verb has to take back what it did, whatever ends this process.
            more_s: how much longer than usual it may take to begin, and to end.
            program: another program with verbs like the agent's, and what starts it; its name last.

        """
        self._node = node
        self._told = f"{program[-1] if program else 'tailtrim-agent'} {verb}"
        self._more_s = more_s
        self._stack = ExitStack()
        self._errors = self._stack.enter_context(node.log(verb))
        self._process = node.open(
            *(allowed(cpus) if cpus else ()),
            *(*(program or (node.agent,)), verb, *arguments, "--until-eof"),
            output=subprocess.PIPE,
            errors=self._errors,
            tidies_up=tidies_up,
        )
        self._tidies_up = tidies_up
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        #: Packets that the last progress told of.
        self.packets = 0
        #: Matches of the last second, of a capture that is analysed while it comes.
        self.live: dict[str, Any] | None = None
        #: The worst packets so far, of a capture that is kept by minute.
        self.around: list[dict[str, Any]] = []
        threading.Thread(target=self._read, args=[self._process.stdout], daemon=True).start()

    def _read(self, lines: Iterable[str] | None) -> None:
        for line in lines or ():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            kind = event.get("event")
            if kind == "progress":
                self.packets = int(event["packets"])
            elif kind == "live":
                self.live = event
            elif kind == "around":
                self.around = event["around"]
            else:
                self._events.put(event)
        self._events.put(None)

    def __enter__(self) -> Self:
        """Return the agent itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        # One that takes back what it did would leave that behind if it was killed.
        end(self._process, _END_S if self._tidies_up else 0)
        self._stack.close()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def ready(self) -> None:
        """Wait until the next packet would be handled.

        Raises:
            HostError: this host cannot do it.
            RunError: the agent did not get that far.

        """
        if self._next("ready", _READY_S + self._more_s) is None:
            raise self._failure()

    def result(self, timeout_s: float) -> dict[str, Any]:
        """Wait for the result.

        Raises:
            RunError: there is none, or not in time.

        """
        result = self._next("result", timeout_s)
        if result is None:
            raise self._failure()
        return result

    def finished(self, timeout_s: float) -> dict[str, Any]:
        """Wait for the end, and return the result.

        Raises:
            RunError: there is none, or not in time, or the process was killed.

        """
        result = self.result(timeout_s)
        if self._process.wait(timeout_s) != 0:
            raise self._failure()
        return result

    def poll(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def ended(self, within_s: float) -> bool:
        """Wait for the end of the process, at most so long; whether it has ended."""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        # One that has ended is found when it is looked at next.
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def stop(self) -> dict[str, Any]:
        """Tell the verb to end, and return its result."""
        self._process.send_signal(signal.SIGINT)
        return self.result(_END_S + self._more_s)

    def end_input(self, within_s: float) -> dict[str, Any]:
        """Tell the verb to end after what it was told, and return its result.

        A signal would overtake what is in its standard input.
        """
        self._close_input()
        return self.result(within_s)

    def _close_input(self) -> None:
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _next(self, kind: str, timeout_s: float) -> dict[str, Any] | None:
        """Return the next event of a kind; ``None`` when the process ended without."""
        until_s = time.monotonic() + timeout_s
        while True:
            try:
                event = self._events.get(timeout=max(until_s - time.monotonic(), 0))
            except queue.Empty:
                message = f"{self._node.named}: {self._told}: no {kind} within {timeout_s:g} s"
                raise RunError(message) from None
            if event is None or event.get("event") == kind:
                return event

    def _failure(self) -> HostError | PlanError | RunError:
        code = self._process.wait(_END_S)
        self._node.check()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        # Libraries may have said something before.
        lines.sort(key=lambda line: not line.startswith("error: "))
        told = [line.removeprefix("error: ") for line in lines if line.strip()]
        message = f"{self._told}: {told[0] if told else f'ended with {code}'}"
        if code == _IMPOSSIBLE:
            return HostError(message)
        return PlanError(message) if code == _USAGE else RunError(message)


def result_in_time(  # noqa: PLR0913 - each is named
    agent: Agent,
    name: str,
    look: Callable[[], None],
    *,
    duration_s: float,
    waits_s: float = 0.0,
    every_s: float,
) -> tuple[dict[str, Any], list[str]]:
    """Return what an agent counted, and why it is in doubt if the agent had to be stopped.

    Args:
        agent: it ends by itself if nothing is overloaded.
        name: its name.
        look: called until then; an exception that it raises ends the wait.
        duration_s: how long it sends.
        waits_s: how long it waits for replies afterwards.
        every_s: time between two calls.

    """
    limit_s = duration_s * _GRACE + waits_s + _MORE_S
    until_s = time.monotonic() + limit_s
    ended = not agent.poll()
    while not ended and time.monotonic() < until_s:
        look()
        ended = agent.ended(every_s)
    if agent.poll():
        # Overloaded: the count of packets sent says by how much.
        return agent.stop(), [f"the {name} did not end in time and was stopped after {limit_s:g} s"]
    return agent.finished(5), []
