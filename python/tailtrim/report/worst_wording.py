"""Why the worst packets of a run of hours were late, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tailtrim.report import units
from tailtrim.report.cause_wording import labels, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.report.inputs.worst_packets import WorstExplained, WorstPacket

_SECOND_NS = 10**9
_MICROSECOND_NS = 1_000
#: Less would be shown as 0.0 %.
_LEAST_PPM = 500


def sentences(explained: WorstExplained | None) -> list[str]:
    """Return a sentence for each packet, the slowest first; none without a trace."""
    if explained is None:
        return []
    if explained.problem is not None:
        return [units.printable(f"Not known: {explained.problem}")]
    return [sentence(packet) for packet in explained.packets]


def sentence(packet: WorstPacket) -> str:
    """Return when a packet came, how long it took and what its excess consists of."""
    told = f"{_clock(packet.ingress_ns)}: {units.time(packet.latency_ns)}, {_causes(packet)}"
    if packet.complete:
        return told
    return f"{told}; captures or trace do not have all that happened around it"


def _causes(packet: WorstPacket) -> str:
    if packet.host is None:
        return "no trace"
    verdict = packet.host.verdict
    if not verdict.late:
        return "the trace has nothing that delayed it"
    (late,) = verdict.late
    names = labels(verdict.causes)
    parts = [(ns, names[place]) for place, ns in late.causes]
    parts += [(late.queue_ns, "queueing behind packets"), (late.unknown_ns, "unknown")]
    return ", ".join(_shares(parts, max(late.excess_ns, 1)))


def _shares(parts: list[tuple[int, str]], excess_ns: int) -> Iterator[str]:
    for ns, name in sorted(parts, key=lambda part: -part[0]):
        if (ppm := ns * 1_000_000 // excess_ns) >= _LEAST_PPM:
            yield f"{share(ppm)} {name}"


def _clock(ns: int) -> str:
    second = datetime.fromtimestamp(ns // _SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{second}.{ns % _SECOND_NS // _MICROSECOND_NS:06} UTC"
