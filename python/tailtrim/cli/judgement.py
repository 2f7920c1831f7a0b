"""Objectives held against runs: a line for each, a JUnit report, an exit code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim.cli.console import NEGATIVE, UNDECIDED, USAGE, complain, say
from tailtrim.errors import OutputError
from tailtrim.report import units
from tailtrim.slo import Decision, Objective, Verdict, junit, objectives, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tailtrim.rundir import Summary

DONE = 0


def read(texts: Sequence[str], report: Path | None) -> list[Objective]:
    """Read the objectives of a command line.

    Raises:
        ValueError: they are wrong, or there is a place for their report and none of them.

    """
    if report is not None and not texts:
        raise ValueError("--junit: expected --assert, whose results it reports")
    return [objective for text in texts for objective in objectives(text)]


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers where several are the same.

    >>> numbered(["a", "b", "a"])
    ['a #1', 'b', 'a #2']

    """
    return [
        name if names.count(name) == 1 else f"{name} #{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


def judged(
    runs: Iterable[tuple[str, Summary]], found: Sequence[Objective], report: Path | None
) -> int:
    """Print what the runs, each with its name, say of the objectives; return the exit code."""
    listed = list(runs)
    names = numbered([name for name, _ in listed])
    summaries = [summary for _, summary in listed]
    of_runs = {
        name: verdicts(summary, found) for name, summary in zip(names, summaries, strict=True)
    }
    for name, of_run in of_runs.items():
        for verdict in of_run:
            where = f"{units.printable(name)}: " if len(of_runs) > 1 else ""
            say(f"{where}{verdict.decision}: {told(verdict)}", err=True)
    try:
        if report is not None:
            report.write_text(junit(of_runs), encoding="utf-8")
    except OSError as error:
        complain(OutputError(f"{report}: cannot be written: {error.strerror}"))
        return USAGE
    if not of_runs:
        say("not decided: there is no run that the objectives are for", err=True)
        return UNDECIDED
    decisions = {verdict.decision for of_run in of_runs.values() for verdict in of_run}
    if Decision.FAILED in decisions:
        return NEGATIVE
    return UNDECIDED if Decision.UNDECIDED in decisions else DONE


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
