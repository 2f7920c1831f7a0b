"""``tailtrim import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.catalogue import ELSEWHERE
from tailtrim.cli.console import say, show
from tailtrim.errors import ExitCode, MissingPackageError

EXAMPLES = """\b
Examples:
  tailtrim import Ping-ICMP-#1-192.0.2.1-20261121T090830.364329-000000001.hpct.xz --out results/hpct
  irtt client -o irtt.json.gz reflector.example && tailtrim import irtt.json.gz --out results/irtt
"""


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Ping results of HiPerConTracer (version 1 or 2) or the JSON of irtt; also .xz, "
            ".bz2, .gz, .zst. All of the same kind.",
        ),
    ],
    *,
    out: Annotated[
        Path,
        options.out(
            "Run directory to write; with several pairs of hosts, a folder with one for each."
        ),
    ],
    level: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help="Time stamps of HiPerConTracer to use: application, software or hardware.",
        ),
    ] = "application",
    json: Annotated[bool, options.json("Print the summaries as JSON.")] = False,
) -> None:
    """Import round trips that other tools measured, as run directories."""
    if (name := str(files[0])) in ELSEWHERE and not files[0].exists():
        missing = MissingPackageError(f"import {name} is in the package {ELSEWHERE[name]}")
        missing.add_note(f"pip install {ELSEWHERE[name]}")
        raise missing
    from tailtrim.analysis.roundtrip import imported  # noqa: PLC0415 - takes longer than most commands

    runs = imported.leave_runs(files, out, level=level)
    summaries = [summary for _, _, summary in runs]
    if json:
        for summary in summaries:
            say(summary.text)
    else:
        from tailtrim.publishing.report.terminal.run_text import render  # noqa: PLC0415 - not for --json

        show(render(summaries, [name for name, _, _ in runs]))
        for _, place, _ in runs:
            say(f"Run directory: {place}")
    if not any(summary.samples for summary in summaries):
        raise typer.Exit(ExitCode.NEGATIVE)
