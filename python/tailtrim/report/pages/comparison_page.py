"""The page of comparisons: as offline and as distrusting as the report's (:mod:`.assets`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import OutputError
from tailtrim.report import comparison_wording as told
from tailtrim.report import energy_wording, units, write_files
from tailtrim.report.figures import drawing, values
from tailtrim.report.figures.objective_lines import with_objectives
from tailtrim.report.figures.palette import distinct
from tailtrim.report.figures.ratio import ratios, tails
from tailtrim.report.pages.assets import assets, policy
from tailtrim.report.pages.embedding import embedded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.compare import Comparison
    from tailtrim.slo import Objective


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
    environment, scripts, styles = assets()
    names = names_of(comparisons)
    together = ratios(comparisons) if len(comparisons) > 1 else None
    each = [
        figure and with_objectives(figure, objectives)
        for number, one in enumerate(comparisons, start=1)
        for figure in (tails(one, number),)
    ]
    drawn = [figure for figure in (together, *each) if figure is not None]
    text = environment.get_template("comparison.html.j2").render(
        policy=policy(scripts, styles),
        scripts=scripts,
        styles=styles,
        title=_title(comparisons, names),
        comparisons=list(zip(names, comparisons, each, strict=True)),
        together=together,
        places={figure.key: place for place, figure in enumerate(drawn)},
        data=embedded(names, distinct(len(names)), drawn),
        told=told,
        energy=energy_wording,
        units=units,
    )
    return text.encode("utf-8")


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
        raise OutputError(f"{place}: expected a name that ends in .svg, .pdf or .csv")
    figure = tails(comparisons[0], 1) if len(comparisons) == 1 else ratios(comparisons)
    if figure is None:
        raise OutputError(f"{place}: the samples support no percentile, so nothing is drawn")
    names = names_of(comparisons)
    if suffix == "csv":
        write_files.write(place, values.csv(figure, names))
    else:
        write_files.write(place, drawing.render(figure, names, formats=[suffix])[suffix])
