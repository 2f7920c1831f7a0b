"""``pos commands``."""

import shlex

from ._asking import ask, flags, opened


def launch(
    node,
    command=None,
    infile=None,
    blocking=True,
    queued=False,
    name=None,
    loop=False,
    loop_from=0,
    loop_to=None,
    loop_only=None,
):
    """Launch a command or a script; return its ID and what became of it."""
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
        words, more = ["--infile", "-"], []
    else:
        files, words = None, []
        more = shlex.split(command) if isinstance(command, str) else list(command or [])
    return tuple(ask("commands", "launch", *words, *options, "--", node, *more, files=files))


def await_id(command_id):
    """Wait for a command; return what became of it."""
    return ask("commands", "await", command_id)


def abort(command_id):
    """End a command."""
    return ask("commands", "abort", command_id)


def list_all(node=None, filter_s=None, all_users=False, json=False):
    """Return the commands, of a node or of all."""
    options = flags(filter=filter_s, all_users=all_users, json=json)
    return ask("commands", "list", *([] if node is None else [node]), *options), None


def show(command):
    """Return a command."""
    return ask("commands", "show", command), None
