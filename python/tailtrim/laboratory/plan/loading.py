"""Runs made of a YAML file; every error names the place and the allowed values."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from tailtrim.laboratory.devices import DEVICES, InlineDevice
from tailtrim.laboratory.devices.wire import Wire
from tailtrim.laboratory.plan.model import TOGETHER, Plan, Run
from tailtrim.laboratory.plan.permissions import refusals
from tailtrim.laboratory.plan.plan_file import Place, Source
from tailtrim.laboratory.plan.run_order import arranged, kept
from tailtrim.laboratory.plan.testbed import located, testbed_of
from tailtrim.laboratory.plan.trimming import values_of
from tailtrim.laboratory.plan.variables import MOST_RUNS, filled_in, loop_of, names_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from tailtrim.laboratory.devices import AnyDevice
    from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
    from tailtrim.laboratory.plan.fields import Scalar
    from tailtrim.laboratory.plan.traffic import Traffic

#: From here on a number of runs is not written out: it may have thousands of digits.
_UNTOLD = 10**15
#: Where variables may be used.
_PARTS = ("dut", "traffic", "boot")


def load(
    path: Path, testbed: TestbedDescription | None = None, *, changed: Collection[str] = ()
) -> tuple[Plan, list[Run]]:
    """Read a plan and lay out its runs, in the order in which they are to be done.

    Args:
        path: where it is.
        testbed: instead of the one that it names.
        changed: which of the changes that ``tailtrim trim`` may try are made.

    Raises:
        PlanError: the file cannot be read, or asks for what makes no sense.

    """
    source = Source(path)
    source.data["testbed"] = testbed or testbed_of(source, path.parent)
    loop, factors = loop_of(source), loop_of(source, "factors")
    repeat = source.data.get("repeat", 1)
    # A value that is not a number, or less than one, is refused by the check of the plan.
    repeats = max(repeat, 1) if isinstance(repeat, int) else 1
    cases = 1 + sum(len(values) - 1 for values in factors.values()) + ("together" in source.data)
    count = prod(map(len, loop.values())) * cases * repeats
    if count > MOST_RUNS:
        told = f"{count:,}" if count < _UNTOLD else f"more than {_UNTOLD:,}"
        source.fail(("loop",), f"makes {told} runs, expected at most {MOST_RUNS:,}")
    # Each combination is looked at as a plan of its own, so that all of it is checked beforehand.
    values = values_of(source, changed)
    combinations = list(_combinations(loop, factors, values, source))
    variables = {"loop": loop, "factors": factors}
    data = source.data | {key: named for key, named in variables.items() if named}
    plans = [_plan(data, combinations[0].values, loop | factors, source)]
    # Variables are looked at once: there may be as many values as combinations.
    data = {key: value for key, value in data.items() if key not in {*variables, TOGETHER}}
    plans += [_plan(data, one.values, loop | factors, source) for one in combinations[1:]]
    _all_used(loop, factors, values, source)
    if plans[0].boot is not None and not any(one.boots_node for one in plans):
        told = "the device's node does not boot, expected dut.node: vm or a testbed file"
        source.fail(("boot",), told)
    dut = source.data.get("dut")
    if isinstance(dut, dict) and "container" in dut and not any(map(_in_container, plans)):
        source.fail(("dut", "container"), "no device is in it, expected dut.node: container")
    source.refuse(dict.fromkeys(refusal for one in plans for refusal in refusals(one)))
    # Where some runs make sense, the others are skipped.
    too_large = [one.dut.too_large(one.traffic.largest_frame) for one in plans]
    if too_large[0] is not None and all(too_large):
        source.fail(("traffic", "frame_bytes"), too_large[0])
    return _located(plans[0], path.parent), _runs(plans, combinations, source)


def _located(plan: Plan, folder: Path) -> Plan:
    """Return a plan whose meter has paths that are right from everywhere."""
    energy = plan.energy
    if energy is None or energy.meter is None:
        return plan
    meter = located(energy.meter, folder)
    return plan.model_copy(update={"energy": energy.model_copy(update={"meter": meter})})


def loop_variables(path: Path, *places: Place) -> set[str]:
    """Return the variables that a plan uses at some places, such as ``("dut", "node")``.

    Raises:
        PlanError: the file cannot be read.

    """
    source = Source(path)
    return {name for place in places for name in names_in(source.at(place))}


@dataclass(frozen=True)
class _Combination:
    """Values of all variables; those that tell it apart; which factor has not its first."""

    values: dict[str, Scalar]
    told: dict[str, Scalar]
    varied: str | None = None


def _combinations(
    loop: dict[str, list[Scalar]],
    factors: dict[str, list[Scalar]],
    of_changes: dict[str, Scalar],
    source: Source,
) -> Iterator[_Combination]:
    together = source.data.get("together")
    if together is not None and not isinstance(together, dict):
        source.fail(("together",), "expected values of factors, such as {pinned: true}")
    for name in together or ():
        if name not in factors:
            known = ", ".join(factors) or "none (the plan has no factors)"
            source.fail(("together", str(name)), f"unknown factor, expected one of {known}")
    first = of_changes | {name: values[0] for name, values in factors.items()}
    for values in product(*loop.values()):
        looped = dict(zip(loop, values, strict=True))
        yield _Combination(looped | first, looped)
        for name, others in factors.items():
            for value in others[1:]:
                yield _Combination(looped | first | {name: value}, looped | {name: value}, name)
        if together:
            yield _Combination(looped | first | together, looped, TOGETHER)


def _all_used(
    loop: dict[str, list[Scalar]],
    factors: dict[str, list[Scalar]],
    of_changes: dict[str, Scalar],
    source: Source,
) -> None:
    used = set(names_in([source.data.get(part) for part in _PARTS]))
    for name in of_changes:
        where = ("trim", "candidates", name)
        if name in loop or name in factors:
            source.fail(where, "already a loop variable or factor")
        if name not in used:
            source.fail(where, f"${name} is not used in dut, traffic or boot")
    for key, names in (("loop", loop), ("factors", factors)):
        for name in names:
            if name not in used:
                source.fail((key, name), f"${name} is not used in dut, traffic or boot")
    for name, values in factors.items():
        if name in loop:
            source.fail(("factors", name), "already a loop variable")
        if len(values) == 1:
            source.fail(("factors", name), "expected a second value, to compare the first with")


def _plan(
    data: dict[str, Any],
    values: dict[str, Scalar],
    variables: dict[str, list[Scalar]],
    source: Source,
) -> Plan:
    filled = {
        part: filled_in(data[part], values, source, (part,)) for part in _PARTS if part in data
    }
    if isinstance(filled.get("dut"), dict):
        filled["dut"] = _own_options(filled["dut"], variables, source)
    return source.validated(Plan, data | filled)


def _own_options(
    dut: dict[str, Any], loop: dict[str, list[Scalar]], source: Source
) -> dict[str, Any]:
    """Leave out the options that other devices of the same loop have."""
    others = {
        option
        for name in names_in(source.at(("dut", "preset")))
        for preset in loop.get(name, ())
        for option in _options(preset)
    }
    own = _options(dut.get("preset"))
    return {key: value for key, value in dut.items() if key in own or key not in others}


def _options(preset: Any) -> set[str]:
    known = isinstance(preset, str) and preset in DEVICES
    return set(DEVICES.load(preset).model_fields) if known else {"preset"}


def _runs(plans: list[Plan], combinations: list[_Combination], source: Source) -> list[Run]:
    plan = plans[0]
    wire = Wire(preset="wire")
    of_traffic = set(names_in(source.data["traffic"]))
    booting = any(one.boots_node for one in plans)
    runs: list[Run] = []
    floors: set[str] = set()
    done: set[tuple[str, ...]] = set()
    for concrete, one in zip(plans, combinations, strict=True):
        key = concrete.traffic.model_dump_json()
        # A round trip passes no testbed that the wire could be the floor of.
        passed = isinstance(concrete.dut, InlineDevice) and not isinstance(concrete.dut, Wire)
        floored = plan.floor and passed
        if floored and key not in floors:
            # The wire knows nothing of the device: one floor for each traffic.
            floors.add(key)
            loop = {name: value for name, value in one.told.items() if name in of_traffic}
            runs.append(_run(wire, concrete.traffic, loop, 0, floor=True))
        boot = concrete.boot if concrete.boots_node else None
        same = (concrete.dut.model_dump_json(), key, boot.model_dump_json() if boot else "")
        if same in done:
            # Variables of other devices make no difference to this one.
            continue
        done.add(same)
        names = of_traffic | _names_of_device(concrete, source)
        loop = {name: value for name, value in one.told.items() if name in names}
        run = _run(concrete.dut, concrete.traffic, loop, 0, floor=False)
        run = run.model_copy(update={"varied": one.varied, "boot": boot})
        traced = run.model_copy(update={"traced": True})
        runs += [run, traced] if plan.trace == "both" else [traced if plan.trace else run]
    measured = [run for run in runs if not run.floor]
    for repetition in range(1, plan.boots if booting else plan.repeat):
        runs += [run.model_copy(update={"repetition": repetition}) for run in measured]
    if booting or kept(runs):
        at_random = plan.order == "random" or (booting and "order" not in source.data)
        runs = arranged(runs, plan.seed, at_random=at_random)
    elif plan.order == "random":
        random.Random(plan.seed).shuffle(runs)  # noqa: S311 - an order, not a secret
    return [run.model_copy(update={"number": number}) for number, run in enumerate(runs)]


def _names_of_device(plan: Plan, source: Source) -> set[str]:
    """Return the variables that make a difference to a device where it is.

    Boots, and limits of a container, make no difference to devices that are elsewhere.
    """
    parts = source.data["dut"]
    if isinstance(parts, dict) and not _in_container(plan):
        parts = {key: value for key, value in parts.items() if key != "container"}
    boot = [source.data.get(key) for key in ("boot", "vm")] if plan.boots_node else []
    return set(names_in([parts, *boot]))


def _in_container(plan: Plan) -> bool:
    return isinstance(plan.dut, InlineDevice) and plan.dut.node == "container"


def _run(
    dut: AnyDevice, traffic: Traffic, loop: dict[str, Scalar], repetition: int, *, floor: bool
) -> Run:
    return Run(number=0, dut=dut, traffic=traffic, loop=loop, repetition=repetition, floor=floor)
