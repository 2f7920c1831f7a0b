"""Schema of a plan."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    AliasChoices,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from tailtrim.laboratory.devices import AnyDevice, InlineDevice
from tailtrim.laboratory.devices.reflector import Reflector
from tailtrim.laboratory.nodes.testbed_file import TestbedDescription
from tailtrim.laboratory.plan.boot import Boot, VirtualMachine
from tailtrim.laboratory.plan.energy import Energy
from tailtrim.laboratory.plan.fields import Name, Number, Scalar
from tailtrim.laboratory.plan.traffic import Traffic
from tailtrim.laboratory.plan.trimming import Trimming
from tailtrim.model_base import Strict

#: Name of the combination in which several factors have the values of ``together``.
TOGETHER = "together"
#: End of the label of a run with a trace, and of one where only interrupts could be counted.
TRACED, COUNTED = " (traced)", " (interrupt counters only)"
#: Size of the smallest echo frame in bytes, with FCS.
_ECHO = 70


class Limits(Strict):
    """Limits of a valid run: beyond them it shows the generator rather than the device."""

    # The defaults are conventions. A late departure does not count as latency, since packets are
    # stamped at the device; it changes how packets follow each other. 1 ms is a quarter of a tick
    # of 250 Hz; generators that nothing hinders miss their gaps by less than 25 µs at p99.9
    # (benchmarks/runs/2026-11-21-epyc-2core-live). A queue is proportional to load / (1 - load)
    # (Pollaczek and Khinchine): 1 % less load makes it 2 % shorter at half load.
    ready_s: Number = Field(
        default=30.0,
        gt=0,
        le=3_600,
        description="How long to wait for the first packet to pass, in seconds.",
    )
    lateness_p99_us: Number = Field(
        default=1_000.0,
        gt=0,
        description="Highest 99th percentile of the generator's departure lateness, in µs.",
    )
    sent_share: Number = Field(
        default=0.99,
        gt=0,
        le=1,
        description="Smallest share of the intended packets that must be sent.",
    )
    # One window at least (experiment/steady_state.py). Applications had shootdowns in "the first
    # few minutes" (Gallenmüller et al. 2021, "Ducked Tails", section V-F).
    warm_up_s: Number = Field(
        default=120.0,
        ge=5,
        le=86_400,
        description="How long a device with dut.lifetime: configuration may take until it is"
        " steady, in seconds; runs with one that is not are invalid.",
    )

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Experiments from before there were warm-ups can be gone on with.
        every: dict[str, Any] = handler(self)
        usual = type(self).model_fields["warm_up_s"].default
        left_out = {"warm_up_s"} if self.warm_up_s == usual else set()
        return {key: value for key, value in every.items() if key not in left_out}


class Plan(Strict):
    """An experiment."""

    name: Name = Field(description="Name of the experiment; results go to results/NAME.")
    testbed: Literal["local"] | TestbedDescription = Field(
        default="local",
        description="Where to run: local (network namespaces of this machine), the path of a"
        " testbed file from the folder of the plan on, or what such a file says.",
    )
    dut: AnyDevice
    traffic: Traffic
    boot: Boot | None = Field(
        default=None,
        description="What the device's node boots: with dut.node: vm the virtual machine, with a"
        " testbed file the host. The node boots once for each kernel and boot line, and does all"
        " their runs; then anew, as often as boots says.",
    )
    vm: VirtualMachine = Field(default_factory=VirtualMachine)
    boots: int = Field(
        default=3,
        ge=1,
        le=1_000,
        description="Boots of each kernel and boot line: the repetitions of a plan with boot. Fewer"
        " than 3 say little of how boots differ.",
    )
    loop: dict[Name, list[Scalar]] = Field(
        default_factory=dict,
        description="Loop variables: $name in dut, traffic and boot stands for each value in turn."
        " All combinations are run. [10000, 20000, ..., 120000] is a range.",
    )
    repeat: int = Field(
        default=1, ge=1, le=1_000, description="Number of runs of each combination."
    )
    factors: dict[Name, list[Scalar]] = Field(
        default_factory=dict,
        description="Loop variables that are varied one at a time, while all others keep their"
        " first value (the baseline). The effect of each value is compared with the baseline.",
    )
    together: dict[Name, Scalar] = Field(
        default_factory=dict, description="Values of the factors in one additional combination."
    )
    skip_s: Number = Field(
        default=1.0,
        ge=0,
        # Plans and recorded experiments of earlier versions have the second name.
        validation_alias=AliasChoices("skip_s", "trim_s"),
        description="Leave out samples within this time of the first match, in seconds; trim_s is"
        " the older name of this key.",
    )
    order: Literal["plan", "random"] = Field(
        default="plan",
        description="Order of the runs: that of the plan, or random (see seed). With boot, random"
        " is the default: of the boots, and of the runs within each.",
    )
    seed: int = Field(default=1, ge=0, description="Seed of the random order.")
    snap_bytes: int = Field(
        default=96, ge=64, le=9_018, description="Bytes captured of each frame."
    )
    keep_captures: bool = Field(default=False, description="Keep the captures of each run.")
    by_minute: bool = Field(
        default=False,
        description="For runs of hours: packets are matched while they come, without captures, and"
        " what was measured is on disk after each minute. Memory and disk stay small. With trace,"
        " what had the device's CPUs around the worst packets is kept.",
    )
    trace: bool | Literal["both"] = Field(
        default=False,
        description="Trace the device's CPU and attribute late packets to causes; both: each run"
        " without and with a trace, which shows the overhead of tracing. Needs root.",
    )
    floor: bool = Field(
        default=True, description="Also run all traffic with the wire: the floor of this testbed."
    )
    limits: Limits = Field(default_factory=Limits)
    energy: Energy | None = Field(
        default=None,
        description="Measure the power of nodes that have a meter also when the device is idle or"
        " ready.",
    )
    trim: Trimming | None = Field(
        default=None,
        description="Changes that tailtrim trim may try. tailtrim run measures without them.",
    )

    @model_validator(mode="after")
    def _leaves_something(self) -> Plan:
        if isinstance(self.dut, Reflector):
            self._is_of_round_trips()
        elif self.skip_s >= self.traffic.duration_s:
            raise ValueError(
                f"skip_s: must be below traffic.duration_s ({self.traffic.duration_s:g} s)"
            )
        self._boots_what_it_needs()
        self._contains_what_it_can()
        self._measures_what_it_can()
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Experiments from before there were boots can be gone on with.
        every: dict[str, Any] = handler(self)
        left_out = {"boot", "vm", "boots"} if self.boot is None else set()
        left_out |= {"energy"} if self.energy is None else set()
        left_out |= {"trim"} if self.trim is None else set()
        left_out |= set() if self.by_minute else {"by_minute"}
        return {key: value for key, value in every.items() if key not in left_out}

    @property
    def in_guest(self) -> bool:
        """Whether the device is in a virtual machine."""
        return isinstance(self.dut, InlineDevice) and self.dut.node == "vm"

    @property
    def boots_node(self) -> bool:
        """Whether the device's node boots: a virtual machine, or a host of a testbed file."""
        if self.boot is None or not isinstance(self.dut, InlineDevice):
            return False
        return self.in_guest or self.testbed != "local"

    def _boots_what_it_needs(self) -> None:
        """Refuse what a virtual machine cannot have, and a boot without one."""
        if self.boots_node and self.repeat > 1:
            raise ValueError("repeat: with boot, boots says how often, leave it out")
        if not self.in_guest:
            return
        if self.testbed != "local":
            raise ValueError("dut.node: vm is possible with testbed: local only")
        if self.boot is None:
            raise ValueError("dut.node: vm needs boot: {kernel: …}, such as trixie/cloud")
        if self.trace:
            raise ValueError("trace: not with dut.node: vm, whose clock is not that of the taps")
        if self.dut.preset == "xdp":
            raise ValueError("dut.node: preset xdp is not possible in a virtual machine")

    def _contains_what_it_can(self) -> None:
        """Refuse what a container cannot have."""
        dut = self.dut
        if not isinstance(dut, InlineDevice) or dut.node != "container":
            return
        if self.testbed != "local":
            raise ValueError("dut.node: container is possible with testbed: local only")
        if dut.container.packages and not dut.container.of_release:
            raise ValueError("dut.container.packages: possible with a Debian release as root only")
        if (dut.disturbance or "").startswith("quota"):
            raise ValueError("disturb: quota is not possible in a container, expected cpu.max")

    def _measures_what_it_can(self) -> None:
        """Refuse what cannot be measured together."""
        if self.by_minute and self.keep_captures:
            raise ValueError("keep_captures: not with by_minute, which keeps little, leave it out")
        if self.by_minute and self.trace == "both":
            raise ValueError("trace: both is not possible with by_minute, expected true or false")
        if self.testbed == "local" and self.traffic.departures == "hardware":
            raise ValueError(
                "traffic.departures: hardware is not possible with testbed: local, whose cables are"
                " pairs of virtual interfaces, expected kernel or software"
            )
        if self.energy is None:
            return
        local = self.testbed == "local"
        if local != (self.energy.meter is not None):
            expected = "needs meter" if local else "meter stands in the testbed file, leave it out"
            raise ValueError(f"energy: with testbed {'local' if local else 'file'}: {expected}")
        if self.energy.settle_s >= self.traffic.duration_s:
            most = f"{self.traffic.duration_s:g} s"
            raise ValueError(f"energy.settle_s: must be below traffic.duration_s ({most})")

    def _is_of_round_trips(self) -> None:
        """Refuse what only packets that pass a device can have."""
        traffic = self.traffic
        impossible = {
            "skip_s": ("skip_s" in self.model_fields_set and self.skip_s > 0, False),
            "keep_captures": (self.keep_captures, False),
            "by_minute": (self.by_minute, False),
            "trace": (self.trace, False),
            "energy": (self.energy, None),
            "traffic.flows": (traffic.flows, 1),
            "traffic.vlan": (traffic.vlan, None),
            "traffic.ip": (traffic.ip, 4),
            "traffic.departures": (traffic.departures, "software"),
            "traffic.schedule": (traffic.schedule.brings_rate, False),
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
    dut: AnyDevice
    traffic: Traffic
    loop: dict[str, Scalar]
    repetition: int
    #: The wire instead of the plan's device.
    floor: bool
    #: With a trace of the device's CPU.
    traced: bool = False
    #: Which factor has not its first value: its name, or ``together``.
    varied: str | None = None
    #: Boot of the device's node; ``None`` where it does not boot.
    boot: Boot | None = None

    @property
    def folder(self) -> str:
        """The name of its run directory."""
        return f"run-{self.number:03d}"

    @property
    def label(self) -> str:
        """A name for tables: the device and the loop variables."""
        told = self.dut.told
        values = ", ".join(
            f"{name}={value}" for name, value in self.loop.items() if value not in told
        )
        if self.varied == TOGETHER:
            values = ", ".join(filter(None, (values, TOGETHER)))
        traced = TRACED if self.traced else ""
        return f"{self.dut.label} {values}".strip() + traced
