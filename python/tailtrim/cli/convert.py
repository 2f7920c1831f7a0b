"""``tailtrim convert``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailtrim import export
from tailtrim.cli.console import USAGE, complain, say, warn
from tailtrim.errors import TailtrimError
from tailtrim.rundir import RunDirectory

EXAMPLES = """\b
Examples:
  tailtrim convert results/hw --to hgrm
  tailtrim convert results/hw --to csv --out plots
  tailtrim convert results/ping --to hpct
  tailtrim convert results/hw --to openmetrics
The papers' plot scripts look for CSV names without "-filtered": analyse with --trim 0 for them.
"""

TargetFormat = StrEnum("TargetFormat", {name.upper(): name for name in export.FORMATS})  # type: ignore[misc]


def command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run directory, made by analyze --out.")
    ],
    *,
    to: Annotated[
        TargetFormat,
        typer.Option(
            metavar="FORMAT",
            help="hgrm: HdrHistogram percentile text; hlog: HdrHistogram interval log; csv: the "
            "papers' percentiles, hist, worst, jitter and rates; hpct: HiPerConTracer's results, "
            "of what tailtrim ping measured; openmetrics: for Prometheus, version 1.0 and, with a "
            "native histogram, 2.0.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Where to put the files. Default: the run directory."
        ),
    ] = None,
) -> None:
    """Convert a run directory into other tools' formats."""
    try:
        conversion = export.convert(RunDirectory(directory), to.value, out or directory)
    except TailtrimError as error:
        complain(error)
        raise typer.Exit(USAGE) from error
    for notice in conversion.notices:
        warn(notice)
    for file in conversion.files:
        say(file)
