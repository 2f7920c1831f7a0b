"""What all parts of a plan are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, Field

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Scalar = int | float | str | bool


def _number(value: Any) -> Any:
    """Take a whole number where a broken one is expected, but not true and false."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]


def kinds(field: FieldInfo) -> dict[str, type[BaseModel]]:
    """Return the models of a tagged union by their tags; an empty dictionary for other fields."""
    tag = field.discriminator
    if not isinstance(tag, str):
        return {}
    return {
        get_args(kind.model_fields[tag].annotation)[0]: kind for kind in get_args(field.annotation)
    }
