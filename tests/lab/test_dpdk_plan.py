"""DPDK as the device of a plan: poll mode beside interrupts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from dpdk import program
from laboratory import all_counted

if TYPE_CHECKING:
    from laboratory import Lab


def test_poll_mode_and_interrupts_in_one_plan(lab: Lab) -> None:
    lab.environment["PATH"] = f"{Path(program()).parent}:{lab.environment['PATH']}"
    plan = lab.plan(
        dut={"preset": "dpdk", "driver": "tap", "mode": "$mode"},
        loop={"mode": ["poll", "interrupt"]},
    )
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    runs = json.loads(ended.stdout)["runs"]
    assert len(runs) == 2
    for run in runs:
        assert run["summary"]["ingress"]["packets"] == 2_500
        assert all_counted(run["summary"])
    assert lab.left() == []


def test_kernel_interfaces_by_af_packet(lab: Lab) -> None:
    lab.environment["PATH"] = f"{Path(program()).parent}:{lab.environment['PATH']}"
    plan = lab.plan(dut={"preset": "dpdk", "forward_mode": "macswap"})
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert all_counted(run["summary"])
    assert lab.left() == []


def test_where_it_is_not_installed_a_plan_says_where_it_comes_from(lab: Lab) -> None:
    lab.environment["PATH"] = lab.path_without("tailtrim-dpdk")
    ended = lab.run("run", str(lab.plan(dut={"preset": "dpdk"})), "--out", "out")
    assert ended.returncode == 3
    assert "tailtrim-dpdk is not installed, expected its Debian package" in ended.stderr
