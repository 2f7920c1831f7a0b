"""Plans: their meaning, and the errors of plans that make no sense."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import TypeVar

import pytest

from tailtrim.errors import PlanError
from tailtrim.laboratory import plan as plans
from tailtrim.laboratory.devices.command import Command
from tailtrim.laboratory.devices.device import Device
from tailtrim.laboratory.devices.forward import Forward
from tailtrim.laboratory.devices.reflector import Reflector

Kind = TypeVar("Kind", bound=Device)

ROOT = Path(__file__).parents[2]

PLAN = """\
name: forwarder-tail
testbed: local
dut: {preset: testpmd}
traffic: {frame_bytes: 64, rate_pps: $rate, schedule: cbr, flows: 256, duration_s: 5}
loop: {rate: [10000, 60000, 120000]}
repeat: 3
skip_s: 1
"""


def load(folder: Path, text: str) -> tuple[plans.Plan, list[plans.Run]]:
    path = folder / "plan.yml"
    path.write_text(dedent(text), encoding="utf-8")
    return plans.load(path)


def device(run: plans.Run, kind: type[Kind]) -> Kind:
    assert isinstance(run.dut, kind)
    return run.dut


def test_loop_variables_and_repetitions_multiply(tmp_path: Path) -> None:
    plan, runs = load(tmp_path, PLAN)
    assert (plan.name, plan.repeat, plan.skip_s) == ("forwarder-tail", 3, 1.0)
    measured = [run for run in runs if not run.floor]
    assert [run.traffic.rate_pps for run in measured] == [10_000, 60_000, 120_000] * 3
    assert [run.repetition for run in measured] == [0] * 3 + [1] * 3 + [2] * 3
    # The wire's floor once for each traffic, before it.
    floors = [run for run in runs if run.floor]
    assert [run.traffic.rate_pps for run in floors] == [10_000, 60_000, 120_000]
    assert {run.dut.preset for run in floors} == {"wire"}
    assert [run.folder for run in runs] == [f"run-{number:03d}" for number in range(12)]
    assert runs[1].label == "testpmd rate=10000"


def test_the_former_name_of_skip_s_is_read(tmp_path: Path) -> None:
    place = tmp_path / "plan.yml"
    place.write_text(
        "name: x\ndut: {preset: forward}\ntraffic: {rate_pps: 9, duration_s: 2}\ntrim_s: 0.5\n"
    )
    assert plans.load(place)[0].skip_s == 0.5


def test_ranges_and_several_variables(tmp_path: Path) -> None:
    _, runs = load(
        tmp_path,
        """\
        name: x
        dut: {preset: forward, batch: $batch}
        traffic: {rate_pps: $rate}
        loop: {batch: [1, 32], rate: [10000, 20000, ..., 50000]}
        floor: false
        """,
    )
    pairs = [(device(run, Forward).batch, run.traffic.rate_pps) for run in runs]
    assert pairs == [(batch, rate * 10_000) for batch in (1, 32) for rate in range(1, 6)]


FACTORS = """\
name: x
dut: {preset: reflector, reflect: $mode, pinned: $pinned, firewall: $firewall, rules: 1001}
traffic: {frame_bytes: 70, schedule: "burst:$burst", rate: 20bursts/s, duration_s: 1}
loop: {burst: [1, 50]}
factors:
  mode: [socket, xdp]
  pinned: [false, true]
  firewall: [none, "nftables:1001"]
