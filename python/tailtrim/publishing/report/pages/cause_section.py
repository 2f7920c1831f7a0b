"""The section on causes of late packets: its sentences and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from tailtrim import units
from tailtrim.analysis.explain import explain, host_events
from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.report import cause_wording, periodic_wording
from tailtrim.publishing.report.figures import busy_period
from tailtrim.publishing.report.figures.late_packets import (
    ExplainedRun,
    alike,
    late_packets,
    without_causes,
)
from tailtrim.publishing.report.table import Cell, Column, Row, Table
from tailtrim.results import EVENTS
from tailtrim.results.layout import EXPLANATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.explain.host_explanation import (
        Advice,
        HostCause,
        HostExplanation,
        HostVerdict,
    )
    from tailtrim.publishing.report.figures.figure import Figure
    from tailtrim.publishing.report.inputs.run_tables import ReportedRun

#: Quantiles that the table shows without each cause.
QUANTILES = ("0.99", "0.999", "0.9999")

_MOST_ROWS = 12
# Causes whose share would be printed as nothing share a row.
_LEAST_PPM = 500
# Events on the page, over all runs, and of one.
_MOST_EVENTS, _MOST_OF_RUN = 20_000, 5_000
# Zoomed packets of a run; where many runs are explained, one of each.
_PACKETS, _FEW_RUNS = 3, 3
# The name of a check is not broken at its hyphen.
_WORD = Markup('<span class="word">{}</span>')


@dataclass(frozen=True, slots=True)
class CauseSection:
    """Causes of the late packets of a run."""

    run: ReportedRun
    headline: str
    sentence: str
    table: Table
    advice: Table
    notes: list[str]
    figures: tuple[Figure, ...]


def sections(runs: Sequence[ReportedRun]) -> list[CauseSection]:
    """Return a section for each run that has an explanation, or periodic causes."""
    known = [(run, told) for run in runs if (told := _explanation(run)) is not None]
    if not known:
        # A search takes seconds.
        few = runs if len(runs) <= _FEW_RUNS else ()
        return [section for run in few if (section := _periodic(run)) is not None]
    events = min(_MOST_OF_RUN, _MOST_EVENTS // len(known))
    packets = _PACKETS if len(known) <= _FEW_RUNS else 1
    explained = alike(
        [
            ExplainedRun(
                run,
                told,
                host_events.read(run.directory, cpu=told.cpu, serving=told.verdict.serving),
            )
            for run, told in known
        ]
    )
    return [_section(one, events, packets) for one in explained]


def _explanation(run: ReportedRun) -> HostExplanation | None:
    """Return the explanation of a run by a trace; ``None`` where it has none."""
    if not (run.directory.path / EXPLANATION).exists():
        return None
    # It is typed by pydantic, which most pages do without.
    from tailtrim.analysis.explain.host_explanation import read  # noqa: PLC0415

    return read(run.directory)


def _section(explained: ExplainedRun, events: int, packets: int) -> CauseSection:
    verdict = explained.explanation.verdict
    drawn = [
        late_packets(explained, events),
        without_causes(explained),
        *busy_period.packets(explained, packets),
    ]
    untraced = ["The run keeps no trace, so that the host's events are not shown."]
    untraced *= explained.events is None
    return CauseSection(
        explained.run,
        _headline(explained),
        cause_wording.sentence(verdict),
        _table(explained.explanation),
        _advice(verdict.advice),
        [*cause_wording.gaps(explained.explanation), *untraced],
        tuple(figure for figure in drawn if figure is not None),
    )


def _periodic(run: ReportedRun) -> CauseSection | None:
    """Return the periodic causes of a run that has no explanation, if its packets have any."""
    if any((run.directory.path / name).exists() for name in (EXPLANATION, EVENTS)):
        return None
    if "sample" not in run.directory.tables:
        return None
    try:
        found = explain(run.directory)
    except RunDirectoryError:
        return None
    if not (found.periodic or found.batches):
        return None
    largest = max(found.rows, key=lambda row: row.excess_ns)
    share = cause_wording.share(largest.excess_ns * 1_000_000 // max(found.excess_ns, 1))
    notes = [
        ". ".join(line.strip(" .") for line in part) for part in periodic_wording.details(found)
    ]
    return CauseSection(
        run,
        f"above all {largest.name} ({share})",
        periodic_wording.sentence(found),
        periodic_wording.table(found)._replace(kind="causes"),
        Table([], []),
        [*(f"{note}." for note in notes), periodic_wording.basis(found)],
        (),
    )


def _headline(explained: ExplainedRun) -> str:
    """Return the largest part of the excess: a cause, the queue or what is unknown."""
    verdict = explained.explanation.verdict
    costly = zip(explained.causes, explained.labels, strict=True)
    parts = [(cause.excess_ns, label) for cause, label in costly]
    part_ns, label = max(parts + verdict.rest, key=lambda part: part[0])
    return f"above all {label} ({cause_wording.share(verdict.ppm(part_ns))})" if part_ns > 0 else ""


def _table(explained: HostExplanation) -> Table:
    """Return the causes, the queue, what is unknown, and all late packets."""
    verdict = explained.verdict
    costly = [
        (name, cause)
        for name, cause in zip(cause_wording.labels(verdict.causes), verdict.causes, strict=True)
        if cause.late_packets
    ]
    shown = sum(cause.share_ppm >= _LEAST_PPM for _, cause in costly[:_MOST_ROWS])
    # A row that stands for one cause had better be that cause's own.
    shown += len(costly) - shown == 1
    style = _style(explained)
    rows = [_cause(explained, name, cause, style) for name, cause in costly[:shown]]
    if rest := [cause for _, cause in costly[shown:]]:
        places = {place for place, cause in enumerate(verdict.causes) if cause in rest}
        touched = sum(any(place in places for place, _ in late.causes) for late in verdict.late)
        name = f"{len(rest)} other cause{'s' if len(rest) > 1 else ''}"
        events = units.count(sum(cause.events for cause in rest))
        part_ns = sum(cause.excess_ns for cause in rest)
        rows.append(_row(verdict, style, name, "", events, touched, part_ns))
    queued = sum(late.queue_ns > 0 for late in verdict.late)
    unknown = sum(late.unknown_ns > 0 for late in verdict.late)
    for name, what, packets, part_ns in (
        ("Queueing behind packets", "the load's own queue", queued, verdict.queue_ns),
        ("Unknown", "nothing in the trace accounts for it", unknown, verdict.unknown_ns),
    ):
        rows.append(_row(verdict, style, name, what, "", packets, part_ns))
    since = f"from {units.time(verdict.late_from_ns)} on; percentiles as measured"
    every = len(verdict.late), verdict.excess_ns
    measured = explained, verdict.quantiles_ns
    rows.append(_row(verdict, style, "All late packets", since, "", *every, measured, kind="whole"))
    group = f"Without it, percentiles in {style.unit}"
    columns = [
        Column("Cause", kind="left"),
        Column("What it is", kind="text"),
        Column("Events"),
        Column("Late\npackets"),
        Column(f"Excess\n{style.unit}", label=f"Excess, {style.unit}"),
        Column("Share"),
        *(
            Column(units.percent(p), label=f"p{units.percent(p)} without", group=group)
            for p in QUANTILES
        ),
        Column("Checks", kind="text"),
    ]
    return Table(columns, rows, kind="causes")


def _style(explained: HostExplanation) -> units.Times:
    """Return how the times of the table are printed."""
    verdict = explained.verdict
    measured = [verdict.quantiles_ns, *(cause.without_ns for cause in verdict.causes)]
    known = [[explained.at(p, of)] for of in measured for p in QUANTILES]
    return units.Times.of([*known, [verdict.excess_ns]])


def _cause(explained: HostExplanation, name: str, cause: HostCause, style: units.Times) -> Row:
    return _row(
        explained.verdict,
        style,
        name,
        cause.signature.what if cause.signature else _kind(cause.kind),
        units.count(cause.events),
        cause.late_packets,
        cause.excess_ns,
        (explained, cause.without_ns),
        checks=cause.signature.checks if cause.signature else (),
    )


def _row(  # noqa: PLR0913, PLR0917 - the cells of a row
    verdict: HostVerdict,
    style: units.Times,
    name: str,
    what: str,
    events: str,
    packets: int,
    part_ns: int,
    without: tuple[HostExplanation, tuple[int, ...]] | None = None,
    checks: Sequence[str] = (),
    kind: str = "",
) -> Row:
    known = [without[0].at(p, without[1]) if without else None for p in QUANTILES]
    return Row(
        name,
        [
            what,
            events,
            units.count(packets),
            style.number(part_ns),
            cause_wording.share(verdict.ppm(part_ns)),
            *("" if ns is None else style.number(ns) for ns in known),
            Cell(Markup(" ").join(_WORD.format(check) for check in checks)),
        ],
        kind,
    )


def _advice(found: Sequence[Advice]) -> Table:
    """Return what each check asks, and what would be changed for it."""
    rows = []
    for one in found:
        changes = [f"{change.title} ({cause_wording.when(change)})" for change in one.changes]
        rows.append(Row(one.check, [one.title, one.wanted, "; ".join(changes) or "none"]))
    heads = ("It asks", "Wanted", "Changes")
    columns = [Column("Check", kind="left"), *(Column(head, kind="text") for head in heads)]
    return Table(columns, rows, kind="causes")


def _kind(kind: str) -> str:
    known = {
        "nmi": "a non-maskable interrupt",
        "irq": "an interrupt",
        "softirq": "a softirq",
        "thread": "a thread that had the CPU",
        "fault": "a page fault",
        "gap": "no task was seen on the CPU",
        "hole": "the trace lost events here",
    }
    return known.get(kind, units.printable(kind))
