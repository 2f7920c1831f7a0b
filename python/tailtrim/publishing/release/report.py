"""The report of a release: pages and figures of its experiment, and the values of the figures."""

from __future__ import annotations

import contextlib
from pathlib import Path

from tailtrim.publishing import report
from tailtrim.publishing.release.layout import EXPERIMENT, REPORT
from tailtrim.results.experiments import recorded


def write(root: Path) -> None:
    """Write the report of a release that has a complete run.

    Raises:
        RunDirectoryError: a table is missing or damaged.
        PicturesError: what makes pages and figures is not installed.

    """
    from tailtrim.publishing import factors  # noqa: PLC0415 - levels without figures do without

    # From there, so that pages name the runs as readers find them.
    with contextlib.chdir(root):
        place, out = Path(EXPERIMENT), Path(REPORT)
        experiment = recorded(place)
        if not experiment.complete:
            return
        if factors.has_factors(place):
            factors.write(factors.effects_of(place), experiment, out)
            return
        report.write_experiment(experiment, out)
        if factors.has_boots(place):
            factors.write(factors.boots_of(place), experiment, out)


def values(root: Path) -> dict[str, bytes]:
    """Return the tables and the values of the figures, by their path in the report.

    Raises:
        RunDirectoryError, PicturesError: as of :func:`write`.

    """
    from tailtrim.publishing import factors  # noqa: PLC0415 - as above

    place = root / EXPERIMENT
    experiment = recorded(place)
    if not experiment.complete:
        return {}
    if factors.has_factors(place):
        return factors.values(factors.effects_of(place))
    found = report.values_of_experiment(experiment)
    if factors.has_boots(place):
        found |= factors.values(factors.boots_of(place))
    return found
