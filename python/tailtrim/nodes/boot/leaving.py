"""Leaving the running system: commands that end the node they run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import HostError, RunError

if TYPE_CHECKING:
    from tailtrim.nodes.node import Shell

#: From here on an exit code is a signal's, or that of ssh for a lost connection.
_NOT_OF_COMMANDS = 128


def has_systemd(node: Shell) -> bool:
    """Return whether systemd runs there."""
    return node.exists("/run/systemd/system")


def leave(node: Shell, *command: str) -> None:
    """Run a command that ends the node's system.

    Raises:
        HostError: it refused.

    """
    try:
        ended = node.call(*command)
    except RunError:
        return  # the connection ended first
    if 0 < ended.returncode < _NOT_OF_COMMANDS:
        told = (ended.stderr or ended.stdout).strip().splitlines()
        problem = told[-1] if told else f"ended with {ended.returncode}"
        raise HostError(f"{node.role}: {' '.join(command)}: {problem}")
