"""Effect of each factor of an experiment on the latency: a page, a table, figures.

A plan's ``factors`` are varied one at a time. Every value is compared with the first values of all,
under the same loop variables, by the statistics of :mod:`tailtrim.analysis.compare`. The cost of a
firewall rule is computed from the rule's positions.

Kernels and boot lines are compared likewise (:func:`boots_of`): with boots as repetitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.publishing.factors.boot_effects import boots_of, has_boots
from tailtrim.publishing.factors.effect_table import markdown, render
from tailtrim.publishing.factors.effects import Case, Effect, Effects, effects_of, has_factors
from tailtrim.publishing.factors.slope import Slope
from tailtrim.publishing.report import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.results.experiments import RecordedExperiment

__all__ = [
    "Case",
    "Effect",
    "Effects",
    "Slope",
    "boots_of",
    "effects_of",
    "has_boots",
    "has_factors",
    "markdown",
    "render",
    "values",
    "write",
]


def write(
    effects: Effects, experiment: RecordedExperiment, out: Path, *, pdf: bool = False
) -> list[Path]:
    """Write a page, the table as Markdown and JSON, and the figures (SVG, CSV; PDF if asked).

    The page of factors is ``report.html``. That of boots is ``boots.html``, in
    the folder of the report of all runs.

    Returns:
        The files written, the page first, then the table as Markdown.

    Raises:
        OutputError: they cannot be written.
        PicturesError: what makes pages and figures is not installed.

    """
    formats = write_files.formats(pdf=pdf)
    write_files.require_pictures(formats)
    from tailtrim.publishing.factors import effect_files  # noqa: PLC0415 - brings pages and figures

    return effect_files.write(effects, experiment, out, formats)


def values(effects: Effects) -> dict[str, bytes]:
    """Return the table as Markdown and JSON and the values of the figures (CSV), without drawing.

    Each is by its path in the folder of the report.

    Raises:
        PicturesError: what makes pages and figures is not installed.

    """
    write_files.require_pictures()
    from tailtrim.publishing.factors import effect_files  # noqa: PLC0415 - brings pages and figures

    return effect_files.values(effects)
