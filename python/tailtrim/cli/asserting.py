"""What ``--assert`` and ``--junit`` of several commands have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tailtrim.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tailtrim.experiment.recorded import RecordedExperiment
    from tailtrim.slo import Measured, Objective


def asked(texts: Sequence[str] | None, report: Path | None) -> list[Objective]:
    """Read the objectives.

    Raises:
        ValueError: they are wrong.

    """
    if not texts and report is None:
        return []
    from tailtrim.cli.judgement import (  # noqa: PLC0415 - most calls have no objectives
        LIST,
        promises,
        read,
    )

    if texts and LIST in texts:
        for line in promises():
            say(line)
        raise typer.Exit
    return read(texts or (), report)


def quantiles(found: Sequence[Objective]) -> list[str]:
    """Return the quantiles that an analysis has to give for these objectives."""
    return [objective.p for objective in found if objective.p is not None]


def need_samples(found: Sequence[Objective]) -> bool:
    """Whether an objective is about the order of the packets, which an analysis can leave out."""
    return any(objective.promise is not None for objective in found)


def of_experiment(experiment: RecordedExperiment) -> list[Measured]:
    """Return what objectives are for: the complete runs but the wire, by combination."""
    from tailtrim.slo import Measured  # noqa: PLC0415 - most calls have no objectives

    return [
        Measured(run.name, at, run.outcome.label, bool(run.outcome.invalid))
        for run, at in experiment.complete
        if not run.outcome.floor
    ]


def judge(runs: Iterable[Measured], found: Sequence[Objective], report: Path | None) -> None:
    """Print what the runs say of the objectives.

    The command ends unless all passed.
    """
    if not found:
        return
    from tailtrim.cli.judgement import judged  # noqa: PLC0415 - as above

    if code := judged(runs, found, report):
        raise typer.Exit(code)
