"""The result for people: a page, figures for papers, a table for terminals.

::

    runs = [tailtrim.RunDirectory("results/hw"), tailtrim.RunDirectory("results/vm")]
    tailtrim.publishing.report.write(runs, "report")

:mod:`tailtrim.publishing.report.terminal.run_text` prints the same numbers in a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import PicturesError, ReportError
from tailtrim.publishing.report import write_files

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.analysis.slo import Objective
    from tailtrim.results import RunDirectory
    from tailtrim.results.experiments import RecordedExperiment

__all__ = [
    "PicturesError",
    "ReportError",
    "names_of",
    "values_of_experiment",
    "write",
    "write_experiment",
]


def write(
    runs: Sequence[RunDirectory],
    out: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    objectives: Sequence[Objective] = (),
    pdf: bool = False,
) -> list[Path]:
    """Write the report of one or more runs.

    ``out`` gets ``report.html``, one page that needs nothing else, and ``figures/`` with each
    figure as SVG, and its values as CSV. Files of an earlier report are replaced, others
    stay. The same runs and names give the same bytes. Nothing is written before everything is
    drawn.

    Args:
        runs: the runs in the order in which they are to appear.
        out: the directory, made when missing.
        names: what to call each run; by default :func:`names_of`.
        objectives: limits to draw in the figures and to hold the runs against.
        pdf: draw each figure as PDF, too, which takes about as long as all else.

    Returns:
        The files written, the page first.

    Raises:
        ReportError: there is no run, or there are not as many names as runs.
        PicturesError: a package for pages and figures is not installed.
        RunDirectoryError: a run directory lacks a table, or it is damaged.
        OutputError: ``out`` cannot be written.

    """
    formats = write_files.formats(pdf=pdf)
    write_files.require_pictures(formats)
    from tailtrim.publishing.report import report_files  # noqa: PLC0415 - brings pages and figures

    names = names_of(runs) if names is None else names
    contents = report_files.of_runs(runs, names, objectives, formats)
    return report_files.write(contents, out)


def write_experiment(
    experiment: RecordedExperiment,
    out: str | os.PathLike[str],
    *,
    objectives: Sequence[Objective] = (),
    pdf: bool = False,
) -> list[Path]:
    """Write the report of an experiment: its complete runs, and what became of the others.

    The same as :func:`write` otherwise.

    Raises:
        ReportError: no run is complete.
        PicturesError: a package for pages and figures is not installed.
        RunDirectoryError: a run directory lacks a table, or it is damaged.
        OutputError: ``out`` cannot be written.

    """
    formats = write_files.formats(pdf=pdf)
    write_files.require_pictures(formats)
    from tailtrim.publishing.report import report_files  # noqa: PLC0415 - brings pages and figures

    if not experiment.complete:
        raise ReportError(f"{experiment.path}: no run of the experiment is complete")
    contents = report_files.of_experiment(experiment, objectives, formats)
    return report_files.write(contents, out)


def values_of_experiment(experiment: RecordedExperiment) -> dict[str, bytes]:
    """Return the values of the figures that :func:`write_experiment` draws, without drawing them.

    Each is a CSV, by its path in the folder of the report; none where no run is complete.

    Raises:
        PicturesError: a package for pages and figures is not installed.
        RunDirectoryError: a run directory lacks a table, or it is damaged.

    """
    write_files.require_pictures()
    from tailtrim.publishing.report import report_files  # noqa: PLC0415 - brings pages and figures

    if not experiment.complete:
        return {}
    return report_files.csv_files(report_files.of_experiment(experiment))


def names_of(runs: Sequence[RunDirectory]) -> list[str]:
    """Return the directories' own names, or their paths where names are not enough."""
    names = [run.name for run in runs]
    return [
        name if names.count(name) == 1 else str(run.path)
        for run, name in zip(runs, names, strict=True)
    ]
