"""Traffic of a plan."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Literal

from pydantic import (
    AliasChoices,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from tailtrim.analysis.options import amount_of
from tailtrim.laboratory.devices.device import DECIMAL
from tailtrim.laboratory.plan.fields import Number
from tailtrim.laboratory.plan.patterns import Cbr, Pattern, parse
from tailtrim.model_base import Strict

#: Frame sizes, with FCS: the smallest, the largest for an MTU of 1,500, the largest; and those of
#: probes with each version of IP, and with a VLAN tag more.
_LEAST, _LARGEST_SMALL, _MOST = 64, 1_518, 9_018
_PROBE = {4: 64, 6: 84}
_TAG = 4

#: Preamble, start of frame and gap: bytes on the wire in addition to a frame with FCS.
_BETWEEN = 20
#: The simple IMIX, as the generator has it: 7 of 64 bytes, 4 of 594, 1 of 1,518.
_IMIX = (7 * 64 + 4 * 594 + 1518) / 12


class Traffic(Strict):
    """Packets that the load generator sends."""

    frame_bytes: int | str = Field(
        default=64, description="Bytes with FCS: one size, a list such as 64,1518, or imix."
    )
    rate_pps: int | None = Field(
        default=None, gt=0, le=100_000_000, description="Packets per second; alternative: rate."
    )
    rate: str | None = Field(
        default=None,
        description="Packets or bits on the wire, such as 120kpps or 500Mbit/s, or bursts, such"
        " as 20bursts/s; a plain number is packets per second.",
    )
    schedule: Pattern = Field(
        default=Cbr.form,
        validate_default=True,
        validation_alias=AliasChoices("schedule", "pattern"),
        description="When packets are sent; pattern is the older name of this key.",
    )
    flows: int = Field(
        default=1, ge=1, le=55_000, description="Number of flows, each with its own source port."
    )
    duration_s: Number = Field(
        default=5.0, gt=0, le=86_400, description="Duration of the traffic, in seconds."
    )
    ip: Literal[4, 6] = Field(default=4, description="IP version.")
    dscp: int = Field(default=0, ge=0, le=63, description="Differentiated services code point.")
    vlan: int | None = Field(default=None, ge=1, le=4_094, description="802.1Q VLAN.")
    seed: int = Field(
        default=1, ge=0, description="Seed of the schedule; each repetition adds its number."
    )
    departures: Literal["software", "kernel", "hardware"] = Field(
        default="software",
        description="Keeps departures to their time: the generator, which waits for each; the"
        " kernel, by the queueing discipline etf; or the NIC, by its offload of that. Nothing"
        " begins if the load generator's port cannot.",
    )

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Experiments from before there were such classes can be gone on with.
        every: dict[str, Any] = handler(self)
        left_out = {"departures"} if self.departures == "software" else set()
        return {key: value for key, value in every.items() if key not in left_out}

    @field_validator("frame_bytes", mode="plain", json_schema_input_type=int | str)
    @classmethod
    def _known_sizes(cls, value: Any) -> Any:
        if value == "imix":
            return value
        sizes: list[Any] = [value]
        if isinstance(value, str):
            parts = [part.strip() for part in value.split(",")]
            sizes = [int(part) if part.isascii() and part.isdigit() else part for part in parts]
        if not all(type(size) is int and _LEAST <= size <= _MOST for size in sizes):
            raise ValueError(
                f"expected bytes with FCS from {_LEAST} to {_MOST}, a list such as 64,1518, or imix"
            )
        return value

    @field_validator("rate", mode="before")
    @classmethod
    def _packets_a_second(cls, value: Any) -> Any:
        """Take a number without a unit for packets a second."""
        return f"{value}pps" if type(value) is int else value

    @field_validator("rate")
    @classmethod
    def _known_rate(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                amount_of(value)
        except ValueError:
            raise ValueError(
                "expected packets such as 120kpps, bits such as 500Mbit/s or, with schedule"
                " burst:N, 20bursts/s; more than 0"
            ) from None
        return value

    @model_validator(mode="before")
    @classmethod
    def _packets_of_bursts(cls, data: Any) -> Any:
        """Take a rate of bursts for that of their packets, which the agent knows."""
        if not isinstance(data, dict):
            return data
        rate = re.fullmatch(rf"({DECIMAL}) ?bursts/s", str(data.get("rate")))
        try:
            burst = parse(str(data.get("schedule", data.get("pattern", Cbr.form)))).burst
        except ValueError:
            # It is told when the schedule itself is looked at.
            return data
        if not rate or burst is None:
            return data
        packets = Decimal(rate.group(1)) * burst
        return data | {"rate": f"{packets:f}pps"}

    @model_validator(mode="after")
    def _one_rate(self) -> Traffic:
        if self.schedule.brings_rate and (self.rate_pps is not None or self.rate is not None):
            raise ValueError("rate_pps or rate: a replay has the rate of its capture")
        if not self.schedule.brings_rate and (self.rate_pps is None) == (self.rate is None):
            raise ValueError("rate_pps or rate: exactly one of them is needed")
        least = _PROBE[self.ip] + (_TAG if self.vlan is not None else 0)
        if min(self._sizes) < least:
            tagged = " and a VLAN tag" if self.vlan is not None else ""
            raise ValueError(f"frame_bytes: at least {least} with IPv{self.ip}{tagged}")
        return self

    @property
    def _sizes(self) -> list[int]:
        if self.frame_bytes == "imix":
            return [_LEAST, _LARGEST_SMALL]
        return [int(size) for size in str(self.frame_bytes).split(",")]

    @property
    def packets_per_s(self) -> float | None:
        """Packets a second on average; ``None`` where a replay brings its own."""
        if self.rate_pps is not None:
            return float(self.rate_pps)
        if self.rate is None:
            return None
        amount, unit = amount_of(self.rate)
        if unit == "bit/s":
            return float(amount) / (8 * (self._mean_bytes + _BETWEEN))
        return float(amount)

    @property
    def _mean_bytes(self) -> float:
        return _IMIX if self.frame_bytes == "imix" else sum(self._sizes) / len(self._sizes)

    @property
    def largest_frame(self) -> int:
        """Bytes of the largest frame, with FCS."""
        return max(self._sizes)
