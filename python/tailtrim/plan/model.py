"""What a plan may say."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

#: Devices under test that are ready to use.
PRESETS = ("wire", "forward", "testpmd", "bridge", "router", "nftables", "command")

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Scalar = int | float | str | bool


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Dut(_Strict):
    """The device under test."""

    preset: Literal["wire", "forward", "testpmd", "bridge", "router", "nftables", "command"]
    #: ``forward``: ask all the time, or sleep until a frame comes.
    mode: Literal["poll", "wait"] = "poll"
    #: ``forward``: most frames in one go.
    batch: int = Field(default=32, ge=1, le=64)
    #: ``forward``: busy work for each frame.
    work_ns: int = Field(default=0, ge=0, le=10_000_000)
    #: ``forward``: a known delay, such as ``bimodal:20us,100us,0.01``.
    delay: str | None = None
    #: ``testpmd``: what it does with MAC addresses.
    forward_mode: Literal["io", "mac", "macswap"] = "io"
    #: ``nftables``: how many rules.
    rules: int = Field(default=1, ge=1, le=100_000)
    #: ``nftables``: which of them accepts the packets, from 1.
    position: int = Field(default=1, ge=1)
    #: ``command``: what to run; ``{in}`` and ``{out}`` are its interfaces.
    command: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> Dut:
        if (self.preset == "command") != (self.command is not None):
            raise ValueError("command: belongs to preset command, which needs one")
        if self.delay is not None and self.preset != "forward":
            raise ValueError("delay: belongs to preset forward")
        if self.position > self.rules:
            raise ValueError("position: must not be above rules")
        return self

    @property
    def label(self) -> str:
        """A short name for tables."""
        return self.preset if self.delay is None else f"{self.preset} ({self.delay})"


class Traffic(_Strict):
    """What the load generator sends."""

    #: Bytes of a frame with FCS: one size, a list such as ``64,1518``, or ``imix``.
    frame_bytes: int | str = 64
    #: Packets a second.
    rate_pps: int | None = Field(default=None, gt=0, le=100_000_000)
    #: Instead: packets or bits on the wire, such as ``120kpps`` or ``500Mbit/s``.
    rate: str | None = None
    pattern: str = "cbr"
    flows: int = Field(default=1, ge=1, le=55_000)
    duration_s: float = Field(default=5.0, gt=0, le=86_400)
    dscp: int = Field(default=0, ge=0, le=63)
    seed: int = Field(default=1, ge=0)

    @field_validator("duration_s", mode="before")
    @classmethod
    def _whole_is_a_number_too(cls, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("pattern")
    @classmethod
    def _known(cls, value: str) -> str:
        if not re.fullmatch(r"cbr|poisson|burst:[1-9]\d*|jitter:0?\.\d+|replay:.+", value):
            raise ValueError("expected cbr, poisson, burst:N, jitter:SHARE or replay:CAPTURE")
        return value

    @model_validator(mode="after")
    def _one_rate(self) -> Traffic:
        if (self.rate_pps is None) == (self.rate is None) and not self.pattern.startswith("replay"):
            raise ValueError("rate_pps or rate: exactly one of them is needed")
        return self


class Limits(_Strict):
    """Beyond these a run says more about the generator than about the device."""

    #: The generator's 99th percentile of departure lateness.
    lateness_p99_us: float = Field(default=1_000.0, gt=0)
    #: The share of the intended packets that must have been sent.
    sent_share: float = Field(default=0.99, gt=0, le=1)


class Plan(_Strict):
    """An experiment."""

    name: Name
    testbed: Literal["local"] = "local"
    dut: Dut
    traffic: Traffic
    loop: dict[Name, list[Scalar]] = Field(default_factory=dict)
    repeat: int = Field(default=1, ge=1, le=1_000)
    trim_s: float = Field(default=1.0, ge=0)
    #: Run in the plan's order or in a random one, which ``seed`` fixes.
    order: Literal["plan", "random"] = "plan"
    seed: int = Field(default=1, ge=0)
    #: Bytes of each frame that are captured.
    snap_bytes: int = Field(default=96, ge=64, le=9_018)
    keep_captures: bool = False
    #: Run everything with the wire as well: the floor of this testbed.
    floor: bool = True
    limits: Limits = Field(default_factory=Limits)

    @field_validator("trim_s", mode="before")
    @classmethod
    def _whole_is_a_number_too(cls, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Run(_Strict):
    """One combination of the loop variables, once."""

    number: int
    dut: Dut
    traffic: Traffic
    loop: dict[str, Scalar]
    repetition: int
    #: The wire instead of the plan's device.
    floor: bool

    @property
    def folder(self) -> str:
        """The name of its run directory."""
        return f"run-{self.number:03d}"

    @property
    def label(self) -> str:
        """A name for tables: the device and the loop variables."""
        told = {self.dut.preset, self.dut.delay}
        values = ", ".join(
            f"{name}={value}" for name, value in self.loop.items() if value not in told
        )
        return f"{self.dut.label} {values}".strip()
