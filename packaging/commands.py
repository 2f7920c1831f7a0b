"""The commands of the programs, as their help tells them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.cli.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Verbs of the agent that are not commands of ``tailtrim``, or have other options there.
_OF_AGENT_ALONE = ("analyze", "disturb", "node")


@dataclass(frozen=True, slots=True)
class Command:
    """A program with the words of a command, and what it does in one line."""

    program: str
    words: tuple[str, ...]
    summary: str

    @property
    def name(self) -> str:
        """The words of the command line."""
        return " ".join((self.program, *self.words))

    def help(self, columns: int = 96) -> str:
        """Return the text of ``--help``."""
        environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1"}
        done = subprocess.run(
            [self.path, *self.words, "--help"],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        return done.stdout.rstrip()

    @property
    def path(self) -> Path | str:
        """The program in the folder of python, or the one on the PATH."""
        beside = Path(sys.executable).parent / self.program
        return beside if beside.exists() else self.program

    def verbs(self) -> Iterator[Command]:
        """Yield the commands that its help lists below it."""
        listed = self.help().partition("\nCommands:\n")[2].partition("\n\n")[0]
        for name, summary in re.findall(r"^  (\w[\w-]*) +(.*)$", listed, re.MULTILINE):
            if name != "help":
                yield Command(self.program, (*self.words, name), summary)


def of_group(group: str) -> Iterator[Command]:
    """Yield the commands of one group of ``tailtrim --help``, each with those below it."""
    for name, entry in CATALOGUE.items():
        if entry.group == group:
            command = Command("tailtrim", (name,), entry.summary)
            yield command
            yield from command.verbs()


def of_agent() -> Iterator[Command]:
    """Yield the agent itself, and what only it has."""
    agent = Command("tailtrim-agent", (), "The part of tailtrim that runs on the hosts")
    yield agent
    yield from (verb for verb in agent.verbs() if verb.words[0] in _OF_AGENT_ALONE)


def every() -> Iterator[Command]:
    """Yield all commands."""
    yield Command(
        "tailtrim", (), "Measure, explain and reduce the tail latency of packet processing"
    )
    for group in dict.fromkeys(entry.group for entry in CATALOGUE.values()):
        yield from of_group(group)
    yield from of_agent()
