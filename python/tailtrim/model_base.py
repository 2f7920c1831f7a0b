"""Base class of the models of files that people write, such as plans and testbeds."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A part of such a file: nothing in it that is not known, nothing converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