together: {mode: xdp, pinned: true}
"""


def test_factors_leave_their_first_value_one_at_a_time(tmp_path: Path) -> None:
    _, runs = load(tmp_path, FACTORS)
    assert [run.label for run in runs[:5]] == [
        "reflector burst=1",
        "reflector burst=1, mode=xdp",
        "reflector burst=1, pinned=True",
        "reflector burst=1, firewall=nftables:1001",
        "reflector burst=1, together",
    ]
    reflectors = [device(run, Reflector) for run in runs]
    values = [(dut.reflect, dut.pinned, dut.firewall) for dut in reflectors]
    assert values[:5] == values[5:]
    assert values[:5] == [
        ("socket", False, "none"),
        ("xdp", False, "none"),
        ("socket", True, "none"),
        ("socket", False, "nftables:1001"),
        ("xdp", True, "none"),
    ]
    assert [run.varied for run in runs[:5]] == [None, "mode", "pinned", "firewall", "together"]
    # Bursts a second are packets a second of as many.
    assert [runs[0].traffic.rate, runs[5].traffic.rate] == ["20pps", "1000pps"]
    assert [str(runs[0].traffic.schedule), str(runs[5].traffic.schedule)] == ["cbr", "burst:50"]


@pytest.mark.parametrize(
    ("found", "replaced", "told"),
    [
        ("mode: [socket, xdp]", "mode: [socket, tcp]", "factors.mode: as dut.reflect: expected"),
        ("mode: [socket, xdp]", "mode: [socket]", "factors.mode: .*second value"),
        ("{mode: xdp,", "{speed: 1,", "together.speed: unknown factor.* mode"),
        ("pinned: $pinned", "pinned: true", r"factors.pinned: \$pinned is not used"),
        ("burst: [1", "mode: [1], burst: [1", "factors.mode: .*loop variable"),
        ("nftables:1001", "nftables:1002", "factors.firewall: .*nftables has 1001"),
        ("nftables:1001", "ufw:1", "factors.firewall: .*none, nftables"),
        ("frame_bytes: 70", "frame_bytes: 64", "traffic.frame_bytes: at least 70"),
        ("duration_s: 1", "duration_s: 1, flows: 2", "traffic.flows: .*round trips"),
        ("name: x", "name: x\ntrace: true", "trace: .*round trips"),
        ("20bursts/s", "bursts/s", "traffic.rate: .*packets .*120kpps"),
    ],
)
def test_errors_of_factors_and_round_trips(
    tmp_path: Path, found: str, replaced: str, told: str
) -> None:
    assert found in FACTORS
    with pytest.raises(PlanError, match=told):
        load(tmp_path, FACTORS.replace(found, replaced))


def test_a_random_order_is_that_of_its_seed(tmp_path: Path) -> None:
    def order(seed: int) -> list[str]:
        _, runs = load(tmp_path, f"{PLAN}order: random\nseed: {seed}\n")
        return [f"{run.label} {run.repetition}" for run in runs]

    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == sorted(order(2))


def test_a_plan_of_the_wire_needs_no_floor(tmp_path: Path) -> None:
    _, runs = load(tmp_path, "name: w\ndut: {preset: wire}\ntraffic: {rate: 1Gbit/s}\n")
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("found", "replaced", "told"),
    [
        ("frame_bytes", "frame_byte", "line 4: traffic.frame_byte: unknown key"),
        ("$rate", "0", "line 4: traffic.rate_pps: .*greater than 0, not 0"),
        ("$rate", "$speed", r"line 4: traffic.rate_pps: .*variable \$speed"),
        ("testpmd", "testpmt", "line 3: dut.preset: .*'wire', 'forward',"),
        ("repeat: 3", "repeat: three", "line 6: repeat: .*integer"),
        ("name: forwarder-tail", "", "name: is missing"),
        ("name: forwarder-tail", "name: a/b", r"line 1: name: .*text .*\^\["),
        ("10000, 60000,", "10000, 60000, ...,", "the range never reaches 120000"),
        ("[10000, 60000, 120000]", "fast", "line 5: loop.rate: .*list"),
        ("cbr", "cbs", "line 4: traffic.schedule: .*cbr, golden, poisson, burst:N"),
        ("duration_s: 5", "duration_s: -1", "line 4: traffic.duration_s: expected greater"),
        ("local", "{", r"line 4: expected ',' or '\}'"),
        ("rate_pps: $rate,", "rate_pps: 1,", r"line 5: loop.rate: \$rate is not used"),
        ("rate_pps: $rate,", "", "line 4: traffic: rate_pps or rate: .*one"),
        ("10000, 60000", "10000, 0", "line 5: loop.rate: .*traffic.rate_pps: .*greater"),
        ("[10000, 60000, 120000]", "[10000, 10000]", "line 5: loop.rate: .*twice"),
        ("repeat: 3", "repeat: 1_000_000", "line 5: loop: .* 3,000,000 runs, .* 100,000"),
        ("repeat: 3", "repeat: 3\nrepeat: 2", "line 7: repeat: given twice"),
        ("repeat: 3", "limits: {late: 1}", "line 6: limits.late: unknown key"),
        ("skip_s: 1", "skip_s: 5", "line 7: skip_s: .*traffic.duration_s"),
        ("skip_s: 1", "skip_s: yes", "line 7: skip_s: .*number, not True"),
        ("frame_bytes: 64", "frame_bytes: 63", "line 4: traffic.frame_bytes: .*bytes"),
        ("frame_bytes: 64", "frame_bytes: 64, vlan: 7", "traffic.frame_bytes: .* 68 with IPv4"),
        ("frame_bytes: 64", "frame_bytes: 64, ip: 6", "traffic.frame_bytes: .* 84 with IPv6"),
        ("frame_bytes: 64", "frame_bytes: 84, ip: 5", "line 4: traffic.ip: expected 4 or 6"),
        ("frame_bytes: 64", "frame_bytes: 9000", "traffic.frame_bytes: preset testpmd"),
        ("rate_pps: $rate", "rate: true", "traffic.rate: .*string, not True"),
        ("cbr", "burst:0", "line 4: traffic.schedule: .*cbr, golden, poisson, burst:N"),
        ("cbr", "jitter:0.9", "line 4: traffic.schedule: .*cbr, golden, poisson, burst:N"),
        ("frame_bytes: 64", "departures: nic", "line 4: traffic.departures: .*'kernel'"),
        ("frame_bytes: 64", "departures: hardware", "traffic.departures: .* local, .*kernel or"),
        ("{preset: testpmd}", "{preset: dpdk, mode: interrupt}", "line 3: dut.mode: .*driver: tap"),
        ("{preset: testpmd}", "{preset: command}", "line 3: dut: command: .*needs"),
        ("{preset: testpmd}", '{preset: command, command: "\'"}', "line 3: dut.command: expected"),
        ("{preset: testpmd}", "{preset: wire, delay: 'constant:1us'}", "belongs to forward"),
        (
            "{preset: testpmd}",
            "{preset: forward, delay: x}",
            "line 3: dut.delay: expected constant",
        ),
        ("{preset: testpmd}", "{preset: testpmd, batch: 2}", "line 3: dut.batch: preset testpmd"),
        ("{preset: testpmd}", "{preset: nftables, position: 2}", "dut.position: there are 1 rules"),
    ],
)
def test_errors_say_where_and_what_is_allowed(
    tmp_path: Path, found: str, replaced: str, told: str
) -> None:
    assert found in PLAN
    text = PLAN.replace(found, replaced)
    if replaced == "0":
        text = text.replace("loop: {rate: [10000, 60000, 120000]}\n", "")
    with pytest.raises(PlanError, match=told) as raised:
        load(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path / 'plan.yml'}: ")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        plans.load(tmp_path / "none.yml")


def test_the_published_schema_is_that_of_the_code() -> None:
    # python -c 'from tailtrim.laboratory.plan import json_schema; print(json_schema(), end="")'
    # > schema/plan.json
    published = (ROOT / "schema" / "plan.json").read_text("utf-8")
    assert published == plans.json_schema()
    # … p.testbed_schema() > schema/testbed.json
    published = (ROOT / "schema" / "testbed.json").read_text("utf-8")
    assert published == plans.testbed_schema()


def test_the_schema_allows_variables_where_a_plan_does() -> None:
    properties = json.loads(plans.json_schema())["$defs"]["Traffic"]["properties"]
    kinds = [way.get("type") for way in properties["rate_pps"]["anyOf"]]
    assert kinds == ["integer", "null", "string"]


def test_variables_within_texts(tmp_path: Path) -> None:
    _, runs = load(
        tmp_path,
        """\
        name: bursts
        dut: {preset: command, command: "run --size ${size}k --price $$5 {in} {out}"}
        traffic: {rate: $rate, pattern: "burst:$size"}
        loop: {size: [2, 10], rate: [1kpps]}
        floor: false
        """,
    )
    assert [str(run.traffic.schedule) for run in runs] == ["burst:2", "burst:10"]
    assert device(runs[1], Command).command == "run --size 10k --price $5 {in} {out}"


def test_options_of_the_devices_of_a_loop_go_to_those_that_have_them(tmp_path: Path) -> None:
    _, runs = load(
        tmp_path,
        """\
        name: devices
        dut: {preset: $dut, rules: $rules, batch: 8}
        traffic: {rate_pps: 1000}
        loop: {dut: [nftables, forward, bridge], rules: [1, 100]}
        floor: false
        """,
    )
    # The variable of the firewall makes no difference to the others, so they run once.
    assert [(run.dut.preset, getattr(run.dut, "rules", None)) for run in runs] == [
        ("nftables", 1),
        ("nftables", 100),
        ("forward", None),
        ("bridge", None),
    ]
    assert [getattr(run.dut, "batch", None) for run in runs] == [None, None, 8, None]


def test_every_combination_is_checked_beforehand(tmp_path: Path) -> None:
    text = PLAN.replace("duration_s: 5", "duration_s: $d").replace(
        "120000]}", "120000], d: [5, 3, 1]}"
    )
    with pytest.raises(PlanError, match=r"line 7: skip_s: .*traffic\.duration_s"):
        load(tmp_path, text)


def test_the_plans_that_come_with_tailtrim_make_sense() -> None:
    found = [
        *(ROOT / "examples").glob("*.yml"),
        *(ROOT / "python/tailtrim/laboratory/selftest/plans").glob("*.yml"),
    ]
    assert len(found) >= 2
    for path in found:
        plans.load(path)


def test_with_and_without_a_trace(tmp_path: Path) -> None:
    text = """\
        name: x
        dut: {preset: forward}
        traffic: {rate_pps: 1000}
        repeat: 2
        floor: false
        """
    for trace, expected in (("true", [True] * 2), ("false", [False] * 2)):
        _, runs = load(tmp_path, dedent(text) + f"trace: {trace}\n")
        assert [run.traced for run in runs] == expected
    _, runs = load(tmp_path, dedent(text) + "trace: both\n")
    # In turns, so that changes of the machine affect both.
    assert [run.traced for run in runs] == [False, True] * 2
    assert runs[1].label == "forward (traced)"


def test_a_device_can_be_disturbed(tmp_path: Path) -> None:
    text = """\
        name: x
        dut: {preset: $preset, disturb: $what}
        traffic: {rate_pps: 1000}
        loop: {preset: [%s], what: [%s]}
        floor: false
        """
    _, runs = load(tmp_path, dedent(text) % ("forward", "none, 'stop:1ms,50ms', 'munmap:20ms'"))
    forwards = [device(run, Forward) for run in runs]
    assert [dut.disturb for dut in forwards] == [None, "stop:1ms,50ms", "munmap:20ms"]
    assert [dut.disturbed_from_within for dut in forwards] == [False, False, True]
    for preset, what, told in (
        ("testpmd", "munmap:20ms", "only preset forward has"),
        ("bridge", "stop:1ms,50ms", "preset bridge has none"),
        ("forward", "nap:20ms", "expected none, munmap"),
    ):
        with pytest.raises(PlanError, match=told):
            load(tmp_path, dedent(text) % (preset, f"'{what}'"))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = "name: demo\ndut: {preset: bridg}\ntrafic: {frame_bytes: 64}\norder: randm\nrepeat: 0\n"
    with pytest.raises(PlanError) as raised:
        load(tmp_path, text)
    lines = [mistake.split(": ")[1] for mistake in raised.value.args]
    assert lines == ["line 2", "line 3", "line 4", "line 5"]
    for told in ("did you mean bridge?", "trafic: unknown key", "did you mean traffic?"):
        assert told in str(raised.value)
    assert "did you mean random?" in str(raised.value)
    # The misspelt key is not missed besides.
    assert "is missing" not in str(raised.value)


def test_a_rate_without_a_unit_is_packets_a_second(tmp_path: Path) -> None:
    plan, _ = load(tmp_path, "name: demo\ndut: {preset: wire}\ntraffic: {rate: 1000}\n")
    assert plan.traffic.rate == "1000pps"
