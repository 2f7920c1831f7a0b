"""Objectives of the command line: read from ``--assert``, and held against runs.

Most calls have none: :mod:`tailtrim.analysis.slo` is loaded by those that have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tailtrim import units
from tailtrim.cli.console import say
from tailtrim.errors import ExitCode, OutputError
from tailtrim.publishing.report import wording, write_files
from tailtrim.results.drafts import refuse_capture

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tailtrim.analysis.slo import JudgedRun, Objective, Verdict
    from tailtrim.results.experiments import RecordedExperiment


def read_asserts(
    texts: Sequence[str] | None, report: Path | None, other: Path | None = None
) -> list[Objective]:
    """Read objectives.

    Raises:
        ValueError: they are wrong, or there is a place for their report and none of them.
        OutputError: the report, or another file that is written, would replace a capture, or the
            folder of the other file is missing.

    """
    for place in filter(None, (report, other)):
        refuse_capture(place)
    if other is not None and not other.parent.is_dir():
        raise OutputError(f"{other}: cannot be written: the folder {other.parent} does not exist")
    return read(texts or (), report)


def read(texts: Sequence[str], report: Path | None) -> list[Objective]:
    """Read objectives.

    Raises:
        ValueError: they are wrong, or there is a place for their report and none of them.

    """
    if report is not None and not texts:
        raise ValueError("--junit: expected --assert, whose results it reports")
    if not texts:
        return []
    from tailtrim.analysis.slo import objectives  # noqa: PLC0415 - see above

    return [objective for text in texts for objective in objectives(text)]


def promises() -> list[str]:
    """Return a line for each promise: name, deadline, share and source."""
    from tailtrim.analysis.slo import PROMISES  # noqa: PLC0415 - see above

    wide = max(map(len, PROMISES))
    return [
        f"{one.name:{wide}}  {float(1 - one.share) * 100:.8g} % within"
        f" {units.time(one.deadline_ns)}"
        + (f", survival time {units.time(one.survival_ns)}" if one.survival_ns else "")
        + f". {one.source}"
        for one in PROMISES.values()
    ]


def needed_quantiles(found: Sequence[Objective]) -> list[str]:
    """Return the quantiles that objectives need of an analysis."""
    return [objective.p for objective in found if objective.p is not None]


def need_samples(found: Sequence[Objective]) -> bool:
    """Tell whether objectives need the order of packets, which an analysis can leave out."""
    return any(objective.promise is not None for objective in found)


def runs_to_judge(experiment: RecordedExperiment) -> list[JudgedRun]:
    """Return the complete runs but the wire, by combination, for objectives."""
    from tailtrim.analysis.slo import JudgedRun  # noqa: PLC0415 - see above

    return [
        JudgedRun(run.name, at, run.outcome.label, bool(run.outcome.invalid))
        for run, at in experiment.complete
        if not run.outcome.floor
    ]


def judge(runs: Iterable[JudgedRun], found: Sequence[Objective], report: Path | None) -> None:
    """Print verdicts on objectives; the command ends unless all passed.

    Raises:
        OutputError: the report cannot be written.

    """
    if found and (code := judged(runs, found, report)):
        raise typer.Exit(code)


def judged(runs: Iterable[JudgedRun], found: Sequence[Objective], report: Path | None) -> ExitCode:
    """Print verdicts on objectives; return the exit code.

    Raises:
        OutputError: the report cannot be written.

    """
    from tailtrim.analysis.slo import Decision, junit, promised  # noqa: PLC0415 - see above

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
    if report is not None:
        write_files.write(report, junit(of_runs).encode())
    if not of_runs:
        say("not decided: there is no run that the objectives are for", err=True)
        return ExitCode.UNDECIDED
    decisions = {verdict.decision for of_run in of_runs.values() for verdict in of_run}
    if Decision.FAILED in decisions:
        return ExitCode.NEGATIVE
    return ExitCode.UNDECIDED if Decision.UNDECIDED in decisions else ExitCode.SUCCESS


def _of_each(listed: Sequence[JudgedRun], found: Sequence[Objective]) -> dict[str, list[Verdict]]:
    from tailtrim.analysis.slo import of_run  # noqa: PLC0415 - see above

    names = numbered([one.name for one in listed])
    return {name: of_run(one, found) for name, one in zip(names, listed, strict=True)}


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers where several are the same.

    >>> numbered(["a", "b", "a"])
    ['a #1', 'b', 'a #2']

    """
    return [
        name if names.count(name) == 1 else f"{name} #{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


def numbered_beside(taken: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the names of groups, different from those of runs.

    >>> numbered_beside(["run"], ["run", "other"])
    ['run (all runs)', 'other']

    """
    known = set(taken)
    return [f"{name} (all runs)" if name in known else name for name in names]


def _tell_whole(of_groups: Sequence[Sequence[Verdict]]) -> None:
    """Print the verdict of all combinations on each promise."""
    from tailtrim.analysis.slo import Decision  # noqa: PLC0415 - see above

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
    """Return objective, value, interval and reason in a line.

    >>> from tailtrim.analysis.slo import Decision, Verdict, objectives
    >>> (objective,) = objectives("max < 2ms")
    >>> told(Verdict(objective, Decision.PASSED, 1e6, 1e6, 1e6, "the largest of this run"))
    'max < 2ms: 1.00 ms, the largest of this run'

    """
    objective, value = verdict.objective, verdict.value
    if value is None or objective.promise is not None:
        return f"{objective}: {verdict.why}"
    shown = wording.with_interval(
        objective, value, verdict.low, verdict.high, verdict.resolution_ps
    )
    return f"{objective}: {shown}, {verdict.why}"
