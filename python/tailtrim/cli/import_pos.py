"""``tailtrim import pos``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tailtrim.cli.console import Progress, say
from tailtrim.errors import ExitCode
from tailtrim.report import units

if TYPE_CHECKING:
    from tailtrim.experiment import RecordedRun


def run(  # noqa: PLR0913 - what the command was given
    results: Path,
    out: Path,
    *,
    trim: str,
    repetition: str | None,
    keep_captures: bool,
    json: bool,
) -> None:
    """Make an experiment of pos results, and print its runs.

    Raises:
        ResultsError: there are none.
        OutputError: the experiment cannot be written.
        ValueError: an option makes no sense.

    """
    from tailtrim.experiment import recorded  # noqa: PLC0415 - other commands start without
    from tailtrim.imports import import_pos  # noqa: PLC0415

    with Progress("importing") as progress:
        imported = import_pos(
            results,
            out,
            trim_s=trim,
            repetition=repetition,
            keep_captures=keep_captures,
            progress=progress,
        )
    for notice in imported.notices:
        say(f"warning: {units.printable(notice)}", err=True)
    experiment = recorded(out)
    if json:
        for _, directory in experiment.complete:
            say(directory.summary.text)
    else:
        _print([run for run, _ in experiment.complete])
        for one in experiment.runs:
            if one.problem:
                where = f"{one.outcome.run} ({one.outcome.label})"
                say(f"{units.printable(f'{where}: {one.problem}')}")
        say(f"Experiment: {out}")
    if not experiment.complete:
        raise typer.Exit(ExitCode.NEGATIVE)


def _print(runs: list[RecordedRun]) -> None:
    from tailtrim.cli.terminal import Terminal  # noqa: PLC0415 - not for --json
    from tailtrim.report.terminal.run_table import render  # noqa: PLC0415

    known = [(run.name, run.directory.summary) for run in runs if run.directory is not None]
    if known:
        names, summaries = zip(*known, strict=True)
        Terminal().print(render(list(summaries), list(names)))
