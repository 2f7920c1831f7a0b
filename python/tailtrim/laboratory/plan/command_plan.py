"""The file of a search on a workload that is not the plan's: :func:`load_watched`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from tailtrim.laboratory.plan.fields import Name, Number
from tailtrim.laboratory.plan.plan_file import Source
from tailtrim.laboratory.plan.trimming import Trimming
from tailtrim.model_base import Strict

if TYPE_CHECKING:
    from pathlib import Path


class WatchedPlan(Strict):
    """Changes of this host that a search tries on the user's workload."""

    name: Name = Field(description="Name of the search; results go to results/NAME.")
    duration_s: Number = Field(
        gt=0, description="How long the command of --watch takes, in seconds, about."
    )
    trim: Trimming


def load_watched(path: Path) -> WatchedPlan:
    """Read the file.

    Raises:
        PlanError: it cannot be read, or asks for what makes no sense.

    """
    source = Source(path, ("name", "duration_s", "trim"))
    plan = source.validated(WatchedPlan, source.data)
    if plan.trim.candidates:
        told = "with --watch changes of this host only, expected trim.host"
        source.fail(("trim", "candidates"), told)
    if plan.trim.host is None:
        source.fail(("trim",), "host is missing, such as {name: dut-1, profile: latency-kernel}")
    return plan
