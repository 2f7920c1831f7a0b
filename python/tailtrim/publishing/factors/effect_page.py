"""The page of an experiment with factors: as offline and as distrusting as the report's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.publishing.factors import effect_table
from tailtrim.publishing.report.pages import page
from tailtrim.publishing.report.pages.provenance import software
from tailtrim.publishing.report.pages.testbed_section import Fact, setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.publishing.factors.effects import Effects
    from tailtrim.publishing.report.figures.figure import Figure
    from tailtrim.results.experiments import RecordedExperiment


def render(
    effects: Effects,
    experiment: RecordedExperiment,
    figures: Sequence[Figure],
    formats: Sequence[str],
) -> bytes:
    """Return the page as UTF-8: the table of effects and the figures."""
    return page.render(
        "factors.html.j2",
        figures,
        formats=formats,
        title=effects.name,
        subject=f"effects of {effects.kind}",
        subtitle=f"{effects.measured} for each {effects.each}",
        setting=setting([], experiment),
        tables=[effect_table.table(effects, loop) for loop in effects.loops],
        legend=effect_table.legend(effects),
        tail=effect_table.TAIL,
        slopes=list(effect_table.slope_lines(effects)),
        skipped=list(effect_table.skipped(effects)),
        figures=figures,
        facts_of_all=list(_facts(experiment)),
    )


def _facts(experiment: RecordedExperiment) -> Iterator[Fact]:
    yield from software(experiment.command, experiment.versions)
    yield Fact("Directory", str(experiment.path))
