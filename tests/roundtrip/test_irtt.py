"""The JSON of irtt, with and without what a server may leave out."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.analysis.roundtrip import RoundTripError, read_irtt

if TYPE_CHECKING:
    from pathlib import Path

SENT_NS = 1_795_258_777_231_041_398


def document(*trips: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": {"irtt": "0.9.0", "protocol": 1, "json_format": 1},
        "system_info": {},
        "config": {
            "remote_address": "10.0.0.2:2112",
            "local_address": "10.0.0.1:5000",
            "params": {"length": 60},
        },
        "stats": {"duplicates": 3},
        "round_trips": list(trips),
    }


def answered(number: int) -> dict[str, Any]:
    return {
        "seqno": number,
        "lost": "false",
        "timestamps": {
            "client": {
                "send": {"wall": SENT_NS, "monotonic": 1},
                "receive": {"wall": SENT_NS + 132_416, "monotonic": 2},
            },
            "server": {"receive": {"wall": SENT_NS + 87_770}, "send": {"wall": SENT_NS + 95_441}},
        },
        "delay": {"receive": 36_975, "rtt": 124_735, "send": 87_770},
        "ipdv": {},
    }


def lost(number: int) -> dict[str, Any]:
    return {
        "seqno": number,
        "lost": "true_down",
        "timestamps": {"client": {"send": {"wall": SENT_NS}, "receive": {}}, "server": {}},
        "delay": {},
        "ipdv": {},
    }


def write(folder: Path, data: Any) -> Path:
    place = folder / "irtt.json.gz"
    place.write_bytes(gzip.compress(json.dumps(data).encode()))
    return place


def test_every_round_trip(tmp_path: Path) -> None:
    session = read_irtt(write(tmp_path, document(answered(0), lost(1))))
    assert (session.remote, session.packet_bytes) == ("10.0.0.2:2112", 60)
    assert session.sent_ns == (SENT_NS, SENT_NS)
    assert session.round_trip_ns == (124_735, -1)


def test_a_server_without_stamps(tmp_path: Path) -> None:
    trip = answered(0)
    del trip["timestamps"]["server"]
    trip["delay"] = {"rtt": 124_735}
    assert read_irtt(write(tmp_path, document(trip))).round_trip_ns == (124_735,)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "not a JSON file of irtt"),
        ({"version": {"json_format": 2}}, "format 2"),
        (None, "not a JSON file"),
    ],
)
def test_other_files_are_told(tmp_path: Path, data: Any, told: str) -> None:
    with pytest.raises(RoundTripError, match=told):
        read_irtt(write(tmp_path, data))
    broken = document(answered(0))
    del broken["round_trips"]
    with pytest.raises(RoundTripError, match="lacks 'round_trips'"):
        read_irtt(write(tmp_path, broken))
