"""``tailtrim import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli import options
from tailtrim.cli.console import Progress, say
from tailtrim.errors import ExitCode
from tailtrim.report import units
from tailtrim.rundir import Summary

TRIM = "1s"
EXAMPLES = """\b
Examples:
  tailtrim import Ping-ICMP-#1-192.0.2.1-20261121T090830.364329-000000001.hpct.xz --out results/hpct
  irtt client -o irtt.json.gz reflector.example && tailtrim import irtt.json.gz --out results/irtt
  tailtrim import pos 2020-10-07_23-22-39_868017 --out results/published   # then report, compare
  tailtrim import pos RESULTS --out results/published --repetition repeat --keep-captures
"""


def command(  # noqa: PLR0913 - one parameter an option
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Ping results of HiPerConTracer (version 1 or 2) or the JSON of irtt; also .xz, "
            ".bz2, .gz, .zst. All of the same kind. Or pos RESULTS: a folder of results of the"
            " testbed controller pos.",
        ),
    ],
    *,
    out: Annotated[
        Path,
        options.out(
            "Run directory to write; with several pairs of hosts, a folder with one for each;"
            " with pos, the experiment."
        ),
    ],
    level: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            help="Time stamps of HiPerConTracer to use: application, software or hardware.",
        ),
    ] = "application",
    trim: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="With pos: ignore the latencies of this time after the first match, of captures.",
        ),
    ] = TRIM,
    repetition: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE",
            help="With pos: the loop variable that counts repetitions. Default: repetition or"
            " repeat, if there is one.",
        ),
    ] = None,
    keep_captures: Annotated[
        bool,
        typer.Option("--keep-captures", help="With pos: copy the captures into the runs."),
    ] = False,
    json: Annotated[bool, options.json("Print the summaries as JSON.")] = False,
) -> None:
    """Import results of other tools: round trips as runs, results of pos as an experiment."""
    if files[0] == Path("pos"):
        _import_pos(files[1:], out, trim, repetition, keep_captures=keep_captures, json=json)
        return
    if trim != TRIM or repetition is not None or keep_captures:
        told = "--trim, --repetition and --keep-captures are of tailtrim import pos RESULTS"
        raise ValueError(told)
    from tailtrim.roundtrip import imported  # noqa: PLC0415 - takes longer than most commands

    runs = imported.leave_runs(files, out, level=level)
    summaries = [summary for _, _, summary in runs]
    if json:
        for summary in summaries:
            say(summary.text)
    else:
        _print(summaries, [name for name, _, _ in runs])
        for _, place, _ in runs:
            say(f"Run directory: {place}")
    if not any(summary.samples for summary in summaries):
        raise typer.Exit(ExitCode.NEGATIVE)


def _import_pos(  # noqa: PLR0913 - what the command was given
    places: list[Path],
    out: Path,
    trim: str,
    repetition: str | None,
    *,
    keep_captures: bool,
    json: bool,
) -> None:
    """Make an experiment of pos results, and print its runs."""
    from tailtrim.experiment import recorded  # noqa: PLC0415 - round trips do without
    from tailtrim.imports import import_pos  # noqa: PLC0415

    if len(places) != 1:
        raise ValueError(f"{len(places)} folders of results, expected tailtrim import pos RESULTS")
    with Progress("importing") as progress:
        imported = import_pos(
            places[0],
            out,
            trim_s=trim,
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
            _print(summaries, [run.name for run, _ in experiment.complete])
        for one in experiment.runs:
            if one.problem:
                where = f"{one.outcome.run} ({one.outcome.label})"
                say(f"{units.printable(f'{where}: {one.problem}')}")
        say(f"Experiment: {out}")
    if not summaries:
        raise typer.Exit(ExitCode.NEGATIVE)


def _print(summaries: list[Summary], names: list[str]) -> None:
    from tailtrim.cli.terminal import Terminal  # noqa: PLC0415 - not for --json
    from tailtrim.report.terminal.run_table import render  # noqa: PLC0415

    Terminal().print(render(summaries, names))
