"""What all parts of a plan are made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Scalar = int | float | str | bool


def _number(value: Any) -> Any:
    """Take a whole number where a broken one is expected, but not true and false."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]
#: Decimals that have no other reading than the agent's.
DECIMAL = r"\d+(\.\d+)?"
TIME = rf"{DECIMAL}(ns|us|ms|s)"


class Strict(BaseModel):
    """A part of a plan: nothing in it that is not known, nothing converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
