"""Devices in containers, as a plan has them: their places and their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.devices import InlineDevice

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
name: containers
dut:
  preset: forward
  node: $where
  container: {cpu.max: $quota, memory.max: 64M}
traffic: {rate_pps: 1000}
loop:
  where: [bare, container]
  quota: [max, 20000 100000]
"""


def load(folder: Path, text: str) -> list[plans.Run]:
    path = folder / "plan.yml"
    path.write_text(text, encoding="utf-8")
    return plans.load(path)[1]


def test_limits_make_no_difference_to_what_is_not_in_a_container(tmp_path: Path) -> None:
    runs = [run for run in load(tmp_path, PLAN) if not run.floor]
    assert [run.label for run in runs] == [
        "forward where=bare",
        "forward in container quota=max",
        "forward in container quota=20000 100000",
    ]
    assert "container" not in runs[0].model_dump(mode="json")["dut"]


def test_a_run_says_its_limits_as_linux_names_them(tmp_path: Path) -> None:
    run = load(tmp_path, PLAN)[-1]
    assert isinstance(run.dut, InlineDevice)
    limits = {"cpu.max": "20000 100000", "cpu.weight": "10000", "memory.max": "64M"}
    assert run.dut.container.limits == limits
    recorded = run.model_dump(mode="json")["dut"]
    assert recorded["node"] == "container"
    assert recorded["container"] == {
        "root": None,
        "packages": [],
        "mounts": [],
        "io.max": None,
        "cpu.max": "20000 100000",
        "cpu.weight": 10_000,
        "memory.max": "64M",
    }


def test_a_limit_is_a_factor(tmp_path: Path) -> None:
    text = PLAN.replace("$where", "container").replace("  where: [bare, container]\n", "")
    runs = load(tmp_path, text.replace("loop:", "factors:"))
    assert [run.varied for run in runs if not run.floor] == [None, "quota"]


def test_bare_container_and_virtual_machine_are_one_plan(tmp_path: Path) -> None:
    text = PLAN.replace("[bare, container]", "[bare, container, vm]")
    runs = load(tmp_path, text + "boot: {kernel: trixie/cloud}\nboots: 1\n")
    assert sorted(run.label for run in runs if not run.floor) == [
        "forward in container quota=20000 100000",
        "forward in container quota=max",
        "forward in vm",
        "forward where=bare",
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[bare, container]", "[bare]", "dut.container: .*dut.node: container"),
        ("max, 20000 100000", "max, 20000 9000000", "cpu.max: .* max, .*µs"),
        ("max, 20000 100000", "max, 999", "cpu.max: .* max, .*µs .*1,000"),
        ("64M", "lots", "memory.max: .* max .*512M, not 'lots'"),
        ("memory.max: 64M", "io.max: 5M", "io.max: .*device and limits, .*8:0 rbps"),
        ("memory.max: 64M", "cpu.weight: 0", "cpu.weight: .*greater than .*1"),
        ("memory.max: 64M", "cpu.wight: 9", "cpu.wight: unknown key.* root, packages, mounts"),
        ("memory.max: 64M", "mounts: [rules]", "begins with /, not 'rules'"),
        ("memory.max: 64M", "packages: [nftables]", "packages: .*Debian release"),
        ("preset: forward", "preset: forward\n  disturb: quota:2ms,100ms", "disturb: quota is not"),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in PLAN
    with pytest.raises(PlanError, match=told):
        load(tmp_path, PLAN.replace(old, new))
