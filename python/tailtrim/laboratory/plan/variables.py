"""Loop variables: their values, and where they are put.

``$rate`` alone is the value with its type. Within a text, such as ``burst:$size``, it is the value
as text; ``${size}`` does the same where letters follow, and ``$$`` is a dollar sign.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tailtrim.laboratory.plan.fields import Scalar
    from tailtrim.laboratory.plan.plan_file import Place, Source

#: More runs than this are a mistake in a range, not a plan.
MOST_RUNS = 100_000

_VARIABLE = re.compile(r"\$(?:(\$)|\{([^}]*)\}|([A-Za-z0-9_]*))")


def loop_of(source: Source, key: str = "loop") -> dict[str, list[Scalar]]:
    """Return the values of each loop variable, or factor, with ranges written out.

    Raises:
        PlanError: a loop is not a list, or a range ends nowhere.

    """
    loop = source.data.get(key)
    if loop is None:
        return {}
    if not isinstance(loop, dict):
        source.fail((key,), "expected variables, such as {rate: [10000, 20000]}")
    values: dict[str, list[Scalar]] = {}
    for name, given in loop.items():
        where = (key, str(name))
        if not re.fullmatch("[A-Za-z0-9_]+", str(name)):
            source.fail(where, "a variable's name has letters, digits and _")
        if not isinstance(given, list) or not given:
            source.fail(where, "expected a list of values, such as [10000, 20000, ..., 120000]")
        values[str(name)] = _values(given, where, source)
    return values


def _values(values: list[Any], where: Place, source: Source) -> list[Scalar]:
    """Expand ``[a, b, ..., z]``."""
    if "..." not in values:
        for value in values:
            if not isinstance(value, int | float | str):
                source.fail(where, f"invalid value {value!r}, expected numbers or text")
        if len(set(map(repr, values))) < len(values):
            source.fail(where, "value given twice: use repeat to run it again")
        return values
    match values:
        case [int(first), int(second), "...", int(last)] if bool not in map(type, values):
            pass
        case _:
            source.fail(where, "a range is [first, second, ..., last] with whole numbers")
    step = second - first
    if step == 0 or (last - first) % step or (last - first) // step < 1:
        source.fail(where, f"from {first} in steps of {step} the range never reaches {last}")
    if (last - first) // step >= MOST_RUNS:
        source.fail(where, f"more than {MOST_RUNS:,} values: too many for a plan")
    return list(range(first, last + (1 if step > 0 else -1), step))


def names_in(value: Any) -> Iterator[str]:
    """Yield the variables that are used somewhere in a value."""
    if isinstance(value, str):
        for match in _VARIABLE.finditer(value):
            if not match.group(1):
                yield match.group(2) or match.group(3)
    elif isinstance(value, dict):
        for item in value.values():
            yield from names_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from names_in(item)


def filled_in(value: Any, values: Mapping[str, Scalar], source: Source, where: Place) -> Any:
    """Return a value with the variables put in.

    Raises:
        PlanError: there is no such variable.

    """
    if isinstance(value, dict):
        return {
            key: filled_in(item, values, source, (*where, str(key))) for key, item in value.items()
        }
    if not isinstance(value, str):
        return value
    for name in names_in(value):
        if name not in values:
            known = ", ".join(f"${known}" for known in values) or "none (the plan has no loop)"
            problem = f"unknown loop variable ${name}, expected one of {known}"
            source.fail(where, f"{problem} ($$ is a dollar sign)")
    alone = _VARIABLE.fullmatch(value)
    if alone and not alone.group(1):
        return values[alone.group(2) or alone.group(3)]

    def text(match: re.Match[str]) -> str:
        return "$" if match.group(1) else str(values[match.group(2) or match.group(3)])

    return _VARIABLE.sub(text, value)
