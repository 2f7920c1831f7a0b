"""What a plan may say."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

#: Devices under test that are ready to use, and the options that each has.
OPTIONS: dict[str, tuple[str, ...]] = {
    "wire": (),
    "forward": ("mode", "batch", "work_ns", "delay", "disturb"),
    "testpmd": ("driver", "forward_mode", "disturb"),
    "bridge": (),
    "router": (),
    "nftables": ("rules", "position"),
    "ovs": ("disturb",),
    "xdp": (),
    "suricata": ("ruleset", "disturb"),
    "snort": ("ruleset", "disturb"),
    "command": ("command", "disturb"),
}
PRESETS = tuple(OPTIONS)
#: What these handle at most of a frame, with FCS: their buffers are for an MTU of 1,500.
_SMALL_FRAMES = ("forward", "testpmd")
_LARGEST_SMALL = 1_518
#: Frame sizes, with FCS: the smallest, the largest; and what a probe needs with each version of IP,
#: and with a VLAN tag more.
_LEAST, _MOST = 64, 9_018
_PROBE = {4: 64, 6: 84}
_TAG = 4

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Scalar = int | float | str | bool


def _number(value: Any) -> Any:
    """Take a whole number where a broken one is expected, but not true and false."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]
#: Decimals that have no other reading than the agent's.
_DECIMAL = r"\d+(\.\d+)?"
_TIME = rf"{_DECIMAL}(ns|us|ms|s)"

