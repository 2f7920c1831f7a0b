"""``tailtrim import pos``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailtrim import units
from tailtrim.cli import options
from tailtrim.cli.console import Progress, say
from tailtrim.cli.terminal import Terminal
from tailtrim.errors import ExitCode
from tailtrim.publishing.report.terminal.run_text import render
from tailtrim.results.experiments import recorded
from tailtrim_pos.results import import_pos

EXAMPLES = """\b
Examples:
  tailtrim import pos 2020-10-07_23-22-39_868017 --out results/published   # then report, compare
  tailtrim import pos RESULTS --out results/published --repetition repeat --keep-captures
"""


def command(  # noqa: PLR0913 - one parameter an option
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Folder of results of the controller pos.")
    ],
    *,
    out: Annotated[Path, options.out("Experiment to write.")],
    skip: options.Skip = "1s",
    repetition: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE",
            help="The loop variable that counts repetitions. Default: repetition or repeat, if"
            " there is one.",
        ),
    ] = None,
    keep_captures: Annotated[
        bool, typer.Option("--keep-captures", help="Copy the captures into the runs.")
    ] = False,
    json: Annotated[bool, options.json("Print the summaries as JSON.")] = False,
) -> None:
    """Import results of pos as an experiment."""
    with Progress("importing") as progress:
        imported = import_pos(
            results,
            out,
            skip_s=skip,
            repetition=repetition,
            keep_captures=keep_captures,
            progress=progress,
        )
    for notice in imported.notices:
        say(f"warning: {units.printable(notice)}", err=True)
    experiment = recorded(out)
    summaries = [directory.summary for _, directory in experiment.complete]
    if json:
        for summary in summaries:
            say(summary.text)
    else:
        if summaries:
            Terminal().print(render(summaries, [run.name for run, _ in experiment.complete]))
        for one in experiment.runs:
            if one.problem:
                where = f"{one.outcome.run} ({one.outcome.label})"
                say(f"{units.printable(f'{where}: {one.problem}')}")
        say(f"Experiment: {out}")
    if not summaries:
        raise typer.Exit(ExitCode.NEGATIVE)
