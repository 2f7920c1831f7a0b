"""What a plan may say."""

from __future__ import annotations

import re
import shlex
from typing import Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from tailtrim.plan.base import DECIMAL, TIME, Name, Number, Scalar, Strict
from tailtrim.plan.traffic import LARGEST_SMALL, Traffic

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
    "reflector": (
        *("protocol", "reflect", "busy_poll", "pinned", "path", "firewall", "rules"),
        *("coalesce_us", "tuned", "preemption"),
    ),
}
PRESETS = tuple(OPTIONS)
#: What the combination is called in which factors have these values together.
TOGETHER = "together"
#: What these handle at most of a frame, with FCS: their buffers are for an MTU of 1,500.
_SMALL_FRAMES = ("forward", "testpmd")
#: What the smallest echo takes, with FCS.
_ECHO = 70

#: Disturbances that take no time of their own, and those that last as long as is asked for; some
#: only a process can do to itself.
MOMENTS = ("munmap", "mprotect", "membarrier", "bpf")
LASTING = ("pause", "thread", "fifo", "timers", "softirqs", "quota", "stop")
_WITHIN = ("munmap", "mprotect", "membarrier", "pause")


class Dut(Strict):
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
        "reflector",
    ] = Field(
        description="Which of the devices that are ready to use, or command for any other."
        " reflector: round trips to another host are measured, not packets that pass."
    )
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
    rules: int = Field(
        default=1,
        ge=1,
        le=100_000,
        description="nftables, reflector: how many rules a firewall has.",
    )
    position: int = Field(
        default=1, ge=1, description="nftables: which of them accepts the packets, from 1."
    )
    ruleset: str | None = Field(
        default=None, description="suricata, snort: file with rules; without, they only forward."
    )
    command: str | None = Field(
        default=None, description="command: what to run; {in} and {out} are its interfaces."
    )
    protocol: Literal["udp", "icmp"] = Field(
        default="udp", description="reflector: UDP echo, or ICMP echo, which the kernel answers."
    )
    reflect: Literal["socket", "af-xdp", "xdp", "nat"] = Field(
        default="socket", description="reflector: where requests become replies."
    )
    busy_poll: bool = Field(
        default=False, description="reflector: it asks all the time, or sleeps until one comes."
    )
    pinned: bool = Field(default=False, description="reflector: it keeps to one CPU.")
    path: str = Field(
        default="direct",
        description="reflector: what lies between: direct, bridge, router, or firewall:N, a router"
        " whose rule N of so many accepts the probes.",
    )
    firewall: str = Field(
        default="none",
        description="reflector: its host's own: none, nftables:N or iptables:N (which writes into"
        " nftables), where rule N of so many accepts the probes.",
    )
    coalesce_us: int | Literal["as-is"] = Field(
        default="as-is", description="reflector: microseconds for which its NIC gathers packets."
    )
    tuned: str = Field(default="as-is", description="reflector: profile of tuned for this host.")
    preemption: Literal["as-is", "none", "voluntary", "lazy", "full"] = Field(
        default="as-is", description="reflector: how this host's kernel lets itself be preempted."
    )

    @field_validator("delay")
    @classmethod
    def _known_delay(cls, value: str | None) -> str | None:
        models = (
            rf"constant:{TIME}|bimodal:{TIME},{TIME},{DECIMAL}"
            rf"|heavy:{TIME},{DECIMAL}|stall:{TIME},{TIME},{TIME}"
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
        known = rf"({moments}):{TIME}|({lasting}):{TIME},{TIME}"
        if value is not None and not re.fullmatch(known, value):
            raise ValueError(
                f"expected none, {', '.join(MOMENTS)} with :EVERY, or {', '.join(LASTING)} with"
                " :TIME,EVERY, each time such as 20ms"
            )
        return value

    @field_validator("path", "firewall")
    @classmethod
    def _known_rule(cls, value: str, info: ValidationInfo) -> str:
        words, with_rule = {
            "path": (("direct", "bridge", "router"), ("firewall",)),
            "firewall": (("none",), ("nftables", "iptables")),
        }[info.field_name or ""]
        if value not in words and not re.fullmatch(rf"({'|'.join(with_rule)}):[1-9]\d*", value):
            told = [*words, *(f"{word}:RULE" for word in with_rule)]
            raise ValueError(f"expected {', '.join(told[:-1])} or {told[-1]}, such as 1001")
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
        for option in ("path", "firewall"):
            kind, _, rule = getattr(self, option).partition(":")
            if rule and int(rule) > self.rules:
                raise ValueError(f"{option}: {kind} has {self.rules} rules, not {rule}")
        if self.protocol == "icmp" and self.reflect != "socket":
            raise ValueError("reflect: the kernel answers ICMP, and nobody else")
        if self.protocol == "icmp" and ":" in self.path + self.firewall:
            raise ValueError("protocol: the rules of a firewall are for UDP")
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


class Limits(Strict):
    """Beyond these a run is not done, or says more about the generator than about the device."""

    # The defaults are conventions. A late departure does not count as latency, since packets are
    # stamped at the device; it changes how packets follow each other. 1 ms is a quarter of a tick
    # of 250 Hz; generators that nothing hinders miss their gaps by less than 25 µs at p99.9
    # (benchmarks/runs/2026-11-21-epyc-2core-live). A queue is proportional to load / (1 - load)
    # (Pollaczek and Khinchine): 1 % less load makes it 2 % shorter at half load.
    ready_s: Number = Field(
        default=30.0, gt=0, le=3_600, description="How long packets may take to pass at first."
    )
    lateness_p99_us: Number = Field(
        default=1_000.0, gt=0, description="99th percentile of the generator's departure lateness."
    )
    sent_share: Number = Field(
        default=0.99, gt=0, le=1, description="Share of the intended packets that have to be sent."
    )


class Plan(Strict):
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
    factors: dict[Name, list[Scalar]] = Field(
        default_factory=dict,
        description="Loop variables that do not multiply: all have their first value, and one at a"
        " time each of its others. What it makes of the latency is compared.",
    )
    together: dict[Name, Scalar] = Field(
        default_factory=dict, description="Values that factors have in one more combination."
    )
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
        if self.dut.preset == "reflector":
            self._is_of_round_trips()
        elif self.trim_s >= self.traffic.duration_s:
            raise ValueError(
                f"trim_s: leaves nothing of {self.traffic.duration_s:g} s (traffic.duration_s)"
            )
        if self.traffic.largest_frame > LARGEST_SMALL and self.dut.preset in _SMALL_FRAMES:
            raise ValueError(
                f"traffic.frame_bytes: preset {self.dut.preset} handles up to {LARGEST_SMALL}"
            )
        return self

    def _is_of_round_trips(self) -> None:
        """Refuse what only packets that pass a device can have."""
        traffic = self.traffic
        impossible = {
            "trim_s": ("trim_s" in self.model_fields_set and self.trim_s > 0, False),
            "keep_captures": (self.keep_captures, False),
            "trace": (self.trace, False),
            "traffic.flows": (traffic.flows, 1),
            "traffic.vlan": (traffic.vlan, None),
            "traffic.ip": (traffic.ip, 4),
            "traffic.pattern": (traffic.pattern.startswith("replay"), False),
        }
        for key, (value, only) in impossible.items():
            if value != only:
                raise ValueError(f"{key}: not with round trips (preset reflector), leave it out")
        if type(traffic.frame_bytes) is not int:
            raise ValueError("traffic.frame_bytes: with round trips (preset reflector) one size")
        if traffic.frame_bytes < _ECHO:
            raise ValueError(f"traffic.frame_bytes: at least {_ECHO} with preset reflector")


class Run(Strict):
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
    #: Which factor has not its first value: its name, or ``together``.
    varied: str | None = None

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
        if self.varied == TOGETHER:
            values = ", ".join(filter(None, (values, TOGETHER)))
        traced = " (traced)" if self.traced else ""
        return f"{self.dut.label} {values}".strip() + traced
