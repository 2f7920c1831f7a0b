"""Meters during live runs: an outlet's emulator, and hosts without energy counters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hosts import described
from outlet_emulator import PASSWORD, USER, Emulator

from tailtrim.laboratory.energy import pos_csv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hosts import Hosts
    from laboratory import Lab

COUNTERS = Path("/sys/class/powercap/intel-rapl:0")


@pytest.fixture
def outlet(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    monkeypatch.setitem(lab.environment, "METER_PASSWORD", PASSWORD)
    with Emulator("shelly-gen2") as emulator:
        yield emulator


def meter(outlet: Emulator) -> dict[str, Any]:
    return {
        "kind": "outlet",
        "model": outlet.model,
        "url": outlet.url,
        "outlet": 1,
        "user": USER,
        "password": {"environment": "METER_PASSWORD"},
        "accuracy_percent": 1.0,
    }


def test_three_states_are_measured_in_turn(lab: Lab, outlet: Emulator) -> None:
    energy = {"idle_s": 1, "ready_s": 1, "settle_s": 0.25, "meter": meter(outlet)}
    plan = lab.plan(dut={"preset": "forward"}, energy=energy, repeat=2)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    first, second = (lab.result(run, "energy") for run in ("run-000", "run-001"))
    assert first["order"] == ["idle", "ready", "loaded"]
    assert second["order"] == ["idle", "loaded", "ready"]
    for found in (first, second):
        (node,) = found["nodes"].values()
        assert {state["watts"] for state in node["states"].values()} == {42.0}, node
        assert node["failed"] == 0
        assert found["packets_per_s"] > 0
    rows = pos_csv.read(lab.folder / "out" / "run-000" / "energy_local.csv")
    assert {row.power_w for row in rows} == {(42.0,)}
    assert PASSWORD not in (lab.folder / "out" / "experiment.json").read_text()
    told = lab.run("energy", str(lab.folder / "out" / "run-000"), "--json")
    assert told.returncode == 0, told.stderr
    (cost,) = json.loads(told.stdout)["costs"]
    assert cost["watts"] == {"idle": 42.0, "ready": 42.0, "loaded": 42.0}
    assert cost["refused"]["above_ready_j_per_packet"].startswith("1 block, expected 2 or more")
    assert lab.left() == []


def test_a_meter_that_does_not_answer_ends_it_before_anything_is_measured(
    lab: Lab, outlet: Emulator
) -> None:
    outlet.watts = None
    plan = lab.plan(energy={"meter": meter(outlet), "settle_s": 0.1})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 3
    assert "power of this outlet" in ended.stderr
    assert lab.left() == []


def test_a_run_without_a_meter_is_told(lab: Lab) -> None:
    assert lab.run("run", str(lab.plan()), "--out", "out").returncode == 0
    told = lab.run("energy", str(lab.folder / "out" / "run-000"))
    assert told.returncode == 2
    assert "no meter was read" in told.stderr


def test_a_testbed_reads_its_meters(lab: Lab, three_hosts: Hosts, outlet: Emulator) -> None:
    said = described(three_hosts)
    said["nodes"]["dut"]["meter"] = meter(outlet)
    if not COUNTERS.exists():
        said["nodes"]["gen"]["meter"] = {"kind": "powercap"}
    ended = lab.run("testbed", "check", str(_written(lab, said)), "--json")
    found = {(one["where"], one["kind"]): one for one in json.loads(ended.stdout)["findings"]}
    assert "its meter tells 42.0 W (shelly-gen2 http" in str(
        [one["what"] for one in json.loads(ended.stdout)["findings"]]
    )
    if not COUNTERS.exists():
        # The reader of powercap was started there, and says that there are no counters.
        assert found["gen", "fault"]["what"].startswith("powercap of the node: no zones")


def test_hosts_are_measured_by_the_meters_of_their_file(
    lab: Lab, three_hosts: Hosts, outlet: Emulator
) -> None:
    said = described(three_hosts)
    said["nodes"]["dut"]["meter"] = meter(outlet)
    ended = lab.run("run", str(lab.plan(testbed=said)), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    found = lab.result("run-000", "energy")
    assert found["order"] == ["loaded"]
    assert found["nodes"]["dut"]["states"]["loaded"]["watts"] == 42.0
    for host in three_hosts.hosts.values():
        assert host.left() == []


def _written(lab: Lab, said: dict[str, Any]) -> Path:
    place = lab.folder / "lab.yml"
    place.write_text(json.dumps(said), encoding="utf-8")
    return place
