"""Nodes on which nothing happens: they note what would be done to them, in its order.

What a testbed, a device or a meter does to them is done by the same code as otherwise.
"""

from __future__ import annotations

import io
import shlex
from contextlib import contextmanager
from subprocess import CompletedProcess
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Self

from tailtrim.laboratory.nodes.node import Clocks, Frames, Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import Facts
    from tailtrim.tool import Tool

#: Kinds of actions on a node, in the words of the documentation.
Kind = Literal[
    "reserve",
    "copy agent",
    "boot",
    "ports",
    "set up",
    "container",
    "tune",
    "start",
    "warm up",
    "power",
]
#: Stands for the folder of a run on its node.
FOLDER = "$RUN"
_AGENT = "tailtrim-agent"
#: Questions by their first words, and answers that let what follows go on.
_ANSWERS = (
    (("readlink", "-f"), "/usr/bin/program"),
    (("snort", "-V"), "Version 3"),
    (("tuned-adm", "active"), "Current active profile: BEFORE"),
    (("sh", "-c", 'cat "$1"'), "(BEFORE)"),
    ((_AGENT, "ping"), '{"streams": [{"probes": {"answered": 5}}]}'),
)
_EVENTS = '{"event": "ready"}\n{"event": "result"}\n'


class Step(NamedTuple):
    """Something that would be done."""

    do: Kind
    what: str


def _in_a_line(word: str) -> str:
    lines = [line.partition("  #")[0].strip() for line in word.splitlines()]
    return "; ".join(filter(None, lines)) if len(lines) > 1 else word


def _quoted(word: str) -> str:
    return word if word.startswith(FOLDER) else shlex.quote(word)


class UnknownCpu(int):
    """The number of a CPU that only the host knows."""

    def __str__(self) -> str:
        """Return what stands for it."""
        return "CPU"


class DryNode(Node):
    """A node that notes what would be done to it.

    Args:
        role: what it is for.
        facts: what it is.
        cpus: those that an experiment may use for it.
        spared: those for what only waits.
        macs: addresses of its ports, as far as they are known.

    """

    #: In commands that name a node by its process.
    pid: Any

    def __init__(
        self,
        role: str,
        facts: Facts,
        *,
        cpus: Sequence[int] = (),
        spared: Sequence[int] = (),
        macs: Mapping[str, str] | None = None,
    ) -> None:
        """Note nothing yet."""
        super().__init__(role, facts, cpus=cpus, spared=spared)
        self._macs = macs or {}
        self.pid = role
        #: Actions noted so far.
        self.steps: list[Step] = []
        #: Kind of the settings that are changed for now.
        self.kind: Kind = "set up"

    def __exit__(self, *_: object) -> None:
        """Leave it."""

    @property
    def agent(self) -> str:
        """The agent's name."""
        return _AGENT

    def note(self, do: Kind, *command: str) -> None:
        """Note a command, or a text."""
        words = [_in_a_line(word) for word in command]
        told = words[0] if len(words) == 1 else " ".join(map(_quoted, words))
        self.steps.append(Step(do, told))

    def call(self, *command: str, given: str | None = None) -> CompletedProcess[str]:
        """Note a command; a question is answered instead."""
        del given
        answer = self._answer(command)
        if answer is None:
            self._note_call(command)
        return CompletedProcess(command, 0, answer or "", "")

    def _answer(self, command: tuple[str, ...]) -> str | None:
        if command[:2] == ("ip", "-json"):
            mac = self._macs.get(command[-1], "")
            return f'[{{"ifindex": 1, "address": "{mac}", "flags": ["LOWER_UP"]}}]'
        known = (text for words, text in _ANSWERS if command[: len(words)] == words)
        return next(known, None)

    def _note_call(self, command: tuple[str, ...]) -> None:
        match command:
            case ("sh", ("-c" | "-ec"), script):
                for line in script.strip().splitlines():
                    # A setting that the kernel may lack.
                    self.note(self.kind, line.rpartition(" || ")[2])
            case _:
                self.note(self.kind, *command)

    def exists(self, path: str) -> bool:
        """Take everything for there."""
        del path
        return True

    def find(self, tool: Tool) -> str:
        """Take every tool for there."""
        return tool.program

    def open(
        self,
        *command: str,
        output: int | IO[str],
        errors: int | IO[str],
        environment: Mapping[str, str] | None = None,
        tidies_up: bool = False,
    ) -> DryProcess:
        """Note a program, but not the shells that only wait to tidy up."""
        del output, errors, environment
        if not (tidies_up and command[0] == "sh"):
            self.note("start", *command)
        return DryProcess()

    def start(
        self,
        *command: str,
        log: str,
        environment: Mapping[str, str] | None = None,
        around: Sequence[str] = (),
    ) -> DryProcess:
        """Note a program."""
        del log, environment, around
        self.note("start", *command)
        return DryProcess()

    def path(self, name: str = "") -> str:
        """Return where a file of a run would be."""
        return f"{FOLDER}/{name}"

    def put(self, name: str, text: str) -> str:
        """Note a file."""
        del text
        self.note("set up", f"write {self.path(name)}")
        return self.path(name)

    def get(self, name: str) -> Path | None:
        """Return nothing: nothing was left."""
        del name
        return None

    def clocks(self) -> Clocks:
        """Return the same time always."""
        return 0.0, 0.0

    def frames(self, port: str) -> Frames:
        """Refuse: no frame passes."""
        raise NotImplementedError(port)

    @contextmanager
    def attach_xdp(self, port: str, program: bytes) -> Iterator[None]:
        """Note a program of the kernel."""
        del program
        self.note("set up", f"attach an XDP program to {port}")
        yield


class DryProcess:
    """A process, or a program, that was not started; of the agent's it says the same."""

    pid = 0
    alive = True

    def __init__(self) -> None:
        """Have what it would print."""
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = io.StringIO(_EVENTS)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it."""

    def poll(self) -> int | None:
        """Say that it runs."""
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Say that it ended well."""
        del timeout
        return 0

    def send_signal(self, sig: int) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Do nothing."""

    def last_words(self) -> str:
        """Return nothing."""
        return ""
