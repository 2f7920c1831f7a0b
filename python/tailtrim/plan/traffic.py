"""What is sent."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from tailtrim.plan.base import DECIMAL, Number, Strict

#: What buffers for an MTU of 1,500 hold, with FCS.
LARGEST_SMALL = 1_518
#: Frame sizes, with FCS: the smallest, the largest; and what a probe needs with each version of IP,
#: and with a VLAN tag more.
_LEAST, _MOST = 64, 9_018
_PROBE = {4: 64, 6: 84}
_TAG = 4


class Traffic(Strict):
    """What the load generator sends."""

    frame_bytes: int | str = Field(
        default=64, description="Bytes with FCS: one size, a list such as 64,1518, or imix."
    )
    rate_pps: int | None = Field(
        default=None, gt=0, le=100_000_000, description="Packets a second; or rate."
    )
    rate: str | None = Field(
        default=None,
        description="Packets or bits on the wire, such as 120kpps or 500Mbit/s, or bursts, such as"
        " 20bursts/s; or rate_pps.",
    )
    pattern: str = Field(
        default="cbr",
        description="cbr, poisson, burst:N, jitter:SHARE, replay:CAPTURE or replay:CAPTURE:SCALE.",
    )
    flows: int = Field(default=1, ge=1, le=55_000, description="Told apart by source ports.")
    duration_s: Number = Field(default=5.0, gt=0, le=86_400, description="How long, in seconds.")
    ip: Literal[4, 6] = Field(default=4, description="Version of IP.")
    dscp: int = Field(default=0, ge=0, le=63, description="Differentiated services code point.")
    vlan: int | None = Field(default=None, ge=1, le=4_094, description="802.1Q VLAN.")
    seed: int = Field(
        default=1, ge=0, description="Of the schedule; each repetition adds its number."
    )

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

    @field_validator("rate")
    @classmethod
    def _known_rate(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(rf"{DECIMAL} ?[kMG]?(pps|bit/s)?", value):
            raise ValueError(
                "expected packets such as 120kpps, bits such as 500Mbit/s or, with pattern burst:N,"
                " 20bursts/s"
            )
        if value is not None and not re.search("[1-9]", value):
            raise ValueError("expected more than nothing")
        return value

    @field_validator("pattern")
    @classmethod
    def _known(cls, value: str) -> str:
        if not re.fullmatch(r"cbr|poisson|burst:[1-9]\d*|jitter:0?\.\d+|replay:.+", value):
            raise ValueError(
                "expected cbr, poisson, burst:N, jitter:SHARE up to 0.5 or replay:CAPTURE"
            )
        # For a loop over burst sizes.
        return "cbr" if value == "burst:1" else value

    @model_validator(mode="before")
    @classmethod
    def _packets_of_bursts(cls, data: Any) -> Any:
        """Take a rate of bursts for that of their packets, which the agent knows."""
        if not isinstance(data, dict):
            return data
        rate = re.fullmatch(rf"({DECIMAL}) ?bursts/s", str(data.get("rate")))
        burst = re.fullmatch(r"(?:cbr|burst:([1-9]\d*))", str(data.get("pattern", "cbr")))
        if not rate or not burst:
            return data
        packets = Decimal(rate.group(1)) * int(burst.group(1) or 1)
        return data | {"rate": f"{packets:f}pps"}

    @model_validator(mode="after")
    def _one_rate(self) -> Traffic:
        replay = self.pattern.startswith("replay")
        if replay and (self.rate_pps is not None or self.rate is not None):
            raise ValueError("rate_pps or rate: a replay has the rate of its capture")
        if not replay and (self.rate_pps is None) == (self.rate is None):
            raise ValueError("rate_pps or rate: exactly one of them is needed")
        least = _PROBE[self.ip] + (_TAG if self.vlan is not None else 0)
        if min(self._sizes) < least:
            tagged = " and a VLAN tag" if self.vlan is not None else ""
            raise ValueError(f"frame_bytes: at least {least} with IPv{self.ip}{tagged}")
        return self

    @property
    def _sizes(self) -> list[int]:
        if self.frame_bytes == "imix":
            return [_LEAST, LARGEST_SMALL]
        return [int(size) for size in str(self.frame_bytes).split(",")]

    @property
    def largest_frame(self) -> int:
        """Bytes of the largest frame, with FCS."""
        return max(self._sizes)
