"""``pos commands``."""

import shlex
from typing import Any

from ._asking import ask, flags, opened


def launch(
    node: Any,
    command: Any = None,
    infile: Any = None,
    blocking: Any = True,
    queued: Any = False,
    name: Any = None,
    loop: Any = False,
    loop_from: Any = 0,
    loop_to: Any = None,
    loop_only: Any = None,
) -> Any:
    """Launch a command or a script; return its ID and its outcome."""
    options = flags(
        non_blocking=not blocking,
        queued=queued,
        name=name,
        loop=loop,
        loop_from=loop_from or None,
        loop_to=loop_to,
        loop_only=None if loop_only is None else str(loop_only),
    )
    if infile is not None:
        files = opened(infile, "unknown")
        words, more = ["--infile", "-"], [""][1:]
    else:
        files, words = None, []
        more = shlex.split(command) if isinstance(command, str) else list(command or [])
    return tuple(ask("commands", "launch", *words, *options, "--", node, *more, files=files))


def await_id(command_id: Any) -> Any:
    """Wait for a command; return its outcome."""
    return ask("commands", "await", command_id)


def abort(command_id: Any) -> Any:
    """End a command."""
    return ask("commands", "abort", command_id)


def list_all(
    node: Any = None, filter_s: Any = None, all_users: Any = False, json: Any = False
) -> Any:
    """Return the commands, of a node or of all."""
    options = flags(filter=filter_s, all_users=all_users, json=json)
    return ask("commands", "list", *([] if node is None else [node]), *options), None


def show(command: Any) -> Any:
    """Return a command."""
    return ask("commands", "show", command), None