#: Disturbances that take no time of their own, and those that last as long as is asked for; some
#: only a process can do to itself.
MOMENTS = ("munmap", "mprotect", "membarrier", "bpf")
LASTING = ("pause", "thread", "fifo", "timers", "softirqs", "quota", "stop")
_WITHIN = ("munmap", "mprotect", "membarrier", "pause")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Dut(_Strict):
    """The device under test."""

    preset: Literal[
        "wire",
        "forward",
        "testpmd",
        "bridge",
        "router",
        "nftables",
        "ovs",
        "xdp",
        "suricata",
        "snort",
        "command",
    ] = Field(description="Which of the devices that are ready to use, or command for any other.")
    mode: Literal["poll", "wait"] = Field(
        default="poll", description="forward: ask all the time, or sleep until a frame comes."
    )
    batch: int = Field(default=32, ge=1, le=64, description="forward: most frames in one go.")
    work_ns: int = Field(
        default=0, ge=0, le=10_000_000, description="forward: busy work for each frame."
    )
    delay: str | None = Field(
        default=None, description="forward: a known delay, such as bimodal:20us,100us,0.01."
    )
    disturb: str | None = Field(
        default=None,
        description="programs: what is done to it at random times, which the run's disturbed.csv"
        " tells: thread, fifo, timers, softirqs, quota or stop, such as stop:2ms,100ms (for 2 ms),"
        " or bpf:20ms; to forward from within, also munmap:20ms, mprotect:20ms, membarrier:20ms or"
        " pause:2ms,100ms.",
    )
    driver: Literal["af_packet", "af_xdp"] = Field(
        default="af_packet", description="testpmd: how it gets at its ports; af_xdp needs root."
    )
    forward_mode: Literal["io", "mac", "macswap"] = Field(
        default="io", description="testpmd: what it does with MAC addresses."
    )
    rules: int = Field(default=1, ge=1, le=100_000, description="nftables: how many rules.")
    position: int = Field(
        default=1, ge=1, description="nftables: which of them accepts the packets, from 1."
    )
    ruleset: str | None = Field(
        default=None, description="suricata, snort: file with rules; without, they only forward."
    )
    command: str | None = Field(
        default=None, description="command: what to run; {in} and {out} are its interfaces."
    )

    @field_validator("delay")
    @classmethod
    def _known_delay(cls, value: str | None) -> str | None:
        models = (
            rf"constant:{_TIME}|bimodal:{_TIME},{_TIME},{_DECIMAL}"
            rf"|heavy:{_TIME},{_DECIMAL}|stall:{_TIME},{_TIME},{_TIME}"
        )
        if value is not None and not re.fullmatch(models, value):
            raise ValueError(
                "expected constant:T, bimodal:T,T,SHARE, heavy:T,EXPONENT or stall:T,T,PERIOD,"
                " each T such as 20us"
            )
        return value

    @field_validator("disturb")
    @classmethod
    def _known_disturbance(cls, value: str | None) -> str | None:
        # For a loop over several.
        value = None if value == "none" else value
        moments, lasting = "|".join(MOMENTS), "|".join(LASTING)
        known = rf"({moments}):{_TIME}|({lasting}):{_TIME},{_TIME}"
        if value is not None and not re.fullmatch(known, value):
            raise ValueError(
                f"expected none, {', '.join(MOMENTS)} with :EVERY, or {', '.join(LASTING)} with"
                " :TIME,EVERY, each time such as 20ms"
            )
        return value

    @field_validator("command")
    @classmethod
    def _can_be_split(cls, value: str | None) -> str | None:
        if value is None:
            return value
        try:
            parts = shlex.split(value)
        except ValueError as error:
            raise ValueError(f"expected words as a shell splits them ({error})") from error
        if not parts:
            raise ValueError("expected a program and its arguments")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Dut:
        for option in self.__class__.model_fields:
            if option in self.model_fields_set and option not in ("preset", *OPTIONS[self.preset]):
                presets = ", ".join(name for name, own in OPTIONS.items() if option in own)
                raise ValueError(
                    f"{option}: preset {self.preset} has none, it belongs to {presets}"
                )
        if self.disturbed_from_within and self.preset != "forward":
            raise ValueError(f"disturb: only preset forward can do that to itself: {self.disturb}")
        if self.preset == "command" and self.command is None:
            raise ValueError("command: preset command needs one")
        if self.position > self.rules:
            raise ValueError(f"position: there are {self.rules} rules, not {self.position}")
        return self

    @model_serializer(mode="wrap")
    def _own(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        every: dict[str, Any] = handler(self)
        return {key: every[key] for key in ("preset", *OPTIONS[self.preset])}

    @property
    def disturbed_from_within(self) -> bool:
        """Whether the device disturbs itself."""
        return self.disturb is not None and self.disturb.partition(":")[0] in _WITHIN

    @property
    def label(self) -> str:
        """A short name for tables."""
        known = ", ".join(filter(None, (self.delay, self.disturb)))
        return f"{self.preset} ({known})" if known else self.preset


class Traffic(_Strict):
    """What the load generator sends."""

    frame_bytes: int | str = Field(
        default=64, description="Bytes with FCS: one size, a list such as 64,1518, or imix."
    )
    rate_pps: int | None = Field(
        default=None, gt=0, le=100_000_000, description="Packets a second; or rate."
    )
    rate: str | None = Field(
        default=None,
        description="Packets or bits on the wire, such as 120kpps or 500Mbit/s; or rate_pps.",
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
        if value is not None and not re.fullmatch(rf"{_DECIMAL} ?[kMG]?(pps|bit/s)?", value):
            raise ValueError("expected packets such as 120kpps or bits such as 500Mbit/s")
        if value is not None and not re.search("[1-9]", value):
            raise ValueError("expected more than nothing")
        return value

    @field_validator("pattern")
    @classmethod
    def _known(cls, value: str) -> str:
        if not re.fullmatch(r"cbr|poisson|burst:([2-9]|[1-9]\d+)|jitter:0?\.\d+|replay:.+", value):
            raise ValueError(
                "expected cbr, poisson, burst:N from 2, jitter:SHARE up to 0.5 or replay:CAPTURE"
            )
        return value

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
            return [_LEAST, _LARGEST_SMALL]
        return [int(size) for size in str(self.frame_bytes).split(",")]

    @property
    def largest_frame(self) -> int:
        """Bytes of the largest frame, with FCS."""
        return max(self._sizes)


class Limits(_Strict):
    """Beyond these a run is not done, or says more about the generator than about the device."""

    ready_s: Number = Field(
        default=30.0, gt=0, le=3_600, description="How long packets may take to pass at first."
    )
    lateness_p99_us: Number = Field(
        default=1_000.0, gt=0, description="99th percentile of the generator's departure lateness."
    )
    sent_share: Number = Field(
        default=0.99, gt=0, le=1, description="Share of the intended packets that have to be sent."
    )


class Plan(_Strict):
    """An experiment."""

    name: Name = Field(description="What to call it; results go to results/NAME.")
    testbed: Literal["local"] = Field(
        default="local", description="local: network namespaces of this machine."
    )
    dut: Dut
    traffic: Traffic
    loop: dict[Name, list[Scalar]] = Field(
        default_factory=dict,
        description="Loop variables: $name in dut and traffic stands for each value in turn. They"
        " multiply. [10000, 20000, ..., 120000] is a range.",
    )
    repeat: int = Field(default=1, ge=1, le=1_000, description="How often each combination is run.")
    trim_s: Number = Field(
        default=1.0, ge=0, description="Leave out what leaves within this of the first match."
    )
    order: Literal["plan", "random"] = Field(
        default="plan", description="The plan's order, or a random one, which seed fixes."
    )
    seed: int = Field(default=1, ge=0, description="Of the random order.")
    snap_bytes: int = Field(
        default=96, ge=64, le=9_018, description="Bytes of each frame that are captured."
    )
    keep_captures: bool = Field(default=False, description="Keep the captures of each run.")
    trace: bool | Literal["both"] = Field(
        default=False,
        description="Record what takes the device's CPU, and name the causes of late packets; both:"
        " run everything without and with, which tells what recording costs. Needs root.",
    )
    floor: bool = Field(
        default=True, description="Run all traffic with the wire, too: the floor of this testbed."
    )
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="after")
    def _leaves_something(self) -> Plan:
        if self.trim_s >= self.traffic.duration_s:
            raise ValueError(
                f"trim_s: leaves nothing of {self.traffic.duration_s:g} s (traffic.duration_s)"
            )
        if self.traffic.largest_frame > _LARGEST_SMALL and self.dut.preset in _SMALL_FRAMES:
            raise ValueError(
                f"traffic.frame_bytes: preset {self.dut.preset} handles up to {_LARGEST_SMALL}"
            )
        return self


class Run(_Strict):
    """One combination of the loop variables, once."""

    number: int
    dut: Dut
    traffic: Traffic
    loop: dict[str, Scalar]
    repetition: int
    #: The wire instead of the plan's device.
    floor: bool
    #: With a trace of the device's CPU.
    traced: bool = False

    @property
    def folder(self) -> str:
        """The name of its run directory."""
        return f"run-{self.number:03d}"

    @property
    def label(self) -> str:
        """A name for tables: the device and the loop variables."""
        told = {self.dut.preset, self.dut.delay, self.dut.disturb}
        values = ", ".join(
            f"{name}={value}" for name, value in self.loop.items() if value not in told
        )
        traced = " (traced)" if self.traced else ""
        return f"{self.dut.label} {values}".strip() + traced
