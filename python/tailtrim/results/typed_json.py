"""JSON that others may have written, as typed values: :func:`read_object`, :func:`typed`."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

#: Counts have 64 bits; beyond that, arithmetic with floats may overflow.
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


def parsed(text: str) -> Any:
    """Return what a JSON text holds.

    Raises:
        ValueError: it is not JSON, or nested too deep.

    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds.

    Raises:
        RunDirectoryError: it cannot be read, or holds something else.

    """
    try:
        value = parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise RunDirectoryError(f"{path}: expected a JSON object")
    return value


def typed(kind: type[T], value: Any) -> T:
    """Fill a dataclass, and those in it; keys that a later minor version adds are passed over.

    A field with a default may be missing: earlier minor versions had none.

    Raises:
        KeyError: a key is missing.
        ValueError: a value is of another type than its field.

    """
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, not {value!r:.80}")  # noqa: TRY004 - of a file
    return kind(
        **{
            name: _value(of, value[name], name)
            for name, of, required in _fields(kind)  # type: ignore[arg-type]
            if required or name in value
        }
    )


@lru_cache
def _fields(kind: type[Any]) -> list[tuple[str, Any, bool]]:
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name], field.default is MISSING) for field in fields(kind)]


def _value(of: Any, value: Any, name: str) -> Any:
    if of is int and type(value) is int and _LEAST <= value <= _MOST:
        return value
    if of in (str, bool) and type(value) is of:
        return value
    if is_dataclass(of):
        return typed(of, value)  # type: ignore[arg-type]
    kinds = get_args(of)
    if NoneType in kinds:
        return None if value is None else _value(kinds[0], value, name)
    if get_origin(of) is tuple and isinstance(value, list):
        return tuple(_value(kinds[0], one, name) for one in value)
    if get_origin(of) is dict and isinstance(value, dict):
        return {_value(str, key, name): _value(kinds[1], one, name) for key, one in value.items()}
    raise ValueError(f"{name}: {value!r:.80} is not of the type {getattr(of, '__name__', of)}")
