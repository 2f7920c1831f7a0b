"""Settings that ``tailtrim trim`` may change: the key ``trim`` of a plan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer

from tailtrim._native import quantile
from tailtrim.laboratory.plan.fields import Name, Number, Scalar
from tailtrim.model_base import Strict

if TYPE_CHECKING:
    from collections.abc import Collection

    from tailtrim.laboratory.plan.plan_file import Source

_SHAPE = "expected changes, such as {batch: {baseline: 32, changed: 4}}"


class PlannedChange(Strict):
    """A change of the plan itself: of the device, what disturbs it, its container, what boots."""

    baseline: Scalar = Field(description="What $NAME stands for without the change.")
    changed: Scalar = Field(description="What $NAME stands for with the change.")
    group: Name | None = Field(
        default=None,
        description="Changes of one group are screened together, since some do nothing alone."
        " Default: the change alone.",
    )
    risk: list[Name] = Field(
        default_factory=list,
        description="Boot parameters that take away CPUs or protection, such as mitigations: a"
        " change that has one is tried only if it is named here.",
    )

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Searches from before there were risks can be gone on with.
        every: dict[str, Any] = handler(self)
        return {key: value for key, value in every.items() if key != "risk" or self.risk}


class HostChanges(Strict):
    """Changes of the host by tailtrim tune that take effect at once."""

    name: str = Field(
        min_length=1,
        description="The host that may be changed, as hostname prints it. On any other host"
        " nothing is changed.",
    )
    profile: Literal["latency-poll", "latency-kernel", "nfv-host", "nfv-guest", "measure-only"] = (
        Field(description="The set of changes, as of tailtrim tune --profile.")
    )
    isolate: str | None = Field(
        default=None,
        pattern=r"^[0-9,-]+$",
        description="CPUs of the workload, as of tailtrim tune --isolate.",
    )
    only: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]] = Field(
        default_factory=list,
        description="Only these changes, by their names or the IDs of their checks. Changes that"
        " switch off hyper-threads are tried only if they are named here.",
    )


class TrimLimits(Strict):
    """Limits on the cost of a change."""

    loss: Number | None = Field(
        default=None, ge=0, le=1, description="Highest share of packets that are lost."
    )
    throughput: Number | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="Highest share of the baseline's delivered packets per second that a change"
        " may cost.",
    )
    watts: Number | None = Field(
        default=None,
        gt=0,
        description="Highest mean power of the device's node; it needs a meter.",
    )


class Trimming(Strict):
    """A search for the changes that cut the tail."""

    quantile: str = Field(
        default="p99.9",
        validate_default=True,
        description="Which quantile; lost packets count as infinitely late.",
    )
    error: Number = Field(
        default=0.05,
        gt=0,
        lt=0.5,
        description="Highest probability that any change is kept that does not help.",
    )
    worth: Number = Field(
        default=0.05, gt=0, lt=1, description="Smallest share of the tail that is worth a change."
    )
    limits: TrimLimits = Field(default_factory=TrimLimits)
    candidates: dict[Name, PlannedChange] = Field(
        default_factory=dict,
        description="Changes of the plan, by name: $NAME in dut, traffic or boot stands for"
        " the value. In the order of expected gain.",
    )
    host: HostChanges | None = Field(
        default=None, description="Changes of this host; with testbed: local only."
    )

    @field_validator("quantile")
    @classmethod
    def _known(cls, value: str) -> str:
        return quantile(value)


def values_of(source: Source, changed: Collection[str]) -> dict[str, Scalar]:
    """Return what the names of the changes stand for.

    Args:
        source: the plan.
        changed: the names of the changes that are made.

    Raises:
        PlanError: it says no values.

    """
    trimming = source.data.get("trim")
    given = trimming.get("candidates") if isinstance(trimming, dict) else None
    if given is None:
        return {}
    if not isinstance(given, dict):
        source.fail(("trim", "candidates"), _SHAPE)
    values: dict[str, Scalar] = {}
    for name, change in given.items():
        where = ("trim", "candidates", str(name))
        if not re.fullmatch("[A-Za-z0-9_]+", str(name)):
            source.fail(where, "a change's name has letters, digits and _")
        key = "changed" if name in changed else "baseline"
        if not isinstance(change, dict) or not isinstance(change.get(key), int | float | str):
            source.fail(where, _SHAPE)
        values[str(name)] = change[key]
    return values
