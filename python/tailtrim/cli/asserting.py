"""What ``--assert`` and ``--junit`` of several commands have in common."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli.console import NEGATIVE, UNDECIDED, USAGE, complain, say
from tailtrim.errors import OutputError
from tailtrim.report import units
from tailtrim.slo import Decision, Objective, Verdict, junit, objectives, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.rundir import Summary

Asserts = Annotated[
    list[str] | None,
    typer.Option(
        "--assert",
        metavar="OBJECTIVES",
        help="Objectives, such as 'p99.9 < 50us, loss < 0.01%'; also max, mean and 'adjusted"
        " p99' (lost packets count as infinitely late). Exit code 1: failed; 5: not decided, the"
        " confidence interval contains the limit.",
    ),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write the results of --assert as JUnit XML."),
]


def asked(texts: Sequence[str] | None, report: Path | None) -> list[Objective]:
    """Read the objectives; the command ends where they are wrong."""
    try:
        found = [objective for text in texts or () for objective in objectives(text)]
    except ValueError as error:
        complain(error)
        raise typer.Exit(USAGE) from error
    if report is not None and not found:
        complain(ValueError("--junit: expected --assert, whose results it reports"))
        raise typer.Exit(USAGE)
    return found


def quantiles(found: Sequence[Objective]) -> list[str]:
    """Return the quantiles that an analysis has to give for these objectives."""
    return [objective.p for objective in found if objective.p is not None]


def judge(runs: Mapping[str, Summary], found: Sequence[Objective], report: Path | None) -> None:
    """Print what the runs say of the objectives; the command ends unless all passed."""
    if not found:
        return
    of_runs = {name: verdicts(summary, found) for name, summary in runs.items()}
    for name, of_run in of_runs.items():
        for verdict in of_run:
            where = f"{units.printable(name)}: " if len(of_runs) > 1 else ""
            say(f"{where}{verdict.decision}: {told(verdict)}", err=True)
    try:
        if report is not None:
            report.write_text(junit(of_runs), encoding="utf-8")
    except OSError as error:
        complain(OutputError(f"{report}: cannot be written: {error.strerror}"))
        raise typer.Exit(USAGE) from error
    decisions = {verdict.decision for of_run in of_runs.values() for verdict in of_run}
    if Decision.FAILED in decisions:
        raise typer.Exit(NEGATIVE)
    if Decision.UNDECIDED in decisions:
        raise typer.Exit(UNDECIDED)


def told(verdict: Verdict) -> str:
    """Say in a line what is known of an objective.

    >>> from tailtrim.slo import Decision, Verdict, objectives
    >>> (objective,) = objectives("max < 2ms")
    >>> told(Verdict(objective, Decision.PASSED, 1e6, 1e6, 1e6, "the largest of this run"))
    'max < 2ms: 1.0 ms (the largest of this run)'

    """
    value = verdict.value
    if value is None:
        return f"{verdict.objective}: {verdict.why}"
    shown = _shown(verdict, value)
    if verdict.low != verdict.high:
        low = "open" if verdict.low is None else _shown(verdict, verdict.low)
        high = "open" if verdict.high is None else _shown(verdict, verdict.high)
        shown += f", between {low} and {high}"
    return f"{verdict.objective}: {shown} ({verdict.why})"


def _shown(verdict: Verdict, value: float) -> str:
    if math.isinf(value):
        return "\N{INFINITY}"
    if verdict.objective.what == "loss":
        return f"{value * 100:.2g} %"
    return units.time(round(value))
