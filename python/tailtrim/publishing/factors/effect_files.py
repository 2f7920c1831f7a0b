"""Files of effects: the page, as offline and as distrusting as the report's, tables, figures."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tailtrim.publishing.factors import effect_figures, effect_table
from tailtrim.publishing.factors.effects import QUANTILES
from tailtrim.publishing.report.figures import drawing
from tailtrim.publishing.report.pages import page
from tailtrim.publishing.report.pages.provenance import software
from tailtrim.publishing.report.pages.testbed_section import Fact, setting
from tailtrim.publishing.report.write_files import FIGURES, store
from tailtrim.units import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.publishing.factors.effects import Effects
    from tailtrim.publishing.report.figures.figure import Figure
    from tailtrim.results.experiments import RecordedExperiment

SCHEMA = "tailtrim.factors/2"
#: An experiment with boots has a report of its runs as well.
_PAGES = {"factors": "report.html", "boots": "boots.html"}
_CASES = (
    "loop",
    "case",
    "runs",
    "samples",
    *(f"p{percent(p)}_ns" for p in QUANTILES),
    "changed most",
    "verdict",
)
_RULES = ("loop", "firewall", "rule", "median_ns")


def write(
    effects: Effects, experiment: RecordedExperiment, out: Path, formats: Sequence[str]
) -> list[Path]:
    """See :func:`tailtrim.publishing.factors.write`."""
    figures = effect_figures.figures(effects)
    contents = {_PAGES[effects.kind]: _page(effects, experiment, figures, formats)}
    contents |= _values(effects, figures)
    drawn = drawing.files(figures, formats)
    # The CSV beside a figure is that of the effects.
    contents |= {name: file for name, file in drawn.items() if name not in contents}
    return store(out, contents)


def values(effects: Effects) -> dict[str, bytes]:
    """See :func:`tailtrim.publishing.factors.values`."""
    return _values(effects, effect_figures.figures(effects))


def _values(effects: Effects, figures: Sequence[Figure]) -> dict[str, bytes]:
    told = {"schema": SCHEMA, **asdict(effects)}
    found = {
        f"{effects.kind}.md": effect_table.markdown(effects).encode(),
        f"{effects.kind}.json": (json.dumps(told, indent=2) + "\n").encode(),
    }
    for figure in figures:
        head = _RULES if figure.key == "rules" else _CASES
        found[f"{FIGURES}/{figure.key}.csv"] = _csv(head, effects)
    return found


def _csv(head: tuple[str, ...], effects: Effects) -> bytes:
    """Return the values of a figure: a row for each case, or for each position of a rule."""
    rows = _rules(effects) if head is _RULES else _cases(effects)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue().encode()


def _cases(effects: Effects) -> Iterator[tuple[object, ...]]:
    for case in effects.cases:
        if case.quantiles_ns is not None:
            values = [case.quantiles_ns[p] for p in QUANTILES]
            verdict = case.verdict.told(effects.repeated) if case.factor else ""
            most = f"p{percent(case.most.p)}" if case.most else ""
            yield case.loop, case.name, case.runs, case.samples, *values, most, verdict


def _rules(effects: Effects) -> Iterator[tuple[object, ...]]:
    for slope in effects.slopes:
        for one in slope.positions:
            yield slope.loop, slope.firewall, one.rule, one.median_ns


def _page(
    effects: Effects,
    experiment: RecordedExperiment,
    figures: Sequence[Figure],
    formats: Sequence[str],
) -> bytes:
    """Return the page as UTF-8: the table of effects and the figures."""
    facts = [
        *software(experiment.command, experiment.versions),
        Fact("Directory", str(experiment.path)),
    ]
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
        slopes=list(effect_table.slope_lines(effects)),
        skipped=list(effect_table.skipped(effects)),
        figures=figures,
        facts_of_all=facts,
    )
