"""From a YAML file to runs; every error says where and what is allowed."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from tailtrim.errors import PlanError
from tailtrim.plan.model import Dut, Plan, Run, Scalar, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Model = TypeVar("Model", bound=BaseModel)

#: More runs than this are a mistake in a range, not a plan.
MOST_RUNS = 100_000


def load(path: Path) -> tuple[Plan, list[Run]]:
    """Read a plan and lay out its runs, in the order in which they are to be done.

    Raises:
        PlanError: the file cannot be read, or asks for what makes no sense.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: cannot be read: {error}") from error
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "somewhere"
        problem = getattr(error, "problem", None) or error
        raise PlanError(f"{path}: {where}: {problem}, expected YAML") from error
    if not isinstance(raw, dict) or tree is None:
        raise PlanError(f"{path}: expected keys such as name, dut and traffic")
    source = _Source(path, tree)
    loop = _loop(raw.get("loop") or {}, source)
    combinations = [dict(zip(loop, values, strict=True)) for values in product(*loop.values())]
    repeat = raw.get("repeat", 1)
    if isinstance(repeat, int) and len(combinations) * repeat > MOST_RUNS:
        source.fail(("loop",), f"makes {len(combinations) * repeat:,} runs, at most {MOST_RUNS:,}")
    first = _substituted(raw | {"loop": loop}, combinations[0], source)
    _all_used(loop, raw, source)
    plan = source.validated(Plan, first)
    plan = plan.model_copy(update={"loop": loop})
    return plan, _runs(plan, raw, combinations, source)


def _runs(
    plan: Plan, raw: dict[str, Any], combinations: list[dict[str, Scalar]], source: _Source
) -> list[Run]:
    runs: list[Run] = []
    wire = Dut(preset="wire")
    floors: set[str] = set()
    for repetition in range(plan.repeat):
        for values in combinations:
            concrete = _substituted({key: raw[key] for key in ("dut", "traffic")}, values, source)
            dut = source.validated(Dut, concrete["dut"], ("dut",))
            traffic = source.validated(Traffic, concrete["traffic"], ("traffic",))
            # The wire knows nothing of the device: one floor for each traffic.
            if plan.floor and dut != wire and repetition == 0:
                key = traffic.model_dump_json()
                if key not in floors:
                    floors.add(key)
                    of_traffic = set(_variables(raw["traffic"]))
                    loop = {name: value for name, value in values.items() if name in of_traffic}
                    runs.append(_run(wire, traffic, loop, repetition, floor=True))
            runs.append(_run(dut, traffic, values, repetition, floor=False))
    if plan.order == "random":
        random.Random(plan.seed).shuffle(runs)  # noqa: S311 - an order, not a secret
    return [run.model_copy(update={"number": number}) for number, run in enumerate(runs)]


def _run(
    dut: Dut, traffic: Traffic, loop: dict[str, Scalar], repetition: int, *, floor: bool
) -> Run:
    return Run(number=0, dut=dut, traffic=traffic, loop=loop, repetition=repetition, floor=floor)


def _loop(raw: Any, source: _Source) -> dict[str, list[Scalar]]:
    if not isinstance(raw, dict):
        source.fail(("loop",), "expected variables, such as {rate: [10000, 20000]}")
    loop: dict[str, list[Scalar]] = {}
    for name, values in raw.items():
        where = ("loop", str(name))
        if not isinstance(values, list) or not values:
            source.fail(where, "expected a list of values, such as [10000, 20000, ..., 120000]")
        loop[str(name)] = _values(values, where, source)
    return loop


def _values(values: list[Any], where: tuple[str, ...], source: _Source) -> list[Scalar]:
    """Expand ``[a, b, ..., z]``."""
    if "..." not in values:
        for value in values:
            if not isinstance(value, int | float | str | bool):
                source.fail(where, f"{value!r} is no value, expected numbers or text")
        return values
    numbers = [value for value in values if value != "..."]
    plain = all(type(value) is int for value in numbers)
    if len(values) != 4 or values[2] != "..." or not plain:  # noqa: PLR2004 - a, b, ..., z
        source.fail(where, "a range is [first, second, ..., last] with whole numbers")
    first, second, last = numbers
    step = second - first
    if step == 0 or (last - first) % step or (last - first) // step < 1:
        source.fail(where, f"from {first} in steps of {step} the range never reaches {last}")
    return list(range(first, last + (1 if step > 0 else -1), step))


def _all_used(loop: dict[str, list[Scalar]], raw: dict[str, Any], source: _Source) -> None:
    used = set(_variables([raw.get("dut"), raw.get("traffic")]))
    for name in loop:
        if name not in used:
            source.fail(("loop", name), f"${name} is used neither in dut nor in traffic")


def _variables(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("$"):
        yield value[1:]
    elif isinstance(value, dict):
        for item in value.values():
            yield from _variables(item)
    elif isinstance(value, list):
        for item in value:
            yield from _variables(item)


def _substituted(
    value: Any, values: dict[str, Scalar], source: _Source, where: tuple[str, ...] = ()
) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in values:
            known = ", ".join(f"${name}" for name in values) or "none: there is no loop"
            source.fail(where, f"{value} is no loop variable, expected one of {known}")
        return values[value[1:]]
    if isinstance(value, dict):
        return {k: _substituted(v, values, source, (*where, str(k))) for k, v in value.items()}
    return value


class _Source:
    """The file, to say where in it something is wrong."""

    def __init__(self, path: Path, tree: yaml.Node) -> None:
        self._path = path
        self._tree = tree

    def fail(self, where: tuple[str, ...], problem: str) -> NoReturn:
        raise PlanError(f"{self._path}: line {self._line(where)}: {'.'.join(where)}: {problem}")

    def validated(self, model: type[Model], value: Any, where: tuple[str, ...] = ()) -> Model:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            place = (*where, *map(str, first["loc"]))
            problem = first["msg"].removeprefix("Value error, ")
            if first["type"] == "extra_forbidden":
                parent = _at(model, place[len(where) : -1])
                problem = f"unknown key, expected one of {', '.join(parent.model_fields)}"
            elif first["type"] == "missing":
                problem = "is missing"
            else:
                shown = first.get("input")
                told = not isinstance(shown, dict)
                problem = f"{problem}, not {shown!r}" if told else problem
            self.fail(place, problem)

    def _line(self, where: tuple[str, ...]) -> int:
        node, line = self._tree, self._tree.start_mark.line
        for key in where:
            if not isinstance(node, yaml.MappingNode):
                break
            for name, value in node.value:
                if name.value == key:
                    node, line = value, name.start_mark.line
                    break
            else:
                break
        return line + 1


def _at(model: type[BaseModel], place: tuple[str, ...]) -> type[BaseModel]:
    for key in place:
        field = model.model_fields[key].annotation
        if isinstance(field, type) and issubclass(field, BaseModel):
            model = field
    return model
