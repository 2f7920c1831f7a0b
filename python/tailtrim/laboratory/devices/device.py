"""Base class of devices under test: options in a plan, and the start of the device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.container.settings import ContainerSettings
from tailtrim.model_base import Strict
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.agent import Agent
    from tailtrim.laboratory.nodes.host import Host
    from tailtrim.laboratory.nodes.node import Program
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Ability, Forwarding


#: Regular expressions for options; decimals have no other reading than the agent's.
DECIMAL = r"\d+(\.\d+)?"
TIME = rf"{DECIMAL}(ns|us|ms|s)"
#: Options that records have behind those of the device itself.
_LAST = ("disturb", "node", "container", "lifetime")


class Device(Strict):
    """A device under test, with the options that a plan may give it.

    A subclass narrows ``preset`` to its name and adds its options. Its docstring is what editors
    show.
    """

    preset: str

    #: Bytes of the largest frame that it handles, with FCS; ``None`` if it handles all.
    largest_frame: ClassVar[int | None] = None
    #: Tools that its node has to have, with all options.
    tools: ClassVar[tuple[Tool, ...]] = ()
    #: Tools that only some options need, by the option as a plan says it.
    tools_of_options: ClassVar[Mapping[str, Tool]] = {}
    #: Device files of the kernel that its node has to have.
    device_files: ClassVar[tuple[str, ...]] = ()
    #: Whether it is, or loads, a BPF program.
    loads_bpf: ClassVar[bool] = False

    def too_large(self, frame_bytes: int) -> str | None:
        """Say why it does not handle frames of this size, with FCS; ``None`` where it does."""
        if self.largest_frame is None or frame_bytes <= self.largest_frame:
            return None
        return f"preset {self.preset} handles up to {self.largest_frame}"

    def require(self, host: Host) -> None:
        """Make sure that a host has what the device takes, as far as that shows beforehand.

        Raises:
            HostError: it lacks something; says what, and where to get it.

        """
        host.require(*self.tools)
        for path in self.device_files:
            if not host.exists(path):
                raise HostError(f"{self.preset}: {path} is missing, expected it of the kernel")
        if self.loads_bpf and not host.facts.root:
            raise HostError(
                f"{self.preset}: loading a BPF program needs root, not only a user namespace"
            )

    @property
    def tunes(self) -> bool:
        """Whether it changes settings of its host that reach beyond its node."""
        return False

    @property
    def polls(self) -> bool | None:
        """Whether it keeps a CPU busy without packets; ``None`` where that is not known."""
        return False

    @property
    def needs(self) -> tuple[Ability, ...]:
        """Abilities it needs that not every testbed has."""
        return ()

    @property
    def named(self) -> tuple[str, ...]:
        """Values of options that its name in tables tells."""
        return ()

    @property
    def label(self) -> str:
        """A short name for tables."""
        return f"{self.preset} ({', '.join(self.named)})" if self.named else self.preset

    @property
    def told(self) -> set[str]:
        """Values that :attr:`label` tells."""
        return {self.preset, *self.named}


class InlineDevice(Device):
    """A device that packets pass: in at one port, out of the other."""

    node: Literal["bare", "container", "vm"] = Field(
        default="bare",
        description="Where it is: on the testbed's node itself, or in a container or a virtual"
        " machine there.",
    )
    container: ContainerSettings = Field(
        default_factory=ContainerSettings, description="The container, with node: container."
    )
    lifetime: Literal["run", "configuration"] = Field(
        default="run",
        description="How long it is up: started for each run, or once for all runs with the same"
        " device (and boot), which it is warmed up for until it is steady.",
    )

    @model_serializer(mode="wrap")
    def _own_first(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Records of experiments have had it so since the first of them.
        every: dict[str, Any] = handler(self)
        told = {key: value for key, value in every.items() if key not in _LAST}
        told |= {key: every[key] for key in _LAST if key in every}
        for option, usual in (("node", "bare"), ("lifetime", "run")):
            if told[option] == usual:
                del told[option]
        if self.node != "container":
            del told["container"]
        return told

    #: Files that it may leave.
    leaves: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> Agent | Program | None:
        """Start it. :class:`.running_device.DeviceUnderTest` waits until packets pass.

        Args:
            at: where: it is the node ``dut``, with ports ``dut_in`` and ``dut_out``.
            ip: version of IP that passes it.
            stack: ends the device.

        Returns:
            Its process; ``None`` where the kernel is the device.

        Raises:
            HostError: the node lacks what it takes.
            RunError: it did not get that far.

        """

    @property
    def label(self) -> str:
        """A short name for tables."""
        return super().label if self.node == "bare" else f"{super().label} in {self.node}"

    @property
    def told(self) -> set[str]:
        """Values that :attr:`label` tells."""
        return super().told | (set() if self.node == "bare" else {self.node})

    def serving(self, at: Forwarding) -> Sequence[int]:
        """Return the CPUs that handle its packets: by default those of the kernel's receiving."""
        return at.receiving

    def destination(self, at: Forwarding) -> Port:
        """Return the port that frames are addressed to: by default the load generator's sink."""
        return at.sink

    @property
    def disturbance(self) -> str | None:
        """The disturbance that has to come from outside the device, if any."""
        return None
