"""Why the worst packets of a run of hours were late, by what was kept around each of them."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.analysis import analyze
from tailtrim.analysis.explain.traced import Host, traced_by
from tailtrim.errors import CaptureError, RunDirectoryError
from tailtrim.results import EVENTS, RunDirectory
from tailtrim.results.layout import AROUND, CAPTURE, around

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = "tailtrim.worst-packets/1"
_TAPS = ("ingress", "egress")


@dataclass(frozen=True, slots=True)
class WorstPacket:
    """One of the worst packets: its time of entry, and the causes by the trace around it.

    ``host`` has the causes of all late packets around it, and of the late packets only this one. It
    is ``None`` without a trace. ``complete`` is false if the captures or the trace do not cover the
    whole time around the packet.
    """

    ingress_ns: int
    latency_ns: int
    complete: bool
    host: Host | None


@dataclass(frozen=True, slots=True)
class WorstPackets:
    """The worst packets of a run, the slowest first; ``directory`` is that of the run."""

    run: str
    packets: tuple[WorstPacket, ...]
    directory: RunDirectory = field(repr=False, compare=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the reader about the traces."""
        hosts = [packet.host for packet in self.packets if packet.host is not None]
        holes = sum(host.holes for host in hosts)
        return (f"the traces have {units.counted(holes, 'hole')}",) if holes else ()

    def as_json(self) -> dict[str, Any]:
        """Return the form that ``--json`` prints."""
        packets = [asdict(packet) for packet in self.packets]
        return {"schema": SCHEMA, "run": self.run, "packets": packets}


def worst_packets(run: RunDirectory, *, cpu: int | None = None) -> WorstPackets:
    """Explain the worst packets of a run that was kept by minute.

    Args:
        run: its run directory.
        cpu: the CPU that serves packets; needed where the trace covers several.

    Raises:
        RunDirectoryError: the files kept around a packet cannot be read.

    """
    told = run.capture().get("around")
    if not isinstance(told, list) or not [*(run.path / AROUND).glob(around("*", EVENTS))]:
        raise RunDirectoryError(
            f"{run.path}: kept by minute, which has no samples, and without a trace; with"
            " trace: true in its plan, the causes of its worst packets are known"
        )
    try:
        packets = tuple(_packet(run, one, cpu) for one in told)
    except (KeyError, TypeError) as error:
        message = f"{run.path / CAPTURE}: around: cannot be read: {error}"
        raise RunDirectoryError(message) from error
    return WorstPackets(run.name, packets, run)


def _packet(run: RunDirectory, told: dict[str, Any], cpu: int | None) -> WorstPacket:
    ingress_ns, latency_ns = int(told["ingress_ns"]), int(told["latency_ns"])
    complete = bool(told["complete"])
    kept = run.path / AROUND
    events = kept / around(ingress_ns, EVENTS)
    if not events.is_file():
        return WorstPacket(ingress_ns, latency_ns, complete, None)
    captures = [kept / around(ingress_ns, f"{tap}.pcap.zst") for tap in _TAPS]
    with tempfile.TemporaryDirectory(prefix="tailtrim-") as scratch:
        host = _explained(captures, events, Path(scratch) / "run", cpu)
    complete = complete and bool(told["trace"]["complete"])
    late = [one for one in host.verdict["late"] if one["arrival_ns"] == ingress_ns]
    host = replace(host, verdict={**host.verdict, "late": late})
    return WorstPacket(ingress_ns, latency_ns, complete, host)


def _explained(captures: Sequence[Path], events: Path, scratch: Path, cpu: int | None) -> Host:
    ingress, egress = captures
    try:
        analyze(ingress, egress, skip_s=0, out=scratch)
    except CaptureError as error:
        raise RunDirectoryError(str(error)) from error
    return traced_by(events, RunDirectory(scratch), cpu=cpu)
