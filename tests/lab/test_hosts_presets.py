"""Presets other than forwarding, on hosts: they run, or are refused before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hosts import described

if TYPE_CHECKING:
    from hosts import Hosts
    from laboratory import Lab


@pytest.mark.parametrize("path", ["direct", "bridge"])
def test_round_trips_are_measured_between_hosts(lab: Lab, three_hosts: Hosts, path: str) -> None:
    dut = {"preset": "reflector", "path": path}
    traffic = {"rate_pps": 500, "duration_s": 1, "frame_bytes": 100}
    plan = lab.plan(testbed=described(three_hosts), dut=dut, traffic=traffic)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    (stream,) = lab.result("run-000", "generator")["streams"]
    assert stream["probes"]["answered"] == stream["probes"]["due"] == 500
    assert lab.result("run-000", "nodes")["roles"] == {"client": "gen", "reflector": "dut"}
    for host in three_hosts.hosts.values():
        assert host.left() == []


@pytest.mark.parametrize(
    "more", [{"dut": {"preset": "forward", "disturb": "softirqs:1ms,50ms"}}, {"trace": True}]
)
def test_softirqs_and_traces_are_had_on_hosts(
    lab: Lab, three_hosts: Hosts, more: dict[str, Any]
) -> None:
    ended = lab.run(
        *("run", str(lab.plan(testbed=described(three_hosts), **more)), "--out", "out", "--json")
    )
    assert ended.returncode == 0, ended.stderr
    run = lab.folder / "out" / "run-000"
    left = "disturbed.csv" if "dut" in more else "trace.json"
    assert (run / left).stat().st_size > 0
    for host in three_hosts.hosts.values():
        assert host.left() == []


def test_a_preset_that_hosts_cannot_have_is_told_before_anything_runs(
    lab: Lab, three_hosts: Hosts
) -> None:
    plan = lab.plan(testbed=described(three_hosts), dut={"preset": "xdp"}, floor=True)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 3
    assert "preset xdp" in ended.stderr
    assert not (lab.folder / "out" / "run-000").exists()
