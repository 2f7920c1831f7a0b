"""Boots as blocks: the runs of a boot, their order, and plans that make no sense."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.plan.run_order import block_of

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
name: kernels
dut: {preset: router, node: $where}
boot: {kernel: $kernel, cmdline: "isolcpus=$cpus quiet"}
traffic: {rate_pps: $rate}
loop:
  where: [vm, bare]
  kernel: [bookworm/cloud, trixie/rt]
  cpus: ["1", 2-3]
  rate: [100, 400]
"""


def load(folder: Path, text: str) -> tuple[plans.Plan, list[plans.Run]]:
    path = folder / "plan.yml"
    path.write_text(text, encoding="utf-8")
    return plans.load(path)


def test_kernel_and_boot_line_are_loop_variables(tmp_path: Path) -> None:
    plan, runs = load(tmp_path, PLAN)
    assert plan.boots == 3
    booting = [run for run in runs if run.boot is not None]
    assert {(run.boot.kernel, run.boot.cmdline) for run in booting if run.boot} == {
        (kernel, f"isolcpus={cpus} quiet")
        for kernel in ("bookworm/cloud", "trixie/rt")
        for cpus in ("1", "2-3")
    }
    assert len(booting) == 4 * 2 * 3
    assert plans.booted(runs) == 4 * 3
    assert booting[0].label.startswith("router in vm kernel=")


def test_runs_of_a_boot_follow_each_other(tmp_path: Path) -> None:
    _, runs = load(tmp_path, PLAN)
    blocks = [block for block, _ in groupby(runs, key=block_of)]
    assert len(blocks) == len(set(blocks))
    booted = [list(group) for _, group in groupby(runs, key=block_of)]
    assert all(len(group) == 2 for group in booted if group[0].boot is not None)


def test_boots_are_in_random_order_unless_the_plan_has_one(tmp_path: Path) -> None:
    def order(text: str) -> list[object]:
        return [block for block, _ in groupby(load(tmp_path, text)[1], key=block_of)]

    first = order(PLAN)
    assert order(PLAN) == first
    assert order(PLAN + "seed: 2\n") != first
    in_order = order(PLAN + "order: plan\n")
    assert in_order != first
    assert set(in_order) == set(first)


def test_what_does_not_boot_is_done_as_often_and_knows_no_kernel(tmp_path: Path) -> None:
    _, runs = load(tmp_path, PLAN)
    bare = [run for run in runs if run.boot is None and not run.floor]
    assert sorted((run.loop["rate"], run.repetition) for run in bare) == [
        (rate, repetition) for rate in (100, 400) for repetition in (0, 1, 2)
    ]
    assert {tuple(run.loop) for run in bare} == {("where", "rate")}
    assert len([run for run in runs if run.floor]) == 2


@pytest.mark.parametrize(
    ("found", "replaced", "told"),
    [
        ('boot: {kernel: $kernel, cmdline: "isolcpus=$cpus quiet"}\n', "", "dut.node: vm needs"),
        ("rate_pps: $rate}", "rate_pps: $rate}\ntrace: true", "line 5: trace: not with dut.node"),
        ("rate_pps: $rate}", "rate_pps: $rate}\nrepeat: 2", "line 5: repeat: .*boots"),
        ("preset: router", "preset: xdp", "dut.node: preset xdp"),
        ("isolcpus=$cpus quiet", "isolcpus=$cpus\\nquiet", "boot.cmdline: expected at most"),
        ("where: [vm, bare]", "where: [bare]", "boot: .*does not boot"),
        ("where: [vm, bare]", "where: [vm, host]", "'bare', 'container' or 'vm'.*'host'"),
        ("kernel: $kernel,", "kernel: trixie/rt,", r"\$kernel is not used"),
        ("loop:", "vm: {cpus: 0}\nloop:", "vm.cpus: "),
        ("loop:", "vm: {packages: [a b]}\nloop:", "Debian package: 'a b'"),
    ],
)
def test_errors_of_boots(tmp_path: Path, found: str, replaced: str, told: str) -> None:
    assert found in PLAN
    with pytest.raises(PlanError, match=told):
        load(tmp_path, PLAN.replace(found, replaced))


def test_a_record_of_a_plan_is_the_plan(tmp_path: Path) -> None:
    plan, _ = load(tmp_path, PLAN)
    record = plan.model_dump(mode="json")
    assert record["boot"] == {"kernel": "bookworm/cloud", "cmdline": "isolcpus=1 quiet"}
    assert record["boots"] == 3
    assert plans.Plan.model_validate(record) == plan


PASSED = 'vm: {ports: {in: {pci: "03:00.0", cable: eth4}}}\nloop:'


def test_ports_may_be_pci_devices(tmp_path: Path) -> None:
    plan, _ = load(tmp_path, PLAN.replace("loop:", PASSED))
    (port,) = plan.vm.ports.values()
    assert (port.pci, port.cable) == ("0000:03:00.0", "eth4")
    record = plan.model_dump(mode="json")
    assert record["vm"]["ports"] == {"in": {"pci": "0000:03:00.0", "cable": "eth4"}}
    assert plans.Plan.model_validate(record) == plan


def test_a_record_without_pci_devices_is_that_of_before_there_were_any(tmp_path: Path) -> None:
    plan, _ = load(tmp_path, PLAN)
    assert "ports" not in plan.model_dump(mode="json")["vm"]


@pytest.mark.parametrize(
    ("found", "replaced", "told"),
    [
        ("in:", "left:", "vm.ports.left"),
        ("03:00.0", "3:0.0", "vm.ports.in.pci"),
        (", cable: eth4", "", "vm.ports.in.cable"),
        ("cable: eth4", "cable: ../x", "vm.ports.in.cable"),
        ("in:", 'out: {pci: "0000:03:00.0", cable: eth5}, in:', "pci 0000:03:00.0 .*both"),
        ("in:", 'out: {pci: "03:00.1", cable: eth4}, in:', "cable eth4 .*both"),
    ],
)
def test_errors_of_pci_devices(tmp_path: Path, found: str, replaced: str, told: str) -> None:
    assert found in PASSED
    with pytest.raises(PlanError, match=told):
        load(tmp_path, PLAN.replace("loop:", PASSED.replace(found, replaced, 1)))
