"""A trace of the CPUs for Perfetto (https://ui.perfetto.dev), in the JSON of Chrome's traces.

Each CPU is a process there, with a track for threads, softirqs and interrupts each; what is nested
in the trace is on another track. The worst packets of a run are beside them. Times are µs since the
trace began, which ``otherData`` has as time of the clock: since 1970 they would need more digits
than a reader keeps.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tailtrim import units
from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.export import Conversion
from tailtrim.results.drafts import replacing
from tailtrim.results.layout import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tailtrim.results import RunDirectory

_TRACKS = {"thread": (1, "threads"), "softirq": (2, "softirqs")}
_OTHERS = (3, "interrupts")
#: The process of packets, behind those of CPUs, which begin with 1: 0 is the idle task's.
_PACKETS = 1_000_000


def write(run: RunDirectory, out: Path) -> Conversion:
    """Write ``NAME.perfetto.json``, NAME being that of the run directory.

    Raises:
        RunDirectoryError: the run has no trace, or it cannot be read.
        OutputError: the file cannot be written.

    """
    events = run.path / EVENTS
    if not events.is_file():
        raise RunDirectoryError(
            f"{run.path}: has no trace; expected a run with trace: true in its plan, or the file"
            " that tailtrim trace --out wrote"
        )
    worst = run.table("worst", columns=["ingress_ns", "egress_ns"]).to_pylist()
    return _write(events, out / f"{run.name}.perfetto.json", worst)


def write_trace(events: Path, out: Path) -> Conversion:
    """Write a trace that was recorded without a run, as ``events.perfetto.json``.

    Raises:
        RunDirectoryError: the trace cannot be read.
        OutputError: the file cannot be written.

    """
    return _write(events, out / f"{events.name.partition('.')[0]}.perfetto.json", [])


def _write(events: Path, place: Path, worst: list[dict[str, int]]) -> Conversion:
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    try:
        with pa.input_stream(str(events), compression="zstd") as stream:
            header, *lines = map(json.loads, stream.read().decode().splitlines())
        begin_ns = header.get("armed_ns") or (lines[0]["start_ns"] if lines else 0)
        told = [json.dumps(one) for one in _told(lines, worst, begin_ns)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunDirectoryError(f"{events}: the trace cannot be read: {error}") from error
    other = json.dumps({"begin": units.moment(begin_ns), "begin_ns": str(begin_ns)})
    with replacing(place) as file:
        file.write(f'{{"displayTimeUnit":"ns","otherData":{other},"traceEvents":[\n'.encode())
        file.write(",\n".join(told).encode() + b"\n]}\n")
    return Conversion((place,))


def _told(
    events: list[dict[str, Any]], worst: list[dict[str, int]], begin_ns: int
) -> Iterator[dict[str, Any]]:
    """Yield the records: names of the tracks, events, and the worst packets."""
    for cpu in sorted({one["cpu"] for one in events}):
        yield _named("process_name", f"CPU {cpu}", pid=cpu + 1)
        for track, name in (*_TRACKS.values(), _OTHERS):
            yield _named("thread_name", name, pid=cpu + 1, tid=track)
    for one in events:
        sender = one.get("sender") or {}
        known = {"detail": one.get("detail"), "sender": sender.get("comm")}
        yield {
            "ph": "X",
            "name": one["name"] or one["kind"],
            "cat": one["kind"],
            "pid": one["cpu"] + 1,
            "tid": _TRACKS.get(one["kind"], _OTHERS)[0],
            "ts": (one["start_ns"] - begin_ns) / 1_000,
            "dur": (one["end_ns"] - one["start_ns"]) / 1_000,
            "args": {name: value for name, value in known.items() if value},
        }
    if worst:
        yield _named("process_name", "worst packets", pid=_PACKETS)
    for number, packet in enumerate(worst):
        shared = {"cat": "packet", "name": "packet", "id": number, "pid": _PACKETS, "tid": 1}
        for ph, end in (("b", "ingress_ns"), ("e", "egress_ns")):
            yield {"ph": ph, "ts": (packet[end] - begin_ns) / 1_000, **shared}


def _named(what: str, name: str, **where: int) -> dict[str, Any]:
    return {"ph": "M", "name": what, "args": {"name": name}, **where}
