"""The page and the figure of a search: as offline and as distrusting as those of a report."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures import drawing
from tailtrim.publishing.report.figures.figure import Axis, Bars, Figure, Line, Panel
from tailtrim.publishing.report.figures.looks import Look
from tailtrim.publishing.report.pages import page as frame
from tailtrim.publishing.report.pages.provenance import software
from tailtrim.publishing.report.pages.testbed_section import Fact, setting
from tailtrim.publishing.report.write_files import store
from tailtrim.publishing.trim_report import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tailtrim.laboratory.trim.recorded import RecordedSearch
    from tailtrim.publishing.trim_report import Findings
    from tailtrim.publishing.trim_report.path import Step

#: Files of an earlier report, also of versions that drew the tail against watts.
_OURS = re.compile(r"(path|tradeoff)\.(svg|pdf|csv)")
_INTERVAL, _MEAN = range(2)
_NAMES = ("95 % interval over runs", "mean of the runs")
_LOOKS = (Look("#7CB6DC", "#1F6E9E"), Look("#16191D", "#E8EAED", "D"))


def write(found: Findings, out: Path, formats: Sequence[str]) -> list[Path]:
    """Write page, numbers and figure: see :func:`tailtrim.publishing.trim_report.write`."""
    drawn = figures(found)
    told = json.dumps(found.as_json(), indent=1, allow_nan=False)
    contents = {
        "report.html": render(found, drawn, formats),
        "findings.json": f"{told}\n".encode(),
    }
    return store(out, contents | drawing.files(drawn, formats), outdated=_OURS.fullmatch)


def figures(found: Findings) -> list[Figure]:
    """Return the figure of the path: a lane for each step, the baseline at the top.

    There is none while no baseline was measured.
    """
    steps = found.path[::-1]
    if not steps:
        return []
    ends = [end for one in steps for end in _ends(one)]
    p = f"p{units.percent(found.search.quantile)}"
    x = Axis.of_times(p, min(ends), max(ends))
    known = [lane for lane, one in enumerate(steps) if one.tail_ns.low is not None]
    means = np.array([one.tail_ns.value for one in steps]) / x.unit_ns
    # The page wants points from left to right.
    order = np.argsort(means, kind="stable")
    panel = Panel(
        x,
        Axis.of_lanes(tuple(units.printable(one.name) for one in steps)),
        (Line(_MEAN, means[order], order.astype(float), draw="points"),),
        bars=tuple(
            Bars(_INTERVAL, lane, *(np.array([end / x.unit_ns]) for end in _ends(steps[lane])))
            for lane in known
        ),
    )
    return [
        Figure(
            key="path",
            title=f"{p} with one change more at each step",
            caption=(
                f"{p} of all packets, lost ones infinitely late: geometric mean of the runs of each"
                " step, as the tests of the search have it, with Student's 95 % interval. A single"
                " run has no interval."
            ),
            panels=(panel,),
            names=_NAMES,
            looks=_LOOKS,
        )
    ]


def _ends(step: Step) -> tuple[float, float]:
    """Return the interval of a step, or its single run twice."""
    low, high = step.tail_ns.low, step.tail_ns.high
    return (step.tail_ns.value,) * 2 if low is None or high is None else (low, high)


def render(found: Findings, figures: Sequence[Figure], formats: Sequence[str]) -> bytes:
    """Return the page as UTF-8."""
    search, experiment = found.search, found.search.experiment
    return frame.render(
        "trim.html.j2",
        figures,
        formats=formats,
        title=experiment.name if experiment else search.path.resolve().name,
        subject="changes that cut the tail",
        subtitle=f"Changes that cut the p{units.percent(search.quantile)} of all packets",
        setting=setting([], experiment) if experiment else "",
        headline=table.headline(search),
        notices=search.result.notices if search.result else (),
        changes=table.changes(found),
        legend=table.LEGEND,
        notes=list(table.notes(found)),
        figures=figures,
        facts_of_all=list(_facts(search)),
    )


def _facts(search: RecordedSearch) -> Iterator[Fact]:
    experiment = search.experiment
    if experiment:
        yield from software(experiment.command, experiment.versions)
    settings = search.settings
    yield Fact(
        "Search",
        text=f"error {settings.error:.0%} over all of it, a gain below {settings.worth:.0%} is not"
        f" worth a change, at most {settings.trials:,} trials, random order of seed"
        f" {settings.seed}",
    )
    yield Fact("Limits", text=_limits(search))
    yield Fact("Trials", str(search.path / "trim.json"), f"{len(search.seen):,} run directories")


def _limits(search: RecordedSearch) -> str:
    limits = search.settings.limits
    told = [
        f"loss at most {limits.loss:.3%}" if limits.loss is not None else "",
        f"throughput at most {limits.rate_loss:.1%} lower" if limits.rate_loss is not None else "",
        f"at most {limits.watts:g} W" if limits.watts is not None else "",
    ]
    return ", ".join(filter(None, told)) or "none"
