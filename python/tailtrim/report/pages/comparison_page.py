"""The page of comparisons: as offline and as distrusting as the report's (:mod:`.assets`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import OutputError
from tailtrim.report import comparison_wording as told
from tailtrim.report import units
from tailtrim.report.figures import drawing
from tailtrim.report.figures.improvement import improvement
from tailtrim.report.pages.assets import assets, policy
from tailtrim.report.pages.embedding import embedded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.compare import Comparison


def names_of(comparisons: Sequence[Comparison]) -> list[str]:
    """Return what each comparison is called in figures."""
    return [units.printable(one.label or f"{one.a.name} → {one.b.name}") for one in comparisons]


def render(comparisons: Sequence[Comparison]) -> bytes:
    """Return the page of comparisons as UTF-8."""
    environment, scripts, styles = assets()
    names = names_of(comparisons)
    figure = improvement(comparisons)
    drawn = [] if figure is None else [figure]
    text = environment.get_template("comparison.html.j2").render(
        policy=policy(scripts, styles),
        scripts=scripts,
        styles=styles,
        comparisons=list(zip(names, comparisons, strict=True)),
        figures=drawn,
        data=embedded(names, range(len(names)), drawn),
        told=told,
        units=units,
    )
    return text.encode("utf-8")


def write(comparisons: Sequence[Comparison], place: Path) -> None:
    """Write the page.

    Raises:
        OutputError: it cannot be written.

    """
    _store(place, render(comparisons))


def draw(comparisons: Sequence[Comparison], place: Path) -> None:
    """Write the figure of relative improvement as SVG or PDF.

    Raises:
        OutputError: it cannot be written, or its name ends otherwise.

    """
    suffix = place.suffix.removeprefix(".")
    if suffix not in ("svg", "pdf"):
        raise OutputError(f"{place}: expected a name that ends in .svg or .pdf")
    figure = improvement(comparisons)
    if figure is None:
        raise OutputError(f"{place}: the samples support no percentile, so nothing is drawn")
    _store(place, drawing.render(figure, names_of(comparisons))[suffix])


def _store(place: Path, content: bytes) -> None:
    try:
        place.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
