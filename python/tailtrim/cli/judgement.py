"""Objectives held against runs: a line for each, a JUnit report, an exit code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim.cli.console import say
from tailtrim.errors import ExitCode, OutputError
from tailtrim.report import units
from tailtrim.slo import (
    PROMISES,
    Decision,
    Objective,
    Verdict,
    junit,
    objectives,
    promised,
    verdicts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tailtrim.slo import Measured

#: Instead of objectives: the promises that there are.
LIST = "list"


def read(texts: Sequence[str], report: Path | None) -> list[Objective]:
    """Read the objectives of a command line.

    Raises:
        ValueError: they are wrong, or there is a place for their report and none of them.

    """
    if report is not None and not texts:
        raise ValueError("--junit: expected --assert, whose results it reports")
    return [objective for text in texts for objective in objectives(text)]


def promises() -> list[str]:
    """Return a line for each promise: name, deadline, share and source."""
    wide = max(map(len, PROMISES))
    return [
        f"{one.name:{wide}}  {float(1 - one.share) * 100:.8g} % within"
        f" {units.time(one.deadline_ns)}"
        + (f", survival time {units.time(one.survival_ns)}" if one.survival_ns else "")
        + f". {one.source}"
        for one in PROMISES.values()
    ]


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers where several are the same.

    >>> numbered(["a", "b", "a"])
    ['a #1', 'b', 'a #2']

    """
    return [
        name if names.count(name) == 1 else f"{name} #{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


def judged(runs: Iterable[Measured], found: Sequence[Objective], report: Path | None) -> ExitCode:
    """Print what the runs say of the objectives; return the exit code.

    Raises:
        OutputError: the report cannot be written.

    """
    listed = list(runs)
    single = [one for one in found if one.promise is None]
    of_runs = _of_each(listed, single) if single else {}
    together = promised(listed, found)
    named = {name or "all runs": of_group for name, of_group in together}
    of_runs |= dict(zip(numbered_beside(of_runs, named), named.values(), strict=True))
    for name, of_run in of_runs.items():
        for verdict in of_run:
            where = f"{units.printable(name)}: " if len(of_runs) > 1 else ""
            say(f"{where}{verdict.word}: {told(verdict)}", err=True)
    if len(together) > 1:
        _tell_whole([of_group for _, of_group in together])
    try:
        if report is not None:
            report.write_text(junit(of_runs), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{report}: cannot be written: {error.strerror}") from error
    if not of_runs:
        say("not decided: there is no run that the objectives are for", err=True)
        return ExitCode.UNDECIDED
    decisions = {verdict.decision for of_run in of_runs.values() for verdict in of_run}
    if Decision.FAILED in decisions:
        return ExitCode.NEGATIVE
    return ExitCode.UNDECIDED if Decision.UNDECIDED in decisions else ExitCode.SUCCESS


def _of_each(listed: Sequence[Measured], found: Sequence[Objective]) -> dict[str, list[Verdict]]:
    names = numbered([one.name for one in listed])
    return {name: verdicts(one.summary, found) for name, one in zip(names, listed, strict=True)}


def numbered_beside(taken: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the names of groups, told apart from runs of the same name.

    >>> numbered_beside(["run"], ["run", "other"])
    ['run (all runs)', 'other']

    """
    known = set(taken)
    return [f"{name} (all runs)" if name in known else name for name in names]


def _tell_whole(of_groups: Sequence[Sequence[Verdict]]) -> None:
    """Say of each promise whether all combinations keep it."""
    for of_one in zip(*of_groups, strict=True):
        decisions = [verdict.decision for verdict in of_one]
        worst = next(
            (one for one in (Decision.FAILED, Decision.UNDECIDED) if one in decisions),
            Decision.PASSED,
        )
        count = decisions.count(worst)
        word = of_one[decisions.index(worst)].word
        say(
            f"all combinations: {word}: {of_one[0].objective} ({count} of {len(of_one)} {word})",
            err=True,
        )


def told(verdict: Verdict) -> str:
    """Say in a line what is known of an objective.

    >>> from tailtrim.slo import Decision, Verdict, objectives
    >>> (objective,) = objectives("max < 2ms")
    >>> told(Verdict(objective, Decision.PASSED, 1e6, 1e6, 1e6, "the largest of this run"))
    'max < 2ms: 1.0 ms (the largest of this run)'

    """
    value = verdict.value
    if value is None or verdict.objective.promise is not None:
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
        return f"{units.about(value)} %"
    return units.time(round(value))
