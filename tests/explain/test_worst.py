"""Why the worst packets of a run by minute were late, by what was kept around them."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from made_up import HEADER, traced

from tailtrim.analysis.explain import worst_packets
from tailtrim.errors import RunDirectoryError
from tailtrim.results import EVENTS, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TAPS = ("ingress", "egress")


def captured(path: Path, stamps_ns: Iterable[int]) -> None:
    """Write a capture of packets that differ."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)]
    for number, ns in enumerate(stamps_ns):
        frame = bytes(12) + b"\x88\xb5" + number.to_bytes(50, "big")
        parts += [struct.pack("<IIII", *divmod(ns, 10**9), len(frame), len(frame)), frame]
    with pa.output_stream(str(path), compression="zstd") as stream:
        stream.write(b"".join(parts))


@pytest.fixture
def run(tmp_path: Path, testpmd: tuple[Path, Path]) -> RunDirectory:
    """A run by minute, whose slowest packet waits for a shootdown of 30 µs."""
    folder = tmp_path / "run"
    traced(folder, testpmd, HEADER)
    samples = RunDirectory(folder).table("sample")
    came, left = (samples[name].to_pylist() for name in ("ingress_ns", "egress_ns"))
    latency_ns, ingress_ns = max((out - into, into) for into, out in zip(came, left, strict=True))
    around = folder / "around"
    around.mkdir()
    for tap, stamps in zip(TAPS, (came, left), strict=True):
        captured(around / f"{ingress_ns}-{tap}.pcap.zst", stamps)
    (folder / EVENTS).rename(around / f"{ingress_ns}-{EVENTS}")
    (folder / "sample.parquet").unlink()
    (folder / "minute.jsonl").touch()
    told = {"ingress_ns": ingress_ns, "latency_ns": latency_ns, "complete": True}
    told["trace"] = {"complete": True, "events": 200, "error_ns": 100}
    (folder / "capture.json").write_text(json.dumps({"around": [told]}))
    return RunDirectory(folder)


def changed(run: RunDirectory, **more: Any) -> None:
    path = run.path / "capture.json"
    (told,) = json.loads(path.read_text())["around"]
    path.write_text(json.dumps({"around": [told | more]}))


def test_the_cause_of_the_worst_packet_is_that_of_the_trace_around_it(run: RunDirectory) -> None:
    (packet,) = worst_packets(run).packets
    assert packet.complete
    assert packet.host is not None
    verdict = packet.host.verdict
    (late,) = verdict["late"]
    assert (late["arrival_ns"], late["latency_ns"]) == (packet.ingress_ns, packet.latency_ns)
    place, ns = max(late["causes"], key=lambda cause: cause[1])
    assert verdict["causes"][place]["detail"] == "flush_tlb_func"
    assert ns > late["excess_ns"] / 2


def test_a_trace_that_lacks_some_of_the_time_is_told(run: RunDirectory) -> None:
    changed(run, trace={"complete": False})
    (packet,) = worst_packets(run).packets
    assert not packet.complete


def test_a_packet_without_a_trace_among_others_is_told(run: RunDirectory) -> None:
    changed(run, ingress_ns=5)
    (packet,) = worst_packets(run).packets
    assert packet.host is None


def test_a_run_by_minute_without_a_trace_says_how_to_have_one(run: RunDirectory) -> None:
    for path in (run.path / "around").glob(f"*-{EVENTS}"):
        path.unlink()
    with pytest.raises(RunDirectoryError, match="trace: true"):
        worst_packets(run)


@pytest.mark.parametrize("around", [[{"ingress_ns": 5}], [3]])
def test_a_damaged_record_is_told(run: RunDirectory, around: list[Any]) -> None:
    (run.path / "capture.json").write_text(json.dumps({"around": around}))
    with pytest.raises(RunDirectoryError, match=r"capture\.json: around: "):
        worst_packets(run)


def test_a_damaged_capture_is_told(run: RunDirectory) -> None:
    for path in (run.path / "around").glob("*-ingress*"):
        path.write_bytes(b"no capture")
    with pytest.raises(RunDirectoryError, match=r"ingress\.pcap\.zst"):
        worst_packets(run)
