"""Types that all parts of a plan share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import BeforeValidator, Field

from tailtrim.kinds import Kinds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic.fields import FieldInfo

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Scalar = int | float | str | bool


def _number(value: Any) -> Any:
    """Take a whole number where a broken one is expected, but not true and false."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]


def kinds_of(field: FieldInfo) -> Kinds | None:
    """Return the kinds of models that a field takes, or may take; ``None`` for other fields."""
    annotation = field.annotation
    parts = () if get_origin(annotation) is dict else get_args(annotation)
    return _first([*field.metadata, *(one for part in parts for one in _told(part))])


def kinds_of_values(annotation: Any) -> Kinds | None:
    """Return the kinds of models that are the values of a dictionary, by its annotation."""
    return _first(_told(get_args(annotation)[1]))


def _first(told: Iterable[Any]) -> Kinds | None:
    return next((one for one in told if isinstance(one, Kinds)), None)


def _told(part: Any) -> tuple[Any, ...]:
    return get_args(part)[1:] if get_origin(part) is Annotated else ()
