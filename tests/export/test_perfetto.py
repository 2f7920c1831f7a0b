"""Traces of the CPUs for Perfetto, by the rules of Chrome's format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.export import convert
from tailtrim.publishing.export.perfetto import write_trace
from tailtrim.results import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import tailtrim

    MakeRun = Callable[..., tailtrim.RunDirectory]

BEGIN_NS = 1_700_000_000_000_000_000
HEADER = {"schema": "tailtrim.events/1", "error_ns": 22, "cpus": "3", "armed_ns": BEGIN_NS}


def _event(kind: str, name: str, at_ns: int, long_ns: int, **more: Any) -> dict[str, Any]:
    start_ns = BEGIN_NS + at_ns
    span = {"cpu": 3, "start_ns": start_ns, "end_ns": start_ns + long_ns}
    return {**span, "kind": kind, "name": name, **more}


def _store(place: Path) -> None:
    events = [
        _event("thread", "bash", 1_500, 300_000, detail="pid 812"),
        _event("irq", "call_function", 100_001, 2_000, sender={"pid": 9, "comm": "stress"}),
    ]
    with pa.output_stream(str(place), compression="zstd") as stream:
        stream.write("\n".join(json.dumps(line) for line in (HEADER, *events)).encode())


def test_a_trace_alone_is_one_track_a_kind_of_each_cpu(tmp_path: Path) -> None:
    _store(tmp_path / EVENTS)
    (file,) = write_trace(tmp_path / EVENTS, tmp_path).files
    assert file.name == "events.perfetto.json"
    told = json.loads(file.read_text())
    assert told["otherData"]["begin_ns"] == str(BEGIN_NS)
    bash, interrupt = [one for one in told["traceEvents"] if one["ph"] == "X"]
    assert (bash["name"], bash["cat"], bash["ts"], bash["dur"]) == ("bash", "thread", 1.5, 300.0)
    assert (interrupt["ts"], interrupt["args"]) == (100.001, {"sender": "stress"})
    # On one track, an interrupt within a thread has to be nested to the nanosecond.
    assert bash["pid"] == interrupt["pid"] != 0
    assert bash["tid"] != interrupt["tid"]
    names = {one["args"]["name"] for one in told["traceEvents"] if one["ph"] == "M"}
    assert names == {"CPU 3", "threads", "softirqs", "interrupts"}


def test_the_worst_packets_of_a_run_are_beside_its_trace(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run([(BEGIN_NS, 5_000), (BEGIN_NS + 10_000, 305_000)])
    with pytest.raises(RunDirectoryError, match="has no trace"):
        convert(run, "perfetto", tmp_path)
    _store(run.path / EVENTS)
    (file,) = convert(run, "perfetto", tmp_path).files
    told = json.loads(file.read_text())["traceEvents"]
    (begin, *_), (end, *_) = ([one for one in told if one["ph"] == kind] for kind in "be")
    assert (begin["ts"], end["ts"], begin["id"]) == (10.0, 315.0, end["id"])


def test_what_is_no_trace_is_told(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_text("no trace")
    with pytest.raises(RunDirectoryError, match="cannot be read"):
        write_trace(tmp_path / EVENTS, tmp_path)
