"""Round trips as run directories: their content is the measurement."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tailtrim import RunDirectory
from tailtrim.analysis.roundtrip import HpctPing, RoundTripError, Series, write_hpct, write_run
from tailtrim.analysis.roundtrip.imported import leave_runs

if TYPE_CHECKING:
    from pathlib import Path

START_NS = 1_795_258_777_000_000_000


def test_order_and_losses(tmp_path: Path) -> None:
    sent = START_NS + np.arange(1_000, dtype=np.int64) * 1_000_000
    took = 10_000 + (np.arange(1_000, dtype=np.int64) * 7_919) % 5_000_000
    answered = np.arange(1_000) % 10 != 3
    order = np.random.default_rng(1).permutation(1_000)
    series = Series("some", sent[order], answered[order], took[order], 66)
    summary = write_run(tmp_path / "run", series)
    assert (summary.ingress.packets, summary.ingress.lost, summary.samples) == (1_000, 100, 900)
    table = RunDirectory(tmp_path / "run").table("sample")
    assert sorted(table["latency_ns"].to_pylist()) == sorted(took[answered].tolist())
    assert summary.latency_ns.max == took[answered].max()


def test_no_reply_at_all(tmp_path: Path) -> None:
    nothing = np.full(20, -1, np.int64)
    series = Series("some", START_NS + np.arange(20, dtype=np.int64), nothing > 0, nothing, 66)
    summary = write_run(tmp_path / "run", series)
    assert (summary.ingress.lost, summary.samples) == (20, 0)


def ping(position: int, destination: str, **fields: int) -> HpctPing:
    usual = {
        "measurement": 1,
        "sent_ns": START_NS + position * 1_000_000,
        "burst_position": 0,
        "traffic_class": 0,
        "packet_bytes": 44,
        "response_bytes": 44,
        "checksum": 0,
        "source_port": 0,
        "destination_port": 0,
        "status": 255,
        "time_source": 0x11666600,
        "app_send_ns": 1,
        "queueing_ns": 1,
        "app_receive_ns": 1,
        "application_ns": 10_000 + position,
        "software_ns": 5_000 + position,
        "hardware_ns": -1,
    }
    numbers = usual | fields
    return HpctPing(module="ICMP", source="10.0.0.1", destination=destination, **numbers)


def test_each_pair_of_hosts_has_its_run(tmp_path: Path) -> None:
    file = tmp_path / "a.hpct.gz"
    pings = [ping(at, f"10.0.0.{2 + at % 2}") for at in range(100)]
    pings.append(ping(100, "10.0.0.2", status=200, application_ns=2_000_000_000))
    write_hpct(file, pings)
    runs, others = leave_runs([file], tmp_path / "out", level="software")
    assert not others
    assert [name for name, _, _ in runs] == [
        "ICMP 10.0.0.1 to 10.0.0.2",
        "ICMP 10.0.0.1 to 10.0.0.3",
    ]
    first = runs[0][2]
    assert (first.samples, first.ingress.lost, first.latency_ns.min) == (50, 1, 5_000)
    provenance = json.loads((tmp_path / "out" / "0" / "provenance.json").read_text())
    assert provenance["inputs"][0]["path"] == str(file)
    with pytest.raises(RoundTripError, match="hardware"):
        leave_runs([file], tmp_path / "none", level="hardware")
