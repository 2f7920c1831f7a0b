"""The section on causes of late packets: its sentences and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.explain import host_events
from tailtrim.report import cause_wording, units
from tailtrim.report.figures import busy_period
from tailtrim.report.figures.explained_run import ExplainedRun, without_causes
from tailtrim.report.figures.late_packets import late_packets
from tailtrim.report.inputs import host_explanation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.report.figures.figure import Figure
    from tailtrim.report.inputs.host_explanation import (
        Advice,
        HostCause,
        HostExplanation,
        HostVerdict,
    )
    from tailtrim.report.inputs.run_tables import ReportedRun

#: The quantiles that the table shows without each cause.
QUANTILES = ("0.99", "0.999", "0.9999")

_MOST_ROWS = 12
# Causes whose share would be printed as nothing share a row.
_LEAST_PPM = 500
# Events on the page, over all runs, and of one.
_MOST_EVENTS, _MOST_OF_RUN = 20_000, 5_000
# Zoomed packets of a run; where many runs are explained, one of each.
_PACKETS, _FEW_RUNS = 3, 3


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A row of the table of causes; ``None`` where the question does not arise."""

    name: str
    what: str = ""
    events: int | None = None
    packets: int | None = None
    excess_ns: int = 0
    share: str = ""
    without_ns: tuple[int | None, ...] = (None,) * len(QUANTILES)
    checks: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class CauseSection:
    """Causes of the late packets of a run."""

    run: ReportedRun
    headline: str
    sentence: str
    rows: tuple[CauseRow, ...]
    advice: tuple[Advice, ...]
    notes: tuple[str, ...]
    figures: tuple[Figure, ...]


def sections(runs: Sequence[ReportedRun]) -> list[CauseSection]:
    """Return a section for each run that has an explanation."""
    known = [
        (run, told) for run in runs if (told := host_explanation.read(run.directory)) is not None
    ]
    if not known:
        return []
    events = min(_MOST_OF_RUN, _MOST_EVENTS // len(known))
    packets = _PACKETS if len(known) <= _FEW_RUNS else 1
    return [
        _section(
            ExplainedRun(
                run,
                told,
                host_events.read(run.directory, cpu=told.cpu, serving=told.verdict.serving),
            ),
            events,
            packets,
        )
        for run, told in known
    ]


def _section(explained: ExplainedRun, events: int, packets: int) -> CauseSection:
    verdict = explained.explanation.verdict
    drawn = [
        late_packets(explained, events),
        without_causes(explained),
        *busy_period.packets(explained, packets),
    ]
    rows = tuple(_rows(explained.explanation))
    return CauseSection(
        explained.run,
        _headline(explained),
        cause_wording.sentence(verdict),
        rows,
        verdict.advice,
        tuple(_notes(explained)),
        tuple(figure for figure in drawn if figure is not None),
    )


def _headline(explained: ExplainedRun) -> str:
    """Return the largest part of the excess: a cause, the queue or what is unknown."""
    verdict = explained.explanation.verdict
    costly = zip(explained.causes, explained.labels, strict=True)
    parts = [(cause.excess_ns, label) for cause, label in costly]
    parts += [(verdict.queue_ns, "queueing behind packets"), (verdict.unknown_ns, "unknown")]
    part_ns, label = max(parts, key=lambda part: part[0])
    return f"above all {label} ({cause_wording.share(verdict.ppm(part_ns))})" if part_ns > 0 else ""


def _rows(explained: HostExplanation) -> list[CauseRow]:
    verdict = explained.verdict
    costly = [
        (name, cause)
        for name, cause in zip(cause_wording.labels(verdict.causes), verdict.causes, strict=True)
        if cause.late_packets
    ]
    shown = sum(cause.share_ppm >= _LEAST_PPM for _, cause in costly[:_MOST_ROWS])
    # A row that stands for one cause had better be that cause's own.
    shown += len(costly) - shown == 1
    rows = [_row(explained, name, cause) for name, cause in costly[:shown]]
    rest = [cause for _, cause in costly[shown:]]
    if rest:
        rows.append(_others(verdict, rest))
    queued = sum(late.queue_ns > 0 for late in verdict.late)
    unknown = sum(late.unknown_ns > 0 for late in verdict.late)
    parts = (
        ("Queueing behind packets", "the load's own queue", queued, verdict.queue_ns),
        ("Unknown", "nothing in the trace accounts for it", unknown, verdict.unknown_ns),
    )
    for name, what, packets, part_ns in parts:
        share = cause_wording.share(verdict.ppm(part_ns))
        rows.append(CauseRow(name, what, packets=packets, excess_ns=part_ns, share=share))
    rows.append(
        CauseRow(
            "All late packets",
            f"from {units.time(verdict.late_from_ns)} on; percentiles as measured",
            packets=len(verdict.late),
            excess_ns=verdict.excess_ns,
            share=cause_wording.share(1_000_000 if verdict.excess_ns else 0),
            without_ns=tuple(explained.at(p, verdict.quantiles_ns) for p in QUANTILES),
            whole=True,
        )
    )
    return rows


def _row(explained: HostExplanation, name: str, cause: HostCause) -> CauseRow:
    return CauseRow(
        name,
        cause.signature.what if cause.signature else _kind(cause.kind),
        cause.events,
        cause.late_packets,
        cause.excess_ns,
        cause_wording.share(cause.share_ppm),
        tuple(explained.at(p, cause.without_ns) for p in QUANTILES),
        cause.signature.checks if cause.signature else (),
    )


def _others(verdict: HostVerdict, rest: Sequence[HostCause]) -> CauseRow:
    part_ns = sum(cause.excess_ns for cause in rest)
    places = {place for place, cause in enumerate(verdict.causes) if cause in rest}
    touched = sum(any(place in places for place, _ in late.causes) for late in verdict.late)
    return CauseRow(
        f"{len(rest)} other cause{'s' if len(rest) > 1 else ''}",
        events=sum(cause.events for cause in rest),
        packets=touched,
        excess_ns=part_ns,
        share=cause_wording.share(verdict.ppm(part_ns)),
    )


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


def _notes(explained: ExplainedRun) -> list[str]:
    found = explained.explanation
    notes = []
    if found.holes:
        notes.append(f"The trace has {units.count(found.holes)} holes, where events were lost.")
    if found.missing:
        notes.append(f"This kernel lacks the events {units.printable(', '.join(found.missing))}.")
    if explained.events is None:
        notes.append("The run keeps no trace, so that the host's events are not shown.")
    return notes
