"""From a YAML file to runs; every error says where and what is allowed."""

from __future__ import annotations

import random
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from tailtrim.plan.model import OPTIONS, Dut, Plan, Run, Scalar, Traffic
from tailtrim.plan.source import Source
from tailtrim.plan.variables import filled_in, loop_of, names_in

if TYPE_CHECKING:
    from pathlib import Path

#: More runs than this are a mistake in a range, not a plan.
MOST_RUNS = 100_000

#: Where variables may be used.
_PARTS = ("dut", "traffic")


def load(path: Path) -> tuple[Plan, list[Run]]:
    """Read a plan and lay out its runs, in the order in which they are to be done.

    Raises:
        PlanError: the file cannot be read, or asks for what makes no sense.

    """
    source = Source(path)
    loop = loop_of(source)
    repeat = source.data.get("repeat", 1)
    count = prod(map(len, loop.values())) * (repeat if isinstance(repeat, int) else 1)
    if count > MOST_RUNS:
        source.fail(("loop",), f"makes {count:,} runs, at most {MOST_RUNS:,}")
    # Each combination is looked at as a plan of its own, so that all of it is checked beforehand.
    combinations = [dict(zip(loop, values, strict=True)) for values in product(*loop.values())]
    plans = [_plan(values, loop, source) for values in combinations]
    used = set(names_in([source.data.get(part) for part in _PARTS]))
    for name in loop:
        if name not in used:
            source.fail(("loop", name), f"${name} is used neither in dut nor in traffic")
    return plans[0], _runs(plans, combinations, source)


def _plan(values: dict[str, Scalar], loop: dict[str, list[Scalar]], source: Source) -> Plan:
    data = dict(source.data)
    if loop:
        data["loop"] = loop
    for part in _PARTS:
        if part in data:
            data[part] = filled_in(data[part], values, source, (part,))
    if isinstance(data.get("dut"), dict):
        data["dut"] = _own_options(data["dut"], loop, source)
    return source.validated(Plan, data)


def _own_options(
    dut: dict[str, Any], loop: dict[str, list[Scalar]], source: Source
) -> dict[str, Any]:
    """Leave out the options that other devices of the same loop have."""
    others = {
        option
        for name in names_in(source.at(("dut", "preset")))
        for preset in loop.get(name, ())
        for option in OPTIONS.get(str(preset), ())
    }
    own = OPTIONS.get(str(dut.get("preset")), ())
    return {key: value for key, value in dut.items() if key in own or key not in others}


def _runs(plans: list[Plan], combinations: list[dict[str, Scalar]], source: Source) -> list[Run]:
    plan = plans[0]
    wire = Dut(preset="wire")
    of_traffic = set(names_in(source.data["traffic"]))
    runs: list[Run] = []
    floors: set[str] = set()
    done: set[tuple[str, str]] = set()
    for concrete, values in zip(plans, combinations, strict=True):
        key = concrete.traffic.model_dump_json()
        if plan.floor and concrete.dut != wire and key not in floors:
            # The wire knows nothing of the device: one floor for each traffic.
            floors.add(key)
            loop = {name: value for name, value in values.items() if name in of_traffic}
            runs.append(_run(wire, concrete.traffic, loop, 0, floor=True))
        same = (concrete.dut.model_dump_json(), key)
        if same in done:
            # Variables of other devices make no difference to this one.
            continue
        done.add(same)
        run = _run(concrete.dut, concrete.traffic, values, 0, floor=False)
        traced = run.model_copy(update={"traced": True})
        runs += [run, traced] if plan.trace == "both" else [traced if plan.trace else run]
    measured = [run for run in runs if not run.floor]
    for repetition in range(1, plan.repeat):
        runs += [run.model_copy(update={"repetition": repetition}) for run in measured]
    if plan.order == "random":
        random.Random(plan.seed).shuffle(runs)  # noqa: S311 - an order, not a secret
    return [run.model_copy(update={"number": number}) for number, run in enumerate(runs)]


def _run(
    dut: Dut, traffic: Traffic, loop: dict[str, Scalar], repetition: int, *, floor: bool
) -> Run:
    return Run(number=0, dut=dut, traffic=traffic, loop=loop, repetition=repetition, floor=floor)
