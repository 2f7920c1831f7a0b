"""The page of comparisons, and their figure as a file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.errors import OutputError
from tailtrim.publishing.report import comparison_wording as told
from tailtrim.publishing.report import energy_wording, write_files
from tailtrim.publishing.report.figures import drawing, values
from tailtrim.publishing.report.figures.limit_lines import with_objectives
from tailtrim.publishing.report.figures.ratio import ratios, tails
from tailtrim.publishing.report.pages import page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.analysis.compare import Comparison
    from tailtrim.analysis.slo import Objective


def names_of(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the name of each comparison in figures, no two alike."""
    labels = [one.label for one in comparisons]
    sides = [f"{one.a.name} → {one.b.name}" for one in comparisons]
    return [
        units.printable(label if label and labels.count(label) == 1 else side)
        for label, side in zip(labels, sides, strict=True)
    ]


def render(comparisons: Sequence[Comparison], objectives: Sequence[Objective] = ()) -> bytes:
    """Return the page of comparisons as UTF-8, with lines at the limits of the objectives."""
    title, counted = _title(comparisons, names_of(comparisons)), told.rates(comparisons)
    comparisons = [one for one in comparisons if one.rates is None]
    names = names_of(comparisons)
    together = ratios(comparisons) if len(comparisons) > 1 else None
    if together is not None:
        together = replace(together, names=tuple(names))
    each = [
        figure and with_objectives(figure, objectives)
        for number, one in enumerate(comparisons, start=1)
        for figure in (tails(one, number),)
    ]
    return page.render(
        "comparison.html.j2",
        [figure for figure in (together, *each) if figure is not None],
        title=title,
        subject="comparison of tail latency",
        subtitle="Comparison of tail latency: B with A, the baseline",
        setting="",
        comparisons=list(zip(names, comparisons, each, strict=True)),
        together=together,
        counted=counted,
        told=told,
        energy=energy_wording,
    )


def _title(comparisons: Sequence[Comparison], names: Sequence[str]) -> str:
    """Name the two sides where there are but two."""
    sides = {tuple(side.name.partition(": ")[0] for side in (one.a, one.b)) for one in comparisons}
    return " → ".join(sides.pop()) if len(sides) == 1 else f"{len(names)} comparisons"


def write(
    comparisons: Sequence[Comparison], place: Path, *, objectives: Sequence[Objective] = ()
) -> None:
    """Write the page, with lines at the limits of the objectives.

    Raises:
        OutputError: it cannot be written.

    """
    write_files.write(place, render(comparisons, objectives))


def draw(comparisons: Sequence[Comparison], place: Path) -> None:
    """Write the figure, or its values: SVG, PDF or CSV.

    Of one comparison it has both tails and their ratio, of several the ratios.

    Raises:
        OutputError: it cannot be written, or its name ends otherwise.

    """
    suffix = place.suffix.removeprefix(".")
    if suffix not in ("svg", "pdf", "csv"):
        raise OutputError(f"{place}: expected a name that ends in .html, .svg, .pdf or .csv")
    figure = tails(comparisons[0], 1) if len(comparisons) == 1 else ratios(comparisons)
    if figure is None:
        raise OutputError(f"{place}: the samples support no percentile, so nothing is drawn")
    names = names_of(comparisons)
    if suffix == "csv":
        write_files.write(place, values.csv(figure, names))
    else:
        write_files.write(place, drawing.render(figure, names, formats=[suffix])[suffix])
