"""Write the files of a report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError, ReportError
from tailtrim.report import units
from tailtrim.report.figures import distributions, drawing, percentiles, timelines
from tailtrim.report.inputs.run_tables import ReportedRun
from tailtrim.report.pages import cause_section, run_page

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from tailtrim.experiment import RecordedExperiment
    from tailtrim.report.figures.figure import Figure
    from tailtrim.rundir import RunDirectory

_SERIES = (
    percentiles.percentiles,
    timelines.worst,
    distributions.histogram,
    distributions.cumulative,
    distributions.gaps,
    timelines.seconds,
    timelines.bursts,
)
_KEYS = ("hdr", "worst", "histogram", "cdf", "gaps", "seconds", "burst")
_FOLDER = "figures"
# Figures of single runs: their names end in the run's number.
_OF_A_RUN = re.compile(r"(late|without|packet)-\d+(-\d+)?\.(svg|pdf)")


def series(runs: Sequence[ReportedRun]) -> list[Figure]:
    """Return the figures that the runs have data for."""
    return [figure for prepare in _SERIES if (figure := prepare(runs)) is not None]


def write(
    directories: Sequence[RunDirectory],
    out: str | os.PathLike[str],
    names: Sequence[str],
    experiment: RecordedExperiment | None = None,
) -> list[Path]:
    """See :func:`tailtrim.report.write` and :func:`tailtrim.report.write_experiment`."""
    if not directories:
        raise ReportError("there is no run to report on")
    if len(directories) != len(names):
        raise ReportError(f"{len(names)} names were given for {len(directories)} runs")
    runs = [
        ReportedRun(index, units.printable(name), directory)
        for index, (directory, name) in enumerate(zip(directories, names, strict=True))
    ]
    drawn = series(runs)
    sections = cause_section.sections(runs)
    contents = {"report.html": run_page.render(runs, drawn, sections, experiment)}
    for figure in [*drawn, *(figure for one in sections for figure in one.figures)]:
        for suffix, content in drawing.render(figure, [run.name for run in runs]).items():
            contents[f"{_FOLDER}/{figure.key}.{suffix}"] = content
    stale = {f"{_FOLDER}/{key}.{suffix}" for key in _KEYS for suffix in ("svg", "pdf")}
    return _store(Path(out), contents, stale)


def _store(out: Path, contents: dict[str, bytes], stale: set[str]) -> list[Path]:
    try:
        (out / _FOLDER).mkdir(parents=True, exist_ok=True)
        earlier = {place.name for place in (out / _FOLDER).iterdir()}
        stale |= {f"{_FOLDER}/{name}" for name in earlier if _OF_A_RUN.fullmatch(name)}
        stale -= contents.keys()
        for name in stale:
            (out / name).unlink(missing_ok=True)
        for name, content in contents.items():
            (out / name).write_bytes(content)
    except OSError as error:
        place = error.filename or out
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    return [out / name for name in contents]
