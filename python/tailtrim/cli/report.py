"""``tailtrim report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli.console import USAGE, complain
from tailtrim.errors import TailtrimError
from tailtrim.report import write
from tailtrim.rundir import RunDirectory

EXAMPLES = """\b
Examples:
  tailtrim report results/hw
  tailtrim report results/hw results/vm --name bare-metal --name virtual --out comparison
"""


def command(
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", help="Run directories, made by analyze --out."),
    ],
    *,
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="What to call a run; once for each directory. Default: the directory's name."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where to put the report. Default: report in the run directory, or in the "
            "current one for several.",
        ),
    ] = None,
) -> None:
    """Write a page and figures (SVG, PDF) of one run, or of several in one picture."""
    if out is None:
        out = directories[0] / "report" if len(directories) == 1 else Path("report")
    try:
        runs = [RunDirectory(directory) for directory in directories]
        page, *figures = write(runs, out, names=name)
    except TailtrimError as error:
        complain(error)
        raise typer.Exit(USAGE) from error
    typer.echo(f"Page:    {page}")
    if figures:
        typer.echo(f"Figures: {figures[0].parent} ({len(figures)} files)")
