"""Permissions that a plan needs and the testbed file lacks: refused before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.nodes.power.ipmi import Ipmi
from tailtrim.laboratory.nodes.power_control import power_of, switchable
from tailtrim_power.outlet import Outlet

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts"
BOOT = {"by": "grub", "line": "root=/dev/sda1 ro"}
PLAN: dict[str, Any] = {
    "name": "kernels",
    "testbed": "testbed.yml",
    "dut": {"preset": "router"},
    "boot": {"kernel": "$kernel", "cmdline": "$line"},
    "traffic": {"rate_pps": 100, "duration_s": 2},
    "loop": {"kernel": ["6.1.0-40-amd64", "/boot/vmlinuz-6.12.48-rt"], "line": ["", "isolcpus=1"]},
}
IPMI = {"kind": "ipmi", "host": "bmc", "user": "admin", "password": {"file": "keys/bmc"}}


def written(folder: Path, **dut: Any) -> Path:
    said = yaml.safe_load((EXAMPLE / "testbed.yml").read_text("utf-8"))
    said["nodes"]["dut"] |= dut
    place = folder / "testbed.yml"
    place.write_text(yaml.safe_dump(said, sort_keys=False), "utf-8")
    return place


def mistakes(folder: Path, plan: dict[str, Any]) -> list[str]:
    place = folder / "plan.yml"
    place.write_text(yaml.safe_dump(plan, sort_keys=False), "utf-8")
    with pytest.raises(PlanError) as raised:
        plans.load(place)
    return [str(one).removeprefix(f"{place}: ") for one in raised.value.args]


def test_a_host_boots_where_its_file_allows_it(tmp_path: Path) -> None:
    written(tmp_path, may=["reboot", "bootline"], boot=BOOT)
    place = tmp_path / "plan.yml"
    place.write_text(yaml.safe_dump(PLAN), "utf-8")
    plan, runs = plans.load(place)
    assert plan.boots_node
    assert plans.booted(runs) == 4 * 3
    assert {run.boot is None for run in runs if not run.floor} == {False}


def test_what_is_not_allowed_is_told_with_the_word_to_add(tmp_path: Path) -> None:
    written(tmp_path, may=["tune"])
    reboot, line, begin = mistakes(tmp_path, PLAN)
    for told, word in ((reboot, "reboot"), (line, "bootline")):
        assert told.startswith("line 5: boot: node dut ")
        assert f"add {word} to nodes.dut.may" in told
    for fact in ("add nodes.dut.boot.line", "root=/dev/sda1 ro"):
        assert fact in begin
    written(tmp_path, may=["reboot"], boot=BOOT)
    (told,) = mistakes(tmp_path, PLAN)
    assert "add bootline to nodes.dut.may" in told


def test_a_host_that_may_not_be_tuned(tmp_path: Path) -> None:
    written(tmp_path, may=["reboot"])
    plan = {key: value for key, value in PLAN.items() if key not in {"boot", "loop"}}
    plan["dut"] = {"preset": "reflector", "preemption": "$preemption"}
    plan["loop"] = {"preemption": ["as-is", "full"]}
    plan["traffic"] = {"rate_pps": 100, "duration_s": 2, "frame_bytes": 100}
    (told,) = mistakes(tmp_path, plan)
    for fact in ("node dut ", "add tune to nodes.dut.may"):
        assert fact in told


@pytest.mark.parametrize(
    ("kernel", "line", "told"),
    [
        ("trixie/rt", "", "dut has, such as 6.12.48-rt-amd64"),
        ("./bzImage", "", "kernel that dut has"),
        ("6.1", 'dyndbg="file x"', "without white space, quotes"),
    ],
)
def test_what_a_host_cannot_boot(tmp_path: Path, kernel: str, line: str, told: str) -> None:
    written(tmp_path, may=["reboot", "bootline"], boot=BOOT)
    plan = {key: value for key, value in PLAN.items() if key != "loop"}
    (found,) = mistakes(tmp_path, plan | {"boot": {"kernel": kernel, "cmdline": line}})
    assert told in found


def test_paths_of_power_begin_where_the_file_is(tmp_path: Path) -> None:
    described = plans.load_testbed(written(tmp_path, power=IPMI))
    power = described.nodes["dut"].power
    assert isinstance(power, Ipmi)
    assert power.password.file == str(tmp_path / "keys" / "bmc")
    outlet = {"kind": "outlet", "model": "gude", "url": "https://pdu", "outlet": 1, "ca_file": "c"}
    power = plans.load_testbed(written(tmp_path, power=outlet)).nodes["dut"].power
    assert isinstance(power, Outlet)
    assert power.ca_file == str(tmp_path / "c")


def test_a_password_in_a_testbed_file_is_refused_and_not_told(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as raised:
        plans.load_testbed(written(tmp_path, power=IPMI | {"password": "hunter2"}))
    for fact in ("{environment: NAME}", "{file: PATH}", "not a password"):
        assert fact in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_power_is_used_where_the_file_allows_it(tmp_path: Path) -> None:
    described = plans.load_testbed(written(tmp_path, power=IPMI, may=[]))
    assert described.nodes["dut"].cycled_by is None
    assert power_of(described, "dut") == described.nodes["dut"].power
    with pytest.raises(PlanError, match=r"node dut .*add reboot"):
        switchable(described, "dut")
    with pytest.raises(PlanError, match=r"gen has no power: .*add nodes\.gen\.power"):
        power_of(described, "gen")
    with pytest.raises(PlanError, match=r"node 'dot', .* gen, stamp, dut"):
        power_of(described, "dot")
    allowed = plans.load_testbed(written(tmp_path, power=IPMI, may=["reboot"]))
    assert allowed.nodes["dut"].cycled_by is not None
