"""Causes of late packets in words: their names, the verdict of a trace, single packets."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tailtrim import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.explain.host_explanation import (
        AdvisedChange,
        CauseSignature,
        HostCause,
        HostExplanation,
        HostVerdict,
        Key,
        WorstExplained,
        WorstPacket,
    )

_PARTS = {
    "own_host_before": "this host before sending",
    "network": "network",
    "residence": "the far host",
    "own_host_behind": "this host after receiving",
}

#: Less would be shown as 0.0 %.
_LEAST_PPM = 500


def labels(causes: tuple[HostCause, ...]) -> list[str]:
    """Return the name of each cause; two that cost something differ at least in their detail."""
    short = [label(cause) for cause in causes]
    uses = Counter(text for text, cause in zip(short, causes, strict=True) if cause.excess_ns > 0)
    return [
        f"{text} ({_apart(cause, cause.signature)})" if uses[text] > 1 and cause.signature else text
        for text, cause in zip(short, causes, strict=True)
    ]


def label(cause: HostCause) -> str:
    """Return the name of a cause: its recognised one, else its own, and its sender."""
    name = cause.signature.name if cause.signature else named(cause.key)
    if cause.sender:
        sender, _ = cause.sender
        name = f"{name} by {sender.comm}" + (f" ({sender.pid})" if sender.pid else "")
    return units.printable(name)


def _apart(cause: HostCause, signature: CauseSignature) -> str:
    name = cause.kind if cause.name == signature.name else cause.name
    return units.printable(cause.detail or name)


def named(key: Key) -> str:
    """Return the name of the user of the CPU, as the trace has it."""
    kind, name, detail = key
    if kind == "hole":
        more = f": {detail}" if detail else ""
        return units.printable(f"not recorded (a hole in the trace{more})")
    return units.printable("/".join(filter(None, (name or kind, detail))))


def sentence(verdict: HostVerdict, *, most: int = 3) -> str:
    """Return the verdict in a sentence: the largest shares, the null, the error."""
    if verdict.null_ppm is None:
        null = "no chance baseline without events"
    else:
        null = f"by chance {share(verdict.null_ppm)}"
        if 2 * verdict.null_ppm > verdict.ppm(verdict.excess_ns - verdict.unknown_ns):
            null += ", more than half as much, so that these shares say little"
    costly = [
        (cause, name)
        for cause, name in zip(verdict.causes, labels(verdict.causes), strict=True)
        if cause.excess_ns > 0
    ]
    parts = [f"{share(cause.share_ppm)} {name}" for cause, name in costly[:most]]
    parts.append(f"{share(verdict.ppm(verdict.queue_ns))} queueing behind packets")
    parts.append(f"{share(verdict.ppm(verdict.unknown_ns))} unknown")
    return (
        f"Of the excess of packets from {units.time(verdict.late_from_ns)} on:"
        f" {', '.join(parts)} ({null}; timing error at most {units.time(verdict.error_ns)})."
    )


def gaps(explained: HostExplanation) -> Iterator[str]:
    """Yield sentences on what the trace lacks."""
    if explained.covered < 1:
        covered = share(round(explained.covered * 1_000_000))
        yield f"The trace covers {covered} of the run's packets: only these are explained."
    if explained.holes:
        holes = units.counted(explained.holes, "hole")
        yield f"The trace has {holes}, where it is not known what ran."
    if explained.missing:
        yield f"This kernel lacks the events {units.printable(', '.join(explained.missing))}."


def when(change: AdvisedChange) -> str:
    """Return when a change takes effect."""
    known = {"now": "at once", "next-boot": "at the next boot", "by-hand": "by hand"}
    return known.get(change.when, change.when)


def share(ppm: int) -> str:
    """Return millionths as percent."""
    return f"{units.fixed(ppm, 10_000, 1)} %"


def packet_sentences(explained: WorstExplained | None) -> list[str]:
    """Return a sentence for each packet, the slowest first; none without a trace."""
    if explained is None:
        return []
    if explained.problem is not None:
        return [units.printable(f"Not known: {explained.problem}")]
    return [packet_sentence(packet) for packet in explained.packets]


def packet_sentence(packet: WorstPacket) -> str:
    """Return time, latency and causes of a packet."""
    causes = _parts(packet) if packet.parts else _causes(packet)
    told = f"{units.moment(packet.ingress_ns)}: {units.time(packet.latency_ns)}, {causes}"
    if packet.complete:
        return told
    return f"{told}; captures or trace do not have all that happened around it"


def _parts(packet: WorstPacket) -> str:
    told = []
    for part in packet.parts:
        if part.share_ppm < _LEAST_PPM:
            continue
        usual = "" if part.usual_ns is None else f", usually {units.time(part.usual_ns)}"
        text = f"{share(part.share_ppm)} {_PARTS[part.name]} ({units.time(part.ns)}{usual})"
        if part.name == packet.host_part:
            text += f", of it by the trace of this host: {_causes(packet)}"
        told.append(text)
    return "; ".join(told) or "no part took longer than usual"


def _causes(packet: WorstPacket) -> str:
    if packet.host is None:
        return "no trace"
    verdict = packet.host.verdict
    if not verdict.late:
        return "the trace has nothing that delayed it"
    (late,) = verdict.late
    shares = [
        (ns * 1_000_000 // max(late.excess_ns, 1), name)
        for ns, name in late.parts(labels(verdict.causes))
    ]
    return ", ".join(f"{share(ppm)} {name}" for ppm, name in shares if ppm >= _LEAST_PPM)
