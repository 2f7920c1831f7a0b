"""The section that says why packets were late: what to read, and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.report import units
from tailtrim.report.figures import busy_period as busy
from tailtrim.report.figures import late_packets as late
from tailtrim.report.figures import without_causes as counterfactual
from tailtrim.report.inputs import host_events
from tailtrim.report.inputs import host_explanation as reasons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.report.figures.figure import Figure
    from tailtrim.report.figures.late_packets import Explained
    from tailtrim.report.inputs.host_explanation import Advice, Cause, Verdict
    from tailtrim.report.inputs.run_tables import Run

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
class Row:
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
class Why:
    """Why the packets of a run were late."""

    run: Run
    headline: str
    sentence: str
    rows: tuple[Row, ...]
    advice: tuple[Advice, ...]
    notes: tuple[str, ...]
    figures: tuple[Figure, ...]


def explain(runs: Sequence[Run]) -> list[Why]:
    """Return what is to be said of the runs that have an explanation."""
    known = [(run, why) for run in runs if (why := reasons.read(run.directory)) is not None]
    if not known:
        return []
    events = min(_MOST_OF_RUN, _MOST_EVENTS // len(known))
    packets = _PACKETS if len(known) <= _FEW_RUNS else 1
    return [
        _why(late.Explained(run, why, host_events.read(run, why)), events, packets)
        for run, why in known
    ]


def _why(explained: Explained, events: int, packets: int) -> Why:
    verdict = explained.reasons.verdict
    drawn = [
        late.late_packets(explained, events),
        counterfactual.without_causes(explained),
        *busy.packets(explained, packets),
    ]
    rows = tuple(_rows(explained.reasons))
    return Why(
        explained.run,
        _headline(explained),
        reasons.sentence(verdict),
        rows,
        verdict.advice,
        tuple(_notes(explained)),
        tuple(figure for figure in drawn if figure is not None),
    )


def _headline(explained: Explained) -> str:
    """Return the largest part of the excess: a cause, the queue or what is unknown."""
    verdict = explained.reasons.verdict
    costly = zip(explained.causes, explained.labels, strict=True)
    parts = [(cause.excess_ns, label) for cause, label in costly]
    parts += [(verdict.queue_ns, "queueing behind packets"), (verdict.unknown_ns, "unknown")]
    part_ns, label = max(parts, key=lambda part: part[0])
    return f"above all {label} ({reasons.share(verdict.ppm(part_ns))})" if part_ns > 0 else ""


def _rows(explained: reasons.Reasons) -> list[Row]:
    verdict = explained.verdict
    costly = [
        (name, cause)
        for name, cause in zip(reasons.labels(verdict.causes), verdict.causes, strict=True)
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
        share = reasons.share(verdict.ppm(part_ns))
        rows.append(Row(name, what, packets=packets, excess_ns=part_ns, share=share))
    rows.append(
        Row(
            "All late packets",
            f"from {units.time(verdict.late_from_ns)} on; percentiles as measured",
            packets=len(verdict.late),
            excess_ns=verdict.excess_ns,
            share=reasons.share(1_000_000 if verdict.excess_ns else 0),
            without_ns=tuple(explained.at(p, verdict.quantiles_ns) for p in QUANTILES),
            whole=True,
        )
    )
    return rows


def _row(explained: reasons.Reasons, name: str, cause: Cause) -> Row:
    return Row(
        name,
        cause.signature.what if cause.signature else _kind(cause.kind),
        cause.events,
        cause.late_packets,
        cause.excess_ns,
        reasons.share(cause.share_ppm),
        tuple(explained.at(p, cause.without_ns) for p in QUANTILES),
        cause.signature.checks if cause.signature else (),
    )


def _others(verdict: Verdict, rest: Sequence[Cause]) -> Row:
    part_ns = sum(cause.excess_ns for cause in rest)
    places = {place for place, cause in enumerate(verdict.causes) if cause in rest}
    touched = sum(any(place in places for place, _ in late.causes) for late in verdict.late)
    return Row(
        f"{len(rest)} other cause{'s' if len(rest) > 1 else ''}",
        events=sum(cause.events for cause in rest),
        packets=touched,
        excess_ns=part_ns,
        share=reasons.share(verdict.ppm(part_ns)),
    )


def _kind(kind: str) -> str:
    known = {
        "nmi": "a non-maskable interrupt",
        "irq": "an interrupt",
        "softirq": "a softirq",
        "thread": "a thread that had the CPU",
        "fault": "a page fault",
        "gap": "nobody was seen to have the CPU",
        "hole": "events were lost here",
    }
    return known.get(kind, units.printable(kind))


def _notes(explained: Explained) -> list[str]:
    found = explained.reasons
    notes = []
    if found.holes:
        notes.append(f"The trace has {units.count(found.holes)} holes, where events were lost.")
    if found.missing:
        notes.append(f"This kernel lacks the events {units.printable(', '.join(found.missing))}.")
    if explained.events is None:
        notes.append("The run keeps no trace, so that the host's events are not shown.")
    return notes
