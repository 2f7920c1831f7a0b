"""Variables of an allocation: read, put into a grid of runs, looked up and printed."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import yaml

from tailtrim.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: More runs than this are a mistake in a range.
MOST_RUNS = 100_000
_RANGE = 4  # a, b, ..., z


def read(text: str, source: str, *, json_text: bool = False) -> dict[str, Any]:
    """Return the variables of a file.

    Args:
        text: its content.
        source: its name, for errors.
        json_text: whether it is JSON; otherwise YAML, which includes JSON.

    Raises:
        PlanError: it is not a mapping of names to values.

    """
    try:
        found = json.loads(text) if json_text else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise PlanError(f"{source}: cannot be read: {' '.join(str(error).split())}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise PlanError(f"{source}: expected names with values, such as {{rate: 1000}}")
    return {str(name): value for name, value in found.items()}


def read_loop(given: Mapping[str, Any], source: str) -> dict[str, list[Any]]:
    """Return the values of loop variables, with ranges written out.

    >>> read_loop({"rate": [10, 20, "...", 50], "size": [64]}, "loop.yml")
    {'rate': [10, 20, 30, 40, 50], 'size': [64]}

    Raises:
        PlanError: a value is not a list, or a range ends nowhere.

    """
    return {name: _values(name, value, source) for name, value in given.items()}


def _values(name: str, given: Any, source: str) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise PlanError(f"{source}: {name}: expected a list of values, such as [64, 1500]")
    if "..." not in given:
        return given
    numbers = [value for value in given if value != "..."]
    plain = all(type(value) is int for value in numbers)
    if len(given) != _RANGE or given[2] != "..." or not plain:
        told = "a range is [first, second, ..., last] with whole numbers"
        raise PlanError(f"{source}: {name}: {told}")
    first, second, last = numbers
    step = second - first
    if step == 0 or (last - first) % step or not 1 <= (last - first) // step < MOST_RUNS:
        told = f"from {first} in steps of {step} the range never reaches {last}"
        raise PlanError(f"{source}: {name}: {told}")
    return list(range(first, last + (1 if step > 0 else -1), step))


def grid(loop: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the loop variables of each run; its place in the list is the run's number.

    pos keeps loop variables as PostgreSQL's jsonb, which orders keys by length and then by bytes.
    The last of them changes fastest. Without variables there is one run.

    >>> grid({"pkt_rate": [1, 2], "pkt_sz": [64, 1500]})[1]
    {'pkt_sz': 64, 'pkt_rate': 2}

    Raises:
        PlanError: there are more than 100,000 runs.

    """
    names = sorted(loop, key=lambda name: (len(name.encode()), name.encode()))
    runs = 1
    for name in names:
        runs *= len(loop[name])
    if runs > MOST_RUNS:
        raise PlanError(f"loop variables: {runs:,} runs, expected at most {MOST_RUNS:,}")
    values = itertools.product(*(loop[name] for name in names))
    return [dict(zip(names, of_run, strict=True)) for of_run in values]


def look_up(variables: Mapping[str, Any], path: str, delimiter: str = "/") -> Any:
    """Return a variable by its path, such as ``moongen/repo``.

    Raises:
        KeyError: it is unknown.

    """
    if path in variables:
        return variables[path]
    found: Any = variables
    for name in path.split(delimiter):
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict):
            found = found[name]
        else:
            raise KeyError(path)
    return found


def put(variables: dict[str, Any], path: str, value: Any) -> None:
    """Set a variable by its path; maps on the way are made."""
    *way, name = path.split("/")
    for step in way:
        inner = variables.get(step)
        if not isinstance(inner, dict):
            inner = variables[step] = {}
        variables = inner
    variables[name] = value


def printed(value: Any) -> str:
    """Return a value as pos prints it: maps and lists as Python writes them.

    >>> printed({"repo": "a"}), printed(64), printed(True)
    ("{'repo': 'a'}", '64', 'True')

    """
    return str(value)
