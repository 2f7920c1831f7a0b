"""Runs programs in turns, refuses the times of wrong answers, and keeps the rows of the record."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import machine
from captures import warm
from measure import Measurement, ProgramError, measure
from record import MEASURED, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from cluster import Server
    from integers import Integers

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
DATA = Path(os.environ.get("TAILTRIM_DATA", ROOT.parent / "shared" / "data")) / "low-latency"


@dataclass(frozen=True, slots=True)
class Program:
    """Something to time: how it is run, and how its answer is read from its standard output."""

    name: str
    command: list[str]
    answer: Callable[[str], tuple[Integers, str]]
    inputs: tuple[Path, ...] = ()
    server: int | None = None
    note: str = ""


@dataclass(slots=True)
class Session:
    """The paths and cores of this run, and the rows so far."""

    agent: Path
    synthesize: Path
    scratch: Path
    cores: list[int]
    groups: tuple[str, ...]
    server: Server | None = None
    server_problem: str = ""
    rows: list[Row] = field(default_factory=list)
    #: The right answers by pairs: they do not depend on the size of the frames.
    truths: dict[int, Integers] = field(default_factory=dict)
    #: Programs that have run: their own files are in memory.
    started: set[str] = field(default_factory=set)

    @property
    def core(self) -> list[int]:
        """The core of single-core measurements: the last, as the first serves most interrupts."""
        return self.cores[-1:]

    @property
    def others(self) -> list[int]:
        """The cores of everything that is not measured there."""
        return self.cores[:-1] or self.cores

    def neutral(self, text: str) -> str:
        """Take this machine's folders out of a text."""
        folders = {ROOT: "", self.agent.parent: "", self.scratch: "SCRATCH", DATA: "DATA"}
        return machine.neutral(text, folders)

    def skip(self, case: str, pairs: int, program: str, reason: str) -> None:
        """Record that a program was not measured."""
        say(f"{case}: {program}: {reason}")
        self.rows.append(Row(case, pairs, program, 0, self.neutral(reason), None, "", ""))

    def compare(  # noqa: PLR0913 - keyword-only
        self,
        case: str,
        programs: Sequence[Program],
        *,
        pairs: int,
        repeat: int,
        folder: Path,
        expected: Integers | None = None,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Time the programs in turns; all have to give the same answer.

        Args:
            case: name of the data.
            programs: the first is tailtrim-agent.
            pairs: pairs in the data.
            repeat: turns.
            folder: working directory of the programs.
            expected: the right answer; that of the first program if it is not known.
            around: entered before, left after each process.

        """
        dropped: dict[str, str] = {}
        rows: list[Row] = []
        for turn in range(1, repeat + 1):
            for program in programs:
                if program.name in dropped:
                    continue
                if programs[0].name in dropped:
                    dropped[program.name] = f"skipped: {programs[0].name} gave no right answer"
                    continue
                try:
                    if program.inputs and program.name not in self.started:
                        self._run(program, folder)
                        self.started.add(program.name)
                    with around():
                        taken, integers, note = self._run(program, folder)
                except ProgramError as error:
                    dropped[program.name] = f"failed: {error}"
                    say(f"{case}: {program.name}: {dropped[program.name]}")
                    continue
                expected = expected or integers
                if difference := expected.difference(integers):
                    dropped[program.name] = f"refused: {difference}"
                    say(f"{case}: {program.name}: {dropped[program.name]}")
                    continue
                say(f"{case}: {program.name}, {turn} of {repeat}: {taken.wall_s:.3f} s")
                rows.append(self._row(case, pairs, program, turn, taken, note))
        self.rows += [row for row in rows if row.program not in dropped]
        for name, status in dropped.items():
            self.rows.append(Row(case, pairs, name, 0, self.neutral(status), None, "", ""))

    def _run(self, program: Program, folder: Path) -> tuple[Measurement, Integers, str]:
        warm(program.inputs)
        output = self.scratch / "stdout"
        taken = measure(program.command, output, folder=folder, server=program.server)
        return taken, *program.answer(output.read_text())

    def _row(  # noqa: PLR0913, PLR0917 - what a row has
        self, case: str, pairs: int, program: Program, turn: int, taken: Measurement, note: str
    ) -> Row:
        command = self.neutral(shlex.join(map(str, program.command)))
        notes = "; ".join(filter(None, (program.note, note)))
        return Row(case, pairs, program.name, turn, MEASURED, taken, notes, command)


def say(text: str) -> None:
    """Print a progress line."""
    print(text, file=sys.stderr, flush=True)
