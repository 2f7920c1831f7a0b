"""Meters in plans and testbed files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tailtrim.errors import HostError, PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.experiment.metered import meters_of
from tailtrim.laboratory.nodes.meters.powercap import Powercap
from tailtrim_power.outlet import OutletMeter

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-hosts"
PLAN: dict[str, Any] = {
    "name": "energy",
    "dut": {"preset": "forward"},
    "traffic": {"rate_pps": 1_000, "duration_s": 5},
}
OUTLET = {
    "kind": "outlet",
    "model": "gude",
    "url": "http://192.0.2.7",
    "outlet": 1,
    "user": "admin",
    "password": {"file": "keys/pdu"},
}


def load(folder: Path, **more: Any) -> plans.Plan:
    place = folder / "plan.yml"
    place.write_text(yaml.safe_dump(PLAN | more, sort_keys=False), "utf-8")
    return plans.load(place)[0]


def hosts(folder: Path, **of_dut: Any) -> str:
    said = yaml.safe_load((EXAMPLE / "testbed.yml").read_text("utf-8"))
    said["nodes"]["dut"] |= of_dut
    (folder / "testbed.yml").write_text(yaml.safe_dump(said, sort_keys=False), "utf-8")
    return "testbed.yml"


def test_this_machine_has_the_meter_of_the_plan(tmp_path: Path) -> None:
    plan = load(tmp_path, energy={"meter": OUTLET})
    (meter,) = meters_of(plan).values()
    assert isinstance(meter, OutletMeter)
    # Paths begin at the plan.
    assert meter.password is not None
    assert meter.password.file == str(tmp_path / "keys" / "pdu")


def test_hosts_have_the_meters_of_their_file_with_and_without_states(tmp_path: Path) -> None:
    testbed = hosts(tmp_path, meter=OUTLET)
    for more in ({}, {"energy": {"ready_s": 0}}):
        found = meters_of(load(tmp_path, testbed=testbed, **more))
        assert list(found) == ["dut"]
    powercap = hosts(tmp_path, meter={"kind": "powercap"})
    assert isinstance(meters_of(load(tmp_path, testbed=powercap))["dut"], Powercap)


def test_states_without_any_meter_are_refused(tmp_path: Path) -> None:
    plan = load(tmp_path, testbed=hosts(tmp_path), energy={})
    with pytest.raises(HostError, match="meter: dut, gen, stamp"):
        meters_of(plan)


def test_a_plan_without_energy_is_recorded_as_before(tmp_path: Path) -> None:
    assert "energy" not in load(tmp_path).model_dump(mode="json")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"energy": {}}, "energy: .*local: needs meter"),
        ({"energy": {"meter": OUTLET, "settle_s": 5}}, "energy.settle_s: must be below"),
        (
            {"energy": {"meter": {"kind": "perf"}}},
            "energy.meter.kind: .*'powercap', 'hwmon', 'ipmi', 'redfish'",
        ),
        ({"energy": {"meter": {"kind": "hwmon"}}}, "energy.meter: chip: kind hwmon"),
        ({"energy": {"meter": OUTLET | {"plug": 1}}}, "energy.meter.plug: unknown key"),
        ({"energy": {"meter": OUTLET}, "dut": {"preset": "reflector"}}, "energy: .*round trips"),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, more: dict[str, Any], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        load(tmp_path, **more)


def test_a_power_of_another_kind_is_told_without_a_traceback(tmp_path: Path) -> None:
    testbed = hosts(tmp_path, power={"kind": "wake"})
    with pytest.raises(PlanError, match=r"nodes\.dut\.power\.kind: expected 'redfish', 'ipmi'"):
        load(tmp_path, testbed=testbed)


def test_a_meter_of_hosts_stands_in_their_file(tmp_path: Path) -> None:
    testbed = hosts(tmp_path, meter=OUTLET)
    with pytest.raises(PlanError, match="in the testbed file"):
        load(tmp_path, testbed=testbed, energy={"meter": OUTLET})
