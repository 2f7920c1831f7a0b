"""Plans: what they mean, and what is told about those that make no sense."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from tailtrim import plan as plans
from tailtrim.errors import PlanError

ROOT = Path(__file__).parents[2]

PLAN = """\
name: forwarder-tail
testbed: local
dut: {preset: testpmd}
traffic: {frame_bytes: 64, rate_pps: $rate, pattern: cbr, flows: 256, duration_s: 5}
loop: {rate: [10000, 60000, 120000]}
repeat: 3
trim_s: 1
"""


def load(folder: Path, text: str) -> tuple[plans.Plan, list[plans.Run]]:
    path = folder / "plan.yml"
    path.write_text(dedent(text), encoding="utf-8")
    return plans.load(path)


def test_loop_variables_and_repetitions_multiply(tmp_path: Path) -> None:
    plan, runs = load(tmp_path, PLAN)
    assert (plan.name, plan.repeat, plan.trim_s) == ("forwarder-tail", 3, 1.0)
    measured = [run for run in runs if not run.floor]
    assert [run.traffic.rate_pps for run in measured] == [10_000, 60_000, 120_000] * 3
    assert [run.repetition for run in measured] == [0] * 3 + [1] * 3 + [2] * 3
    # The wire's floor once for each traffic, before it.
    floors = [run for run in runs if run.floor]
    assert [run.traffic.rate_pps for run in floors] == [10_000, 60_000, 120_000]
    assert {run.dut.preset for run in floors} == {"wire"}
    assert [run.folder for run in runs] == [f"run-{number:03d}" for number in range(12)]
    assert runs[1].label == "testpmd rate=10000"


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
    pairs = [(run.dut.batch, run.traffic.rate_pps) for run in runs]
    assert pairs == [(batch, rate * 10_000) for batch in (1, 32) for rate in range(1, 6)]


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
        ("frame_bytes", "frame_byte", "line 4: traffic.frame_byte: unknown key, expected one of"),
        ("$rate", "0", "line 4: traffic.rate_pps: Input should be greater than 0, not 0"),
        ("$rate", "$speed", "line 4: traffic.rate_pps: $speed is no loop variable"),
        ("testpmd", "testpmt", "line 3: dut.preset: Input should be 'wire', 'forward',"),
        ("repeat: 3", "repeat: three", "line 6: repeat: Input should be a valid integer"),
        ("name: forwarder-tail", "", "name: is missing"),
        ("name: forwarder-tail", "name: a/b", "line 1: name: String should match pattern"),
        ("10000, 60000,", "10000, 60000, ...,", "the range never reaches 120000"),
        ("[10000, 60000, 120000]", "fast", "line 5: loop.rate: expected a list of values"),
        ("cbr", "cbs", "line 4: traffic.pattern: expected cbr, poisson, burst:N"),
        ("duration_s: 5", "duration_s: -1", "line 4: traffic.duration_s: Input should be greater"),
        ("local", "{", "line 4: expected ',' or '}'"),
        ("rate_pps: $rate,", "", "loop.rate: $rate is used neither in dut nor in traffic"),
        ("{preset: testpmd}", "{preset: command}", "line 3: dut: command: belongs to preset"),
        ("{preset: testpmd}", "{preset: wire, delay: x}", "line 3: dut: delay: belongs to preset"),
    ],
)
def test_errors_say_where_and_what_is_allowed(
    tmp_path: Path, found: str, replaced: str, told: str
) -> None:
    assert found in PLAN
    text = PLAN.replace(found, replaced)
    if replaced == "0":
        text = text.replace("loop: {rate: [10000, 60000, 120000]}\n", "")
    with pytest.raises(PlanError) as raised:
        load(tmp_path, text)
    assert told in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'plan.yml'}: ")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        plans.load(tmp_path / "none.yml")


def test_the_published_schema_is_that_of_the_code() -> None:
    published = json.loads((ROOT / "schema" / "plan.json").read_text("utf-8"))
    assert published == plans.Plan.model_json_schema()


def test_the_plans_that_come_with_tailtrim_make_sense() -> None:
    found = [*(ROOT / "examples").glob("*.yml"), *(ROOT / "python/tailtrim/plans").glob("*.yml")]
    assert len(found) >= 2
    for path in found:
        plans.load(path)
