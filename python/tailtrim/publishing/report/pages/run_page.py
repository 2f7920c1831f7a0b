"""The page of runs."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.roundtrip.measured_part import of_run
from tailtrim.publishing.report import live_runs, wording
from tailtrim.publishing.report.cause_wording import packet_sentences
from tailtrim.publishing.report.group_table import tables_of
from tailtrim.publishing.report.latency_table import LatencyTable
from tailtrim.publishing.report.over_time import over_time
from tailtrim.publishing.report.pages import page, page_tables, testbed_section
from tailtrim.publishing.report.pages.provenance import provenance
from tailtrim.publishing.report.pages.testbed_section import setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.slo import Objective
    from tailtrim.publishing.report.capacity_wording import CapacitySection
    from tailtrim.publishing.report.figures.figure import Figure
    from tailtrim.publishing.report.figures.looks import Look
    from tailtrim.publishing.report.inputs.run_tables import ReportedRun
    from tailtrim.publishing.report.pages.cause_section import CauseSection
    from tailtrim.results.experiments import RecordedExperiment

# More runs than these have no card each: the table says the same.
_MOST_CARDS = 4
# More warnings of one kind than these differ in their numbers alone.
_MOST_ALIKE = 2
_MOST_NAMES = 3
_SWEEP, _PACKET = "sweep-", "packet-"


@dataclass(frozen=True)
class Contents:
    """Contents of a page: ``figures`` are of all runs, ``sections`` of one each.

    With an ``experiment``, the page has its name, says where and when it was run, and what became
    of runs that failed or are invalid. ``capacity`` is what was found where they are trials of a
    search. Each figure has a file of each of the ``formats``.
    """

    runs: Sequence[ReportedRun]
    looks: Sequence[Look]
    figures: Sequence[Figure]
    sections: Sequence[CauseSection]
    experiment: RecordedExperiment | None = None
    objectives: Sequence[Objective] = ()
    capacity: CapacitySection | None = None
    formats: Sequence[str] = ("svg",)

    @property
    def all_figures(self) -> list[Figure]:
        """Every figure, also those that readers may choose instead of another."""
        first = [*self.figures, *(one for section in self.sections for one in section.figures)]
        return [figure for one in first for figure in (one, *one.others)]


def render(report: Contents) -> bytes:
    """Return the page of runs as UTF-8."""
    runs = report.runs
    names = [run.name for run in runs]
    table = LatencyTable.of([run.summary for run in runs], names)
    named = [(run.name, run.directory) for run in runs]
    problems, warned = list(_problems(report.experiment)), _warnings(runs)
    warmed = live_runs.warm_ups(named)
    first = report.sections[0].figures if report.sections else ()
    return page.render(
        "report.html.j2",
        report.all_figures,
        subjects=list(zip(names, report.looks, strict=True)),
        formats=report.formats,
        title=_title(report),
        subject="tail latency",
        subtitle="Tail latency",
        setting=setting(runs, report.experiment),
        runs=runs,
        measured=any(run.summary.throughput is None for run in runs),
        cards=len(runs) <= _MOST_CARDS,
        problems=problems,
        warned=warned,
        warmed=warmed,
        cautioned=_cautioned(len(problems), len(warned), len(warmed)),
        round_trips={run.index: of_run(run.directory) for run in runs},
        over_time=[
            (run.name, told, packet_sentences(run.worst_packets))
            for run in runs
            if (told := over_time(run))
        ],
        objectives=page_tables.objectives(runs, report.objectives),
        capacity=report.capacity,
        departures=live_runs.departures(named),
        latency=page_tables.latency(table),
        latency_notes=list(page_tables.latency_notes(table, told=len(runs) <= _MOST_CARDS)),
        tables=page_tables,
        groups=[(run.name, *told) for run in runs for told in tables_of(run.directory)],
        sweeps=[one for one in report.figures if one.key.startswith(_SWEEP)],
        figures=[one for one in report.figures if not one.key.startswith(_SWEEP)],
        sections=report.sections,
        packet=next((one for one in first if one.key.startswith(_PACKET)), None),
        testbed=testbed_section.picture(report.experiment),
        provenance=provenance(runs),
        wording=wording,
    )


def _title(report: Contents) -> str:
    if report.experiment is not None:
        return report.experiment.name
    names = [run.name for run in report.runs]
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} runs"


def _problems(experiment: RecordedExperiment | None) -> Iterator[tuple[str, str]]:
    """Yield the runs that failed, were skipped or are invalid, and why."""
    for run in experiment.runs if experiment else ():
        if run.problem:
            yield run.name.removesuffix(" (invalid)"), run.problem


def _cautioned(problems: int, warnings: int, kept_up: int) -> str:
    """Return the line that the lists of these are folded into; empty without any."""
    told = (problems, "problem"), (warnings, "warning"), (kept_up, "kept-up device")
    return ", ".join(units.counted(number, noun) for number, noun in told if number)


def _warnings(runs: Sequence[ReportedRun]) -> list[tuple[str, str]]:
    """Return the warnings of all runs, each with the names of those that have it.

    Of many that differ in their numbers alone, only the first is told in full.
    """
    having: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        for notice in run.summary.warnings:
            alike = re.sub(r"[0-9][0-9.,]*", "0", notice.text)
            having.setdefault(alike, {}).setdefault(notice.text, []).append(run.name)
    told = []
    for texts in having.values():
        if len(texts) > _MOST_ALIKE:
            first, names = next(iter(texts)), list(itertools.chain(*texts.values()))
            text = f"{first} (numbers of the first run; the others' are in their summary.json)"
            told.append((_listed(names, len(runs)), text))
        else:
            told += [(_listed(names, len(runs)), text) for text, names in texts.items()]
    return told


def _listed(names: list[str], runs: int) -> str:
    if len(names) == runs > 1:
        return "all runs"
    if len(names) <= _MOST_CARDS:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
