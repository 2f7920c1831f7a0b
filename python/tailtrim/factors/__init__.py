"""What each factor of an experiment makes of the latency: a page, a table, figures.

A plan's ``factors`` are varied one at a time. Every value is compared with the first values of all,
under the same loop variables, by the statistics of :mod:`tailtrim.compare`; from the positions of a
firewall's rule comes what a rule costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.factors.effect_table import markdown, render
from tailtrim.factors.effects import Case, Effect, Effects, effects_of, has_factors
from tailtrim.factors.slope import Slope
from tailtrim.report import pictures

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.experiment import RecordedExperiment

__all__ = [
    "Case",
    "Effect",
    "Effects",
    "Slope",
    "effects_of",
    "has_factors",
    "markdown",
    "render",
    "write",
]


def write(effects: Effects, experiment: RecordedExperiment, out: Path) -> list[Path]:
    """Write ``report.html``, the table as Markdown and JSON, and the figures (SVG, PDF, CSV).

    Returns:
        The files written, the page first, then ``factors.md``.

    Raises:
        OutputError: they cannot be written.
        PicturesError: what makes pages and figures is not installed.

    """
    pictures.require()
    from tailtrim.factors import effect_files  # noqa: PLC0415 - brings matplotlib, which takes long

    return effect_files.write(effects, experiment, out)
