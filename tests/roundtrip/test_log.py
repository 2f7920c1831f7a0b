"""Log of the agent's ping, as a table, a run directory and HiPerConTracer's results."""

from __future__ import annotations

import json
import struct
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tailtrim
from tailtrim import RunDirectory
from tailtrim.analysis.roundtrip import RoundTripError, read_hpct
from tailtrim.analysis.roundtrip.log import FIELDS, leave_runs, table
from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.export import convert

SCHEMA = Path(__file__).parents[2] / "schema" / "roundtrip.toml"
START_NS = 1_795_258_777_000_000_000
MISSING = -(2**63)


def record(number: int, **known: int) -> bytes:
    """Return an answered round trip: 10 ns to the queue, 20 to the driver, 900 there and back."""
    begin = START_NS + number // 2 * 1_000_000
    values = {
        "number": number,
        "intended_ns": begin - 50,
        "app_send_ns": begin,
        "queued_ns": begin + 10,
        "sent_ns": begin + 30,
        "received_ns": begin + 930,
        "app_receive_ns": begin + 1_000,
        "round_trip_ns": 900,
        "status": 255,
        "bytes": 52,
        "reply_bytes": 52,
        "reply_hops": 64,
    } | known
    return struct.pack("<18q", *(values.get(name, MISSING) for name in FIELDS))


def lost(number: int) -> bytes:
    names = ("received_ns", "app_receive_ns", "round_trip_ns", "reply_bytes", "reply_hops")
    return record(number, status=200, **dict.fromkeys(names, MISSING))


def summary() -> dict[str, Any]:
    """Return some summary: the agent writes it, and nobody here looks into it."""
    analysis = tailtrim.analyze(
        "examples/testpmd/ingress.pcap.zst", "examples/testpmd/egress.pcap.zst"
    )
    parsed: dict[str, Any] = json.loads(analysis.summary.text)
    return parsed


def leave(folder: Path, *records: bytes, streams: int = 1) -> Path:
    stream: dict[str, Any] = {
        "name": "far",
        "target": "[2001:db8::2]:862",
        "local": "[2001:db8::1]:4711",
        "protocol": "stamp",
        "traffic_class": 184,
        "packet_bytes": 52,
        "summary": summary(),
    }
    result = {"level": "software", "timeout_ns": 2_000_000_000, "streams": [stream] * streams}
    (folder / "ping.json").write_text(json.dumps(result))
    for index in range(streams):
        (folder / f"{index}.roundtrips").write_bytes(b"".join(records))
    return folder


def test_the_columns_are_what_the_schema_says(tmp_path: Path) -> None:
    trips = table(leave(tmp_path, record(0), lost(1)), 0)
    described = tomllib.loads(SCHEMA.read_text())["column"]
    assert trips.column_names == [column["name"] for column in described]
    for column in described:
        field = trips.schema.field(column["name"])
        assert field.type == pa.int64()
        assert field.nullable == column.get("nullable", False), column["name"]
    assert trips["round_trip_ns"].to_pylist() == [900, None]


def test_a_log_cut_off_is_told(tmp_path: Path) -> None:
    leave(tmp_path, record(0), record(1)[:-8])
    with pytest.raises(RoundTripError, match=r"0\.roundtrips"):
        table(tmp_path, 0)


def test_hipercontracers_view(tmp_path: Path) -> None:
    leave(tmp_path, record(0), record(1), lost(2), record(3, nic_sent_ns=5, nic_received_ns=105))
    (place,) = leave_runs(tmp_path, tmp_path / "run")
    run = RunDirectory(place)
    (file,) = convert(run, "hpct", tmp_path).files
    assert file.name == "Ping-UDP-#0-2001:db8::1-20261121T105937.000000-000000001.hpct.xz"
    first, second, third, fourth = read_hpct(file)
    assert (first.source, first.source_port, first.destination_port) == ("2001:db8::1", 4711, 862)
    assert (first.traffic_class, first.packet_bytes, first.response_bytes) == (184, 52, 52)
    assert (first.app_send_ns, first.queueing_ns, first.app_receive_ns) == (10, 20, 70)
    assert (first.application_ns, first.software_ns, first.hardware_ns) == (1_000, 900, -1)
    assert (first.burst_position, second.burst_position, third.burst_position) == (0, 1, 0)
    # A lost probe has the timeout in place of a time.
    assert (third.status, third.application_ns, third.software_ns) == (200, 2_000_000_000, -1)
    # Nobody stamped the end of it.
    assert third.time_source == 0x01660600
    assert (fourth.hardware_ns, fourth.time_source) == (100, 0x116666AA)


def test_no_two_probes_have_one_time(tmp_path: Path) -> None:
    # Sent by one call since the process was late, then a burst: hpct-results refused such files,
    # "Duplicate entry in input file".
    late = [record(0, intended_ns=START_NS - when) for when in (900, 500)]
    burst = [record(2), record(3)]
    leave(tmp_path, *late, *burst)
    (place,) = leave_runs(tmp_path, tmp_path / "run")
    (file,) = convert(RunDirectory(place), "hpct", tmp_path).files
    pings = read_hpct(file)
    told = [(ping.sent_ns - START_NS, ping.burst_position) for ping in pings]
    assert told == [(0, 0), (1, 0), (1_000_000, 0), (1_000_001, 1)]
    assert {ping.app_send_ns for ping in pings} == {10}


def test_a_run_of_captures_has_no_round_trips(tmp_path: Path, testpmd: tuple[Path, Path]) -> None:
    tailtrim.analyze(*testpmd, out=tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="ping") as raised:
        convert(RunDirectory(tmp_path / "run"), "hpct", tmp_path)
    assert len(raised.value.__notes__) == 1
