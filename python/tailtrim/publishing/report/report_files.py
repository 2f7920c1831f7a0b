"""Write the files of a report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.errors import ReportError
from tailtrim.publishing.report.capacity_wording import CapacitySection, capacity_of, warm_ups
from tailtrim.publishing.report.figures import distributions, drawing, percentiles, timelines
from tailtrim.publishing.report.figures.limit_lines import with_bounds, with_objectives
from tailtrim.publishing.report.figures.looks import distinct, looks_of
from tailtrim.publishing.report.figures.sweep import sweeps
from tailtrim.publishing.report.figures.throughput import throughput
from tailtrim.publishing.report.inputs.run_tables import ReportedRun
from tailtrim.publishing.report.pages import cause_section, run_page
from tailtrim.publishing.report.write_files import store
from tailtrim.results.experiments import floor_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tailtrim.analysis.slo import Objective
    from tailtrim.publishing.report.figures.figure import Figure
    from tailtrim.publishing.report.figures.looks import Look
    from tailtrim.results import RunDirectory
    from tailtrim.results.experiments import RecordedExperiment

_SERIES = (
    throughput,
    percentiles.percentiles,
    timelines.minutes,
    timelines.worst,
    distributions.histogram,
    distributions.cumulative,
    distributions.gaps,
    timelines.seconds,
    timelines.bursts,
)
# Files that an earlier report may have left.
_OURS = re.compile(
    r"(hdr(-above-floor)?|worst|histogram|cdf|gaps|minutes|seconds|burst|sweep-.+"
    r"|(late|without|packet)-\d+(-\d+)?)\.(svg|pdf|csv)"
)


def series(runs: Sequence[ReportedRun], warm_ups: Sequence[str] = ()) -> list[Figure]:
    """Return the figures that the runs have data for; those against a loop variable first.

    Runs that only warm up have no place in these.
    """
    counted = [
        run for run in runs if run.recorded is None or run.recorded.outcome.run not in warm_ups
    ]
    found = (prepare(runs) for prepare in _SERIES)
    return [*sweeps(counted), *(figure for figure in found if figure is not None)]


def of_runs(
    directories: Sequence[RunDirectory],
    names: Sequence[str],
    objectives: Sequence[Objective] = (),
    formats: Sequence[str] = ("svg",),
) -> run_page.Contents:
    """Return the contents of the report of runs.

    Raises:
        ReportError: there is no run, or there are not as many names as runs.

    """
    if not directories:
        raise ReportError("there is no run to report on")
    if len(directories) != len(names):
        raise ReportError(f"{len(names)} names were given for {len(directories)} runs")
    runs = [
        ReportedRun(index, units.printable(name), directory)
        for index, (directory, name) in enumerate(zip(directories, names, strict=True))
    ]
    return _contents(runs, distinct(len(runs)), None, objectives, formats)


def of_experiment(
    experiment: RecordedExperiment,
    objectives: Sequence[Objective] = (),
    formats: Sequence[str] = (),
) -> run_page.Contents:
    """Return the contents of the report of an experiment."""
    looks = looks_of([run for run, _ in experiment.complete])
    return _contents(runs_of(experiment), looks, experiment, objectives, formats)


def runs_of(experiment: RecordedExperiment) -> list[ReportedRun]:
    """Return the complete runs of an experiment, each with its floor."""
    complete = experiment.complete
    recorded = [run for run, _ in complete]
    runs = [
        ReportedRun(index, units.printable(run.name), directory, run)
        for index, (run, directory) in enumerate(complete)
    ]
    for run in runs:
        floor = run.recorded and floor_of(run.recorded, recorded)
        run.floor = None if floor is None else runs[recorded.index(floor)]
    return runs


def _contents(
    runs: Sequence[ReportedRun],
    looks: Sequence[Look],
    experiment: RecordedExperiment | None,
    objectives: Sequence[Objective],
    formats: Sequence[str],
) -> run_page.Contents:
    capacity = capacity_of(experiment)
    figures = series(runs, warm_ups(capacity))
    drawn = [with_bounds(with_objectives(figure, objectives), capacity) for figure in figures]
    sections = cause_section.sections(runs)
    found = CapacitySection.of(capacity)
    return run_page.Contents(runs, looks, drawn, sections, experiment, objectives, found, formats)


def write(report: run_page.Contents, out: str | os.PathLike[str]) -> list[Path]:
    """Write the page and the figures, and return their paths."""
    names = [run.name for run in report.runs]
    files = {"report.html": run_page.render(report)}
    files |= drawing.files(report.all_figures, report.formats, names, report.looks)
    return store(Path(out), files, outdated=_OURS.fullmatch)


def csv_files(report: run_page.Contents) -> dict[str, bytes]:
    """Return the CSV of each figure, by its path in the folder of the report."""
    return drawing.files(report.all_figures, (), [run.name for run in report.runs])
