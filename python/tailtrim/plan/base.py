"""What all parts of a plan are made of."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, Field
from pydantic.fields import FieldInfo

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Scalar = int | float | str | bool


def _number(value: Any) -> Any:
    """Take a whole number where a broken one is expected, but not true and false."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]


def kinds(field: FieldInfo) -> dict[str, type[BaseModel]]:
    """Return the models of a tagged union by their tags; an empty dictionary for other fields."""
    tag, union = _tagged(field)
    if not tag:
        return {}
    return {get_args(kind.model_fields[tag].annotation)[0]: kind for kind in get_args(union)}


def tag_of(field: FieldInfo) -> str:
    """Return the key that tells the models of a tagged union apart; nothing for other fields."""
    return _tagged(field)[0]


def _tagged(field: FieldInfo) -> tuple[str, Any]:
    """Return the key and the union of a field that has one, or may have none in its place."""
    if isinstance(field.discriminator, str):
        return field.discriminator, field.annotation
    for part in get_args(field.annotation):
        if get_origin(part) is Annotated:
            union, *told = get_args(part)
            for one in told:
                if isinstance(one, FieldInfo) and isinstance(one.discriminator, str):
                    return one.discriminator, union
    return "", None
