"""Folders of late probes that a watch has kept, as explain reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.analysis.explain import catches
from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.report.cause_wording import packet_sentences

if TYPE_CHECKING:
    from pathlib import Path

SERVICE = {"base_ns": 1, "service_ns": 1}
CAUSE = {"kind": "thread", "name": "hog", "events": 1, "late_packets": 1, "excess_ns": 900}
LATE = {"arrival_ns": 5, "latency_ns": 1_000, "excess_ns": 1_000, "queue_ns": 0, "unknown_ns": 100}
VERDICT = {
    "service": SERVICE,
    "error_ns": 1,
    "quantiles_ns": [],
    "late_from_ns": 1,
    "excess_ns": 1,
    "queue_ns": 0,
    "unknown_ns": 0,
    "late": [LATE | {"causes": [[0, 900]]}],
    "causes": [CAUSE | {"share_ppm": 900_000, "without_ns": []}],
}
PACKET = {
    "ingress_ns": 1_795_939_267_123_456_789,
    "latency_ns": 152_000_000,
    "complete": True,
    "parts": [
        {"name": "residence", "ns": 150_000_000, "usual_ns": 41_000, "share_ppm": 998_000},
        {"name": "own_host_behind", "ns": 1_000_000, "usual_ns": None, "share_ppm": 2_000},
        {"name": "network", "ns": 1_000_000, "usual_ns": 1_300_000, "share_ppm": 0},
    ],
    "host_part": "own_host_behind",
    "host": {"cpu": 1, "quantiles": [], "verdict": VERDICT},
}


def caught(folder: Path, name: str, **worst: Any) -> Path:
    """Write a catch of a target."""
    path = folder / "far" / "catches" / name
    path.mkdir(parents=True)
    (folder / "far" / "target.json").write_text("{}")
    told: dict[str, Any] = {
        "schema": "tailtrim.catch/1",
        "target": "far",
        "bad": {"far": 1, "near": 2},
    }
    told["trace"] = {"missing": "needs root"}
    (path / "catch.json").write_text(json.dumps(told))
    told = {"schema": "tailtrim.worst-packets/1", "packets": [PACKET]}
    (path / "worst.json").write_text(json.dumps(told | worst))
    return path


def test_parts_and_causes_of_a_late_probe_are_told(tmp_path: Path) -> None:
    (found,) = catches.below(caught(tmp_path, "2026-11-29T08-01-07.123"))
    (told,) = packet_sentences(found.worst)
    assert told.startswith("2026-11-29 08:01:07.123456")
    assert "152 ms, 99.8 % the far host (150 ms, usually 41.0 µs); 0.2 % this host after" in told
    assert told.endswith("(1.00 ms), of it by the trace of this host: 90.0 % hog, 10.0 % unknown")
    assert "network" not in told
    assert found.no_trace == "needs root"
    assert found.as_json()["packets"][0]["parts"][0]["name"] == "residence"


def test_a_target_has_all_of_its_catches_in_order(tmp_path: Path) -> None:
    caught(tmp_path, "2026-11-30T08-00-00.000", packets=[], problem="no late reply came")
    caught(tmp_path, "2026-11-29T08-00-00.000")
    found = catches.below(tmp_path / "far")
    assert [one.path.name[:10] for one in found] == ["2026-11-29", "2026-11-30"]
    assert packet_sentences(found[1].worst) == ["Not known: no late reply came"]
    # It had late ones within that of another target.
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "target.json").write_text("{}")
    assert [one.target for one in catches.below(tmp_path / "near")] == ["far", "far"]
    # Half written ones do not count.
    (tmp_path / "far" / "catches" / ".draft-2026-12-01T08-00-00.000").mkdir()
    assert len(catches.below(tmp_path / "far")) == 2


def test_other_folders_have_none_and_damaged_ones_are_named(tmp_path: Path) -> None:
    assert catches.below(tmp_path) == []
    (tmp_path / "target.json").write_text("{}")
    with pytest.raises(RunDirectoryError, match="without caught probes"):
        catches.below(tmp_path)
    path = caught(tmp_path, "2026-11-29T08-00-00.000")
    (path / "worst.json").write_text('{"schema": "tailtrim.worst-packets/1", "packets": [{}]}')
    with pytest.raises(RunDirectoryError, match=r"worst\.json.*ingress_ns"):
        catches.below(path)
    (path / "worst.json").unlink()
    with pytest.raises(RunDirectoryError, match="not a whole catch"):
        catches.below(path)
