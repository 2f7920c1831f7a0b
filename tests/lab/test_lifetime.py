"""Devices that are kept up between runs: warmed up, shared, and started again when they die."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import TYPE_CHECKING, Any

from hosts import described
from laboratory import all_counted
from test_ending import sent, started, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from hosts import Hosts
    from laboratory import Lab

#: Until 4,000 packets have come it starts programs; each of them takes page faults.
WARMING = """#!/bin/sh
( until [ "$(awk '/d0:/ {{ print ($3 > 4000) }}' /proc/self/net/dev)" = 1 ]; do :; done
echo settled ) &
exec {agent} forward --ingress "$1" --egress "$2"
"""


def kept(lab: Lab, **plan: Any) -> Path:
    """Return a plan with a device that is kept up, and which is not the one that is measured."""
    device = lab.folder / "device"
    device.write_text(WARMING.format(agent=lab.agent))
    device.chmod(0o755)
    dut = {"preset": "command", "command": f"{device} {{in}} {{out}}", "lifetime": "configuration"}
    # On a machine that does other things latencies seldom stand still.
    limits = {"lateness_p99_us": 1e6, "sent_share": 0.5, "warm_up_s": 25}
    return lab.plan(**{"dut": dut, "limits": limits} | plan)


def devices(lab: Lab) -> list[dict[str, Any]]:
    places = sorted((lab.folder / "out" / "devices").iterdir())
    return [json.loads((place / "device.json").read_text()) for place in places]


def test_runs_share_a_device_that_was_warmed_up(lab: Lab) -> None:
    plan = kept(lab, loop={"rate": [2_000, 5_000]}, traffic={"rate_pps": "$rate", "duration_s": 1})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    (device,) = devices(lab)
    first, *_, last = windows = device["warm_up"]["windows"]
    assert len(windows) > 1
    assert "page faults" in first["changes"]
    assert first["page_faults"] > 1_000
    assert last["page_faults"] == 0
    for number, run in enumerate(("run-000", "run-001")):
        record = lab.result(run, "device")
        assert (record["lifetime"], record["device"]) == ("configuration", "device-000")
        assert (record["runs_before"], record["warm_up"]) == (number, device["warm_up"])
        doubts = [d for d in lab.result(run, "outcome")["invalid"] if "not steady" in d]
        assert bool(doubts) != device["warm_up"]["steady"]
    # Lines are as wide as the terminal.
    printed = " ".join(ended.stdout.split())
    assert "device-000 (from " in printed
    assert f"page faults {first['page_faults']:,} \N{RIGHTWARDS ARROW} 0" in printed
    # Output of its start is in the device's log; logs of runs have the output while they lasted.
    assert "settled" in (lab.folder / "out" / "devices" / "device-000" / "dut.log").read_text()
    assert "settled" not in (lab.folder / "out" / "run-001" / "dut.log").read_text()
    assert "kept up between runs" in (lab.folder / "out" / "report" / "report.html").read_text()
    assert not list((lab.folder / "out").glob(".run-*"))
    assert lab.left() == []


def test_a_device_that_is_not_steady_in_time_makes_its_runs_invalid(lab: Lab) -> None:
    limits = {"lateness_p99_us": 1e6, "sent_share": 0.5, "warm_up_s": 5}
    ended = lab.run("run", str(kept(lab, limits=limits)), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    told = "the device was not steady within 5 s: page faults"
    doubts = lab.result("run-000", "outcome")["invalid"]
    assert any(doubt.startswith(told) for doubt in doubts), lab.result("run-000", "device")


def test_a_device_that_dies_in_a_run_is_told_and_started_again(lab: Lab) -> None:
    limits = {"lateness_p99_us": 1e6, "sent_share": 0.5, "warm_up_s": 5}
    traffic = {"rate_pps": 5_000, "duration_s": 3}
    dut = {"preset": "forward", "lifetime": "configuration"}
    plan = kept(lab, dut=dut, limits=limits, traffic=traffic, repeat=2)
    out = lab.folder / "out"
    with started(lab, "run", str(plan), "--out", "out", "--json") as process:
        wait_until((out / "devices" / "device-000" / "device.json").exists, process)
        wait_until(lambda: sent(lab.find("generate")) > 100, process)
        device = lab.find("forward")
        assert device is not None
        os.kill(device, signal.SIGKILL)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 4
    first, second = devices(lab)
    assert "tailtrim-agent forward" in first["failed"]
    assert "failed" not in second
    assert "warning: device-000 was started again" in told
    assert lab.result("run-001", "device")["device"] == "device-001"
    assert not (out / "run-000" / "summary.json").exists()
    again = lab.run("run", str(plan), "--out", "out", "--resume", "--json")
    assert again.returncode == 0, again.stderr
    assert lab.result("run-000", "device")["device"] == "device-002"
    assert lab.left() == []


def test_a_device_that_passes_nothing_fails_its_runs_at_once(lab: Lab) -> None:
    dut = {"preset": "command", "command": "sleep 1000", "lifetime": "configuration"}
    plan = kept(lab, dut=dut, repeat=2, limits={"ready_s": 1})
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 4
    assert "run-000 (command) and 1 more" in ended.stderr
    # Which node was missing: the load generator's probes came, nothing of the device.
    assert re.search(r": (\d+) probes in 1 s, \1 frames came to the first tap, 0 ", ended.stderr)
    assert len(list((lab.folder / "out" / "devices").iterdir())) == 1
    assert lab.left() == []


def test_killed_while_a_device_is_kept_up(lab: Lab) -> None:
    with started(lab, "run", str(kept(lab)), "--out", "out") as process:
        wait_until(lambda: sent(lab.find("generate")) > 100, process)
        process.kill()
    wait_until(lambda: not lab.left())


def test_a_device_on_another_host_is_kept_up(lab: Lab, three_hosts: Hosts) -> None:
    dut = {"preset": "forward", "lifetime": "configuration"}
    limits = {"lateness_p99_us": 1e6, "sent_share": 0.5, "warm_up_s": 5}
    plan = kept(lab, dut=dut, limits=limits, repeat=2, testbed=described(three_hosts))
    ended = lab.run("run", str(plan), "--out", "out", "--json", timeout_s=200)
    assert ended.returncode == 0, ended.stderr
    (device,) = devices(lab)
    (window,) = device["warm_up"]["windows"]
    assert window["samples"] > 20_000
    assert window["page_faults"] is not None
    for run in ("run-000", "run-001"):
        assert lab.result(run, "device")["device"] == "device-000"
        assert all_counted(lab.result(run, "summary"))
    assert not any(one.left() for one in three_hosts.hosts.values())
