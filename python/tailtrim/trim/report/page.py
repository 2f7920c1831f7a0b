"""The page of a search: as offline and as distrusting as the report's."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

from tailtrim.report import units
from tailtrim.report.pages.assets import assets, policy
from tailtrim.report.pages.embedding import embedded
from tailtrim.report.pages.testbed_section import Fact, setting
from tailtrim.trim import path, wording
from tailtrim.trim.report import cost_words
from tailtrim.trim.report.rows import (
    curve_rows,
    point_rows,
    trial_rows,
    verdict_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.report.figures.figure import Figure
    from tailtrim.trim.recorded import RecordedSearch
    from tailtrim.trim.report.findings import Findings

#: Where a search leaves files of other tools.
EXPORT = "export"


def render(found: Findings, figures: Sequence[Figure], formats: Sequence[str]) -> bytes:
    """Return the page as UTF-8."""
    environment, scripts, styles = assets()
    search, experiment = found.search, found.search.experiment
    page = environment.get_template("trim.html.j2").render(
        formats=formats,
        policy=policy(scripts, styles),
        scripts=scripts,
        styles=styles,
        title=experiment.name if experiment else search.path.resolve().name,
        quantile=units.percent(search.quantile),
        setting=setting([], experiment) if experiment else "",
        headline=_headline(search),
        kept=" + ".join(_in_order(found)),
        notices=search.result.notices if search.result else (),
        curves=curve_rows(found.path),
        verdicts=verdict_rows(found),
        metered=any(one.watts for one in found.costs.each.values()),
        needed=search.result.needed_trials if search.result else None,
        costs=list(cost_words.lines(found.costs)),
        points=point_rows(found.tradeoff, search.kept),
        trials=trial_rows(search),
        exported=_exported(search.path),
        figures={figure.key: figure for figure in figures},
        data=embedded((), (), figures),
        places={figure.key: place for place, figure in enumerate(figures)},
        facts_of_all=list(_facts(search)),
        units=units,
    )
    return page.encode("utf-8")


def _headline(search: RecordedSearch) -> str:
    if search.result is None:
        return f"The search has not ended: {len(search.seen)} trials so far"
    return wording.headline(search.result, search.quantile)


def _in_order(found: Findings) -> list[str]:
    """Return what is kept, in the order of the path."""
    steps = path.steps(found.search.result.found) if found.search.result else [frozenset[str]()]
    return [name for before, after in pairwise(steps) for name in after - before]


def _exported(search: Path) -> list[str]:
    """Return the files of other tools that the search has left."""
    folder = search / EXPORT
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return [str(file.relative_to(search)) for file in files]


def _facts(search: RecordedSearch) -> Iterator[Fact]:
    experiment = search.experiment
    if experiment and experiment.command:
        yield Fact("Command", shlex.join(map(str, experiment.command)))
    if experiment and experiment.versions:
        told = ", ".join(f"{name} {one}" for name, one in experiment.versions.items())
        yield Fact("Versions", text=told)
    settings = search.settings
    yield Fact(
        "Search",
        text=f"error {settings.error:.0%} over all of it, a gain below {settings.worth:.0%} is not"
        f" worth a change, at most {settings.trials:,} trials, random order of seed"
        f" {settings.seed}",
    )
    yield Fact("Limits", text=_limits(search))
    yield Fact("Directory", str(search.path))


def _limits(search: RecordedSearch) -> str:
    limits = search.settings.limits
    told = [
        f"loss at most {limits.loss:.3%}" if limits.loss is not None else "",
        f"throughput at most {limits.rate_loss:.1%} lower" if limits.rate_loss is not None else "",
        f"at most {limits.watts:g} W" if limits.watts is not None else "",
    ]
    return ", ".join(filter(None, told)) or "none"
