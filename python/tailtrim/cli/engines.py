"""``tailtrim engines``."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import say_json, tell
from tailtrim.errors import CaptureError, ExitCode

if TYPE_CHECKING:
    from tailtrim.analysis.engines.checking import Worker

EXAMPLES = """\b
Examples:
  tailtrim engines check --server sc://cluster:15002
  tailtrim engines check /shared/ingress.pcap /shared/egress.pcap --server sc://cluster:15002

Exit code: 0 if all workers that answered can match captures, otherwise 3.
"""


class Action(StrEnum):
    """Actions on an engine."""

    CHECK = "check"


def command(
    action: Annotated[  # noqa: ARG001 - there is one
        Action,
        typer.Argument(
            metavar="ACTION", help="check: send the matcher to the workers, and have each try it."
        ),
    ],
    captures: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="CAPTURE", help="Captures that all workers must find at the same paths."
        ),
    ] = None,
    *,
    server: Annotated[
        str, typer.Option(metavar="WHERE", help="Where Spark Connect is: sc://HOST:PORT.")
    ],
    json: Annotated[bool, options.json("Print the workers as JSON.")] = False,
) -> None:
    """Check that the workers of a Spark cluster can match captures.

    The session sends the matcher of this version to them; nothing stays there. Of a cluster with
    more than 64 executors, not each may be asked.
    """
    from tailtrim.analysis import engines  # noqa: PLC0415 - the help does without

    with engines.connect("spark", engines.EngineOptions(server=server)) as spark:
        from tailtrim.analysis.engines.checking import can_match, check  # noqa: PLC0415

        try:
            workers = check(spark, captures or ())
        except OSError as error:
            raise CaptureError(f"{error.filename}: {error.strerror}") from error
    if json:
        say_json({"workers": [asdict(worker) for worker in workers]})
    else:
        for worker in workers:
            _tell_worker(worker)
    if not can_match(workers):
        raise typer.Exit(ExitCode.IMPOSSIBLE)


def _tell_worker(worker: Worker) -> None:
    kind = "fault" if worker.problems else "ok   "
    installed = f", tailtrim {worker.tailtrim} installed" if worker.tailtrim else ""
    line = f"{worker.host}: Python {worker.python}, pyarrow {worker.pyarrow}{installed}"
    if worker.matcher is not None:
        line += f"; the matcher of tailtrim {worker.matcher} runs"
    tell(f"{kind}  {line}")
    for problem in worker.problems:
        tell(f"       {problem}")
