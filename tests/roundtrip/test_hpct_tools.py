"""Results of HiPerConTracer 2.2.10, compared to the last field with the output of its own tool."""

from __future__ import annotations

import csv
import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest
from releases import of_release

from tailtrim.analysis.roundtrip import HpctPing, read_hpct, write_hpct
from tailtrim.analysis.roundtrip.hpct import hpct_name

pytestmark = pytest.mark.packages

DATA = Path(__file__).parents[1] / "data" / "hpct"
PINGS = ("ping-icmp", "ping-udp", "ping-refused")

#: Columns of hpct-results, and the format of their values.
PING_COLUMNS = {
    "MeasurementID": ("measurement", "{}"),
    "SourceIP": ("source", "{}"),
    "DestinationIP": ("destination", "{}"),
    "Timestamp": ("sent_ns", "{:x}"),
    "BurstSeq": ("burst_position", "{}"),
    "TrafficClass": ("traffic_class", "{:x}"),
    "PacketSize": ("packet_bytes", "{}"),
    "ResponseSize": ("response_bytes", "{}"),
    "Checksum": ("checksum", "{:x}"),
    "SourcePort": ("source_port", "{}"),
    "DestinationPort": ("destination_port", "{}"),
    "Status": ("status", "{}"),
    "TimeSource": ("time_source", "{:08x}"),
    "Delay.AppSend": ("app_send_ns", "{}"),
    "Delay.Queuing": ("queueing_ns", "{}"),
    "Delay.AppReceive": ("app_receive_ns", "{}"),
    "RTT.App": ("application_ns", "{}"),
    "RTT.SW": ("software_ns", "{}"),
    "RTT.HW": ("hardware_ns", "{}"),
}


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of hpct-results."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=" "))


def told(record: Any, columns: dict[str, tuple[str, str]]) -> dict[str, str]:
    return {name: how.format(getattr(record, field)) for name, (field, how) in columns.items()}


def test_nothing_of_a_ping_is_left_out() -> None:
    fields = {field.name for field in dataclasses.fields(HpctPing)} - {"module"}
    assert {field for field, _ in PING_COLUMNS.values()} == fields


@pytest.mark.parametrize("name", PINGS)
def test_pings_are_what_its_own_tool_reads(name: str) -> None:
    pings = read_hpct(DATA / f"{name}.hpct")
    theirs = rows(DATA / f"{name}.csv")
    assert len(pings) == len(theirs) == 6
    for ping, row in zip(pings, theirs, strict=True):
        assert row.pop("Ping") == ("#Pi" if ping.module == "ICMP" else "#Pu")
        assert told(ping, PING_COLUMNS) == row


def converted(place: Path, *files: Path) -> list[dict[str, str]]:
    """Return what hpct-results makes of files, or skip loudly."""
    words = [*of_release("sid-peers", "hpct-results"), *map(str, files), "-o", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return rows(place)


@pytest.mark.packages
@pytest.mark.parametrize("name", PINGS)
def test_its_tool_reads_the_same_from_what_we_write(name: str, tmp_path: Path) -> None:
    pings = read_hpct(DATA / f"{name}.hpct")
    ours = tmp_path / hpct_name(pings)
    write_hpct(ours, pings)
    assert converted(tmp_path / "ours.csv", ours) == rows(DATA / f"{name}.csv")


@pytest.mark.packages
def test_its_tool_merges_ours_and_its_own(tmp_path: Path) -> None:
    icmp, udp = (read_hpct(DATA / f"{name}.hpct") for name in PINGS[:2])
    ours = tmp_path / hpct_name(icmp)
    write_hpct(ours, icmp)
    merged = converted(tmp_path / "merged.csv", ours, DATA / "ping-udp.hpct")
    assert len(merged) == len(icmp) + len(udp)
    stamps = {row["Timestamp"] for row in merged}
    assert stamps == {f"{ping.sent_ns:x}" for ping in (*icmp, *udp)}
