"""Devices and patterns of a plan: each a type of its own, in the schema and in errors, too."""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import devices
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.devices.device import Device
from tailtrim.laboratory.plan.patterns import parse

if TYPE_CHECKING:
    from pathlib import Path


def load(folder: Path, text: str) -> plans.Plan:
    path = folder / "plan.yml"
    path.write_text(text, encoding="utf-8")
    return plans.load(path)[0]


def test_every_device_is_one_of_those_that_a_plan_may_have() -> None:
    for _, name, _ in pkgutil.iter_modules(devices.__path__, "tailtrim.laboratory.devices."):
        importlib.import_module(name)
    known = set(devices.DEVICES.models().values())

    def written(kind: type[Device]) -> set[type[Device]]:
        below = kind.__subclasses__()
        return set().union(*map(written, below)) if below else {kind}

    own = {kind for kind in written(Device) if kind.__module__.startswith("tailtrim.")}
    assert own == known


def test_the_schema_has_what_fits_each_device() -> None:
    schema = json.loads(plans.json_schema())
    one, of_loop = schema["properties"]["dut"]["anyOf"]
    assert one["discriminator"]["propertyName"] == "preset"
    options = {}
    for way in one["oneOf"]:
        known = schema["$defs"][way["$ref"].removeprefix("#/$defs/")]
        assert not known["additionalProperties"]
        options[known["properties"]["preset"]["const"]] = set(known["properties"]) - {"preset"}
    of_all = {"node", "container", "lifetime"}
    assert options["wire"] == of_all
    assert options["nftables"] == {*of_all, "rules", "position"}
    assert options["forward"] == of_all | {"mode", "batch", "work_ns", "delay", "disturb"}
    several = schema["$defs"][of_loop["$ref"].removeprefix("#/$defs/")]
    assert set(several["properties"]) == {"preset"}.union(*options.values())


@pytest.mark.parametrize(
    ("dut", "told"),
    [
        ("forward", r"line 2: dut: .*\{preset: wire\}.*not 'forward'"),
        ("{batch: 3}", "line 2: dut.preset: is missing"),
        ("{preset: 5}", "line 2: dut.preset: .*'wire', 'forward', "),
        (
            "{preset: forward, bach: 3}",
            "dut.bach: .* preset, node, container, lifetime, disturb, ",
        ),
        ("{preset: wire, rules: 3}", "preset wire .*nftables, reflector"),
    ],
)
def test_errors_of_devices(tmp_path: Path, dut: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        load(tmp_path, f"name: x\ndut: {dut}\ntraffic: {{rate_pps: 1}}\n")


@pytest.mark.parametrize(
    ("dut", "recorded"),
    [
        ("{preset: wire}", {"preset": "wire"}),
        (
            "{preset: forward, delay: 'constant:1us'}",
            {
                "preset": "forward", "mode": "poll", "batch": 32, "work_ns": 0,
                "delay": "constant:1us", "disturb": None,
            },
        ),
        (
            "{preset: testpmd}",
            {"preset": "testpmd", "driver": "af_packet", "forward_mode": "io", "disturb": None},
        ),
        ("{preset: nftables, rules: 5}", {"preset": "nftables", "rules": 5, "position": 1}),
        ("{preset: suricata}", {"preset": "suricata", "ruleset": None, "disturb": None}),
        ("{preset: command, command: a}", {"preset": "command", "command": "a", "disturb": None}),
    ],
)  # fmt: skip
def test_records_of_plans_stay_as_they_are(
    tmp_path: Path, dut: str, recorded: dict[str, object]
) -> None:
    plan = load(tmp_path, f"name: x\ndut: {dut}\ntraffic: {{rate_pps: 1, schedule: 'burst:3'}}\n")
    record = plan.model_dump(mode="json")
    # Their order, too: an experiment is gone on with where its record is the same.
    assert list(record["dut"].items()) == list(recorded.items())
    assert record["traffic"]["schedule"] == "burst:3"
    assert record["testbed"] == "local"
    assert plans.Plan.model_validate(record) == plan


def test_patterns_know_what_they_are() -> None:
    assert [parse(text).burst for text in ("cbr", "burst:32", "poisson", "golden")] == [
        1,
        32,
        None,
        None,
    ]
    assert str(parse("jitter:.10")) == "jitter:.10"
    assert parse("replay:a:b.pcap:2.0").brings_rate
    # A burst of one packet is none.
    assert parse("burst:1") == parse("cbr")
