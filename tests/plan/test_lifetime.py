"""Devices that are kept up between runs: which runs share one, in which order, and in records."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
name: life
dut: {preset: forward, batch: $batch, lifetime: $lifetime}
traffic: {rate_pps: $rate}
loop:
  rate: [100, 400]
  batch: [8, 32]
  lifetime: [configuration]
repeat: 2
"""


def load(folder: Path, text: str) -> tuple[plans.Plan, list[plans.Run]]:
    path = folder / "plan.yml"
    path.write_text(text, encoding="utf-8")
    return plans.load(path)


def blocks(runs: list[plans.Run]) -> list[list[plans.Run]]:
    return [list(group) for key, group in groupby(runs, key=plans.device_of) if key is not None]


@pytest.mark.parametrize("order", ["", "order: random\n"])
def test_runs_of_a_device_follow_each_other(tmp_path: Path, order: str) -> None:
    _, runs = load(tmp_path, PLAN + order)
    found = blocks(runs)
    assert plans.kept(runs) == len(found) == 2
    for block in found:
        assert sorted((run.loop["rate"], run.repetition) for run in block) == [
            (rate, repetition) for rate in (100, 400) for repetition in (0, 1)
        ]
    assert [run.number for run in runs] == list(range(len(runs)))


def test_what_changes_the_devices_ports_or_addresses_is_another_device(tmp_path: Path) -> None:
    text = PLAN.replace("rate_pps: $rate", "rate_pps: $rate, ip: $ip, frame_bytes: $size")
    text = text.replace("batch: [8, 32]", "batch: [8]\n  ip: [4, 6]\n  size: [128, 256, 9018]")
    _, runs = load(
        tmp_path, text.replace("preset: forward, batch: $batch", "preset: nftables, rules: $batch")
    )
    assert plans.kept(runs) == 2 * 2


def test_each_boot_has_devices_of_its_own(tmp_path: Path) -> None:
    booting = """\
name: life
dut: {preset: nftables, rules: $rules, node: $where, lifetime: configuration}
boot: {kernel: bookworm/cloud}
traffic: {rate_pps: $rate}
loop: {where: [vm, bare], rules: [1, 100], rate: [100, 200, 300]}
"""
    _, runs = load(tmp_path, booting)
    found = blocks(runs)
    assert plans.booted(runs) == 3
    # Without a boot a device outlives repetitions.
    assert plans.kept(runs) == len(found) == 3 * 2 + 2
    assert sorted({len(block) for block in found}) == [3, 9]
    boots = [key for key, _ in groupby(runs, key=lambda run: run.boot and run.repetition)]
    assert len([boot for boot in boots if boot is not None]) == 3


def test_lifetimes_can_be_compared(tmp_path: Path) -> None:
    _, runs = load(tmp_path, PLAN.replace("[configuration]", "[run, configuration]"))
    assert len(runs) == 2 + 2 * 2 * 2 * 2
    assert sum(plans.device_of(run) is not None for run in runs) == 8


def test_plans_and_runs_without_it_are_recorded_as_before(tmp_path: Path) -> None:
    plan, runs = load(tmp_path, "name: x\ndut: {preset: bridge}\ntraffic: {rate_pps: 1}\n")
    assert "warm_up_s" not in plan.model_dump(mode="json")["limits"]
    assert plan.model_dump(mode="json")["dut"] == {"preset": "bridge"}
    assert all("lifetime" not in run.model_dump(mode="json")["dut"] for run in runs)


@pytest.mark.parametrize("option", ["delay: 'constant:20us'", "disturb: 'stop:2ms,100ms'"])
def test_what_logs_each_run_is_not_kept_up(tmp_path: Path, option: str) -> None:
    text = f"dut: {{preset: forward, lifetime: configuration, {option}}}\n"
    with pytest.raises(PlanError, match="only with lifetime: run"):
        load(tmp_path, f"name: x\n{text}traffic: {{rate_pps: 1}}\n")


def test_round_trips_have_no_lifetime(tmp_path: Path) -> None:
    text = "name: x\ndut: {preset: reflector, lifetime: run}\ntraffic: {rate_pps: 1}\n"
    with pytest.raises(PlanError, match=r"dut\.lifetime: "):
        load(tmp_path, text)
