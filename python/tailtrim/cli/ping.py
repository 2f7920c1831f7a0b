"""``tailtrim ping``: the agent's verb, with a run directory on request."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.cli.console import IMPOSSIBLE, USAGE, complain, say
from tailtrim.cli.delegated import become_agent
from tailtrim.errors import HostError, TailtrimError
from tailtrim.nodes import agent

if TYPE_CHECKING:
    from collections.abc import Sequence

_DONE, _NEGATIVE = 0, 1


def command(arguments: Sequence[str]) -> int:
    """Become the agent; or run it, keep every round trip, and return the exit code."""
    try:
        out, rest = _out(arguments)
    except ValueError as error:
        complain(error)
        return USAGE
    if out is None:
        return become_agent("ping", rest)
    with tempfile.TemporaryDirectory(prefix="tailtrim-ping-") as folder:
        return _run(Path(folder), out, rest)


def _run(folder: Path, out: Path, arguments: list[str]) -> int:
    try:
        program = agent.program()
    except HostError as error:
        complain(error)
        return IMPOSSIBLE
    sys.stdout.flush()
    # Ctrl-C is for the agent, which ends with its result.
    process = subprocess.Popen([program, "ping", *arguments, "--log", str(folder)])
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            continue
    if code not in {_DONE, _NEGATIVE} or not (folder / "ping.json").exists():
        return code
    from tailtrim.roundtrip.log import leave_runs  # noqa: PLC0415 - not for the agent alone

    try:
        places = leave_runs(folder, out)
    except TailtrimError as error:
        complain(error)
        return USAGE
    names = " ".join(map(str, places))
    say(f"\nRun directory: {out}\nReport:        tailtrim report {names}", err=True)
    return code


def _out(arguments: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Take ``--out DIR`` from the arguments."""
    out, rest = None, []
    words = iter(arguments)
    for word in words:
        if word in {"--out", "-o"}:
            value = next(words, None)
            if value is None:
                raise ValueError(f"{word}: expected a directory after it")
            out = Path(value)
        elif word.startswith("--out="):
            out = Path(word.removeprefix("--out="))
        else:
            rest.append(word)
    return out, rest
