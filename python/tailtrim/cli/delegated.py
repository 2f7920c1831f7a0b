"""Commands of the agent: ``tailtrim audit``, ``tune``, ``generate`` and others."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence


def delegate(name: str, arguments: Sequence[str]) -> int:
    """Run a command of the agent and return its exit code, or become the agent."""
    if name == "ping":
        from tailtrim.cli import ping  # noqa: PLC0415 - the others do without

        return ping.command(arguments)
    return become_agent(name, arguments)


class Candidate(NamedTuple):
    """Completion of a word, as typer reads it."""

    value: str
    help: str | None
    type: str = "plain"


#: Options of the package, which the agent does not have.
_OF_PING = (
    Candidate("--out", "Write run directories to this directory"),
    Candidate("--assert", "What has to hold for each target"),
    Candidate("--junit", "Write what --assert found as JUnit XML"),
)


def candidates(name: str, arguments: Sequence[str], incomplete: str) -> list[Candidate]:
    """Return the agent's completions of the last word of a command line."""
    from tailtrim.laboratory.nodes.agent import program  # noqa: PLC0415 - the table of commands needs none

    try:
        told = subprocess.run(  # noqa: S603 - the agent, no shell
            [program(), "--", "tailtrim", name, *arguments, incomplete],
            check=True,
            # For this shell it prints a line each: the word, a tab, and its help.
            env={**os.environ, "COMPLETE": "fish"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except (HostError, OSError, subprocess.CalledProcessError):
        # A shell that completes has no place for errors.
        return []
    found = [
        Candidate(word, about or None)
        for word, _, about in (line.partition("\t") for line in told.stdout.splitlines())
    ]
    if name == "ping":
        found += [one for one in _OF_PING if one.value.startswith(incomplete)]
    return found


def become_agent(name: str, arguments: Sequence[str]) -> NoReturn:
    """Become the agent, with its output and its exit code.

    Raises:
        HostError: there is no agent, or it cannot be started.

    """
    from tailtrim.laboratory.nodes.agent import program  # noqa: PLC0415 - the table of commands needs none

    path = program()
    sys.stdout.flush()
    try:
        # By its first argument it knows how it was called, and says so in help and examples.
        os.execv(path, ["tailtrim", name, *arguments])  # noqa: S606 - the agent, no shell
    except OSError as error:
        raise HostError(str(error)) from error
