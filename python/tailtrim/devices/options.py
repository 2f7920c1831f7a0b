"""What options are made of: those of devices, and all else that a plan says."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

#: Decimals that have no other reading than the agent's.
DECIMAL = r"\d+(\.\d+)?"
TIME = rf"{DECIMAL}(ns|us|ms|s)"


class Strict(BaseModel):
    """A part of a plan: nothing in it that is not known, nothing converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
