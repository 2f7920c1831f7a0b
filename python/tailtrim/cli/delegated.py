"""Commands that are the agent's: ``tailtrim audit``, ``tune``, ``generate`` and others."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from tailtrim.cli.console import IMPOSSIBLE, complain
from tailtrim.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence


def delegate(name: str, arguments: Sequence[str]) -> int:
    """Run a command of the agent's and return its exit code; or become the agent."""
    if name == "ping":
        from tailtrim.cli import ping  # noqa: PLC0415 - the others do without

        return ping.command(arguments)
    return become_agent(name, arguments)


def become_agent(name: str, arguments: Sequence[str]) -> int:
    """Become the agent, with its output and its exit code; return only where there is none."""
    from tailtrim.nodes.agent import program  # noqa: PLC0415 - the table of commands needs none

    try:
        path = program()
        sys.stdout.flush()
        # By its first argument it knows how it was called, and says so in help and examples.
        os.execv(path, ["tailtrim", name, *arguments])  # noqa: S606 - the agent, no shell
    except (HostError, OSError) as error:
        complain(error)
    return IMPOSSIBLE
