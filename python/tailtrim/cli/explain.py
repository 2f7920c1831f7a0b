"""``tailtrim explain``."""

from __future__ import annotations

import json as encoding
from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli.console import USAGE, complain, say
from tailtrim.errors import TailtrimError
from tailtrim.report import units

EXAMPLES = """\b
Examples:
  tailtrim explain results/hw
  tailtrim explain results/hw --interrupts irq.csv
  tailtrim explain results/hw --json | jq .periodic
"""


def command(
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A run directory, written by analyze --out or run."),
    ],
    *,
    interrupts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Counters of interrupts during the run (columns separated by ';', one of them"
            " timestamp_us). Repeatable: host, virtual machine.",
        ),
    ] = None,
    cpu: Annotated[
        int | None,
        typer.Option(
            metavar="CPU",
            min=0,
            help="The CPU that serves the packets, if the trace covers several.",
        ),
    ] = None,
    late_from: Annotated[
        str,
        typer.Option(metavar="P", help="Packets above this quantile are explained one by one."),
    ] = "0.999",
    json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Attribute late packets to causes: periodic ones, and with a trace those of each packet."""
    from tailtrim.explain import explain  # noqa: PLC0415 - other commands start without
    from tailtrim.report.terminal.explanation_text import lines  # noqa: PLC0415

    try:
        found = explain(directory, interrupts=interrupts or (), cpu=cpu, late_from=late_from)
    except (TailtrimError, ValueError) as error:
        complain(error)
        raise typer.Exit(USAGE) from error
    if json:
        say(encoding.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        for line in lines(found):
            say(line)
    for warning in found.warnings:
        say(f"warning: {units.printable(warning)}", err=True)
