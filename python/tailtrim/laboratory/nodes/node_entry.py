"""A host as a testbed file says it: its kind, permissions, power, meter, boot, CPUs and ports.

A new kind of host is a subclass of :class:`NodeEntry` and a place in :data:`NODES`, or a package
with an entry point in the group ``tailtrim.nodes``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator

from tailtrim.errors import HostError
from tailtrim.kinds import Kinds
from tailtrim.laboratory.nodes.boot.line import unchanged
from tailtrim.laboratory.nodes.meters import AnyMeter
from tailtrim.laboratory.nodes.node import allowed
from tailtrim.laboratory.nodes.power import AnyPower
from tailtrim.model_base import Strict

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tailtrim.laboratory.nodes.host import ReservedHost, Shell
    from tailtrim.laboratory.nodes.meters import Start
    from tailtrim.laboratory.nodes.power import Power

#: Without a dot, which is between a node and its port.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
Mac = Annotated[str, Field(pattern=r"^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")]
#: Not what a program would take for an option.
Interface = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$")]
Pci = Annotated[str, Field(pattern=r"^([0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
Metres = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
#: Permissions of a testbed file, and how a refusal is told.
May = Literal["tune", "reboot", "bootline"]
MAY_NOT: dict[May, str] = {
    "tune": "may not be tuned",
    "reboot": "may not be rebooted or switched off",
    "bootline": "may not be booted with another boot line",
}


class PortEntry(Strict):
    """A port of a node."""

    interface: Interface = Field(description="Name of the interface on its node.")
    mac: Mac | None = Field(default=None, description="MAC address, to be checked.")
    pci: Pci | None = Field(default=None, description="PCI address, to be checked.")
    cable: str | None = Field(
        default=None,
        description="The port at the other end of its cable, as NODE.PORT. One end is enough.",
    )
    cable_m: Metres | None = Field(
        default=None,
        description="Length of its cable in metres, at one end or both. At a tap that gets copies:"
        " of the cable from the splitter.",
    )
    split_m: Metres | None = Field(
        default=None,
        description="At a port of the device, where the taps get copies: metres of cable between"
        " the port and the splitter.",
    )


class NodeBoot(Strict):
    """Way of booting a node where a plan has a boot line for it."""

    by: Literal["grub", "kexec"] = Field(
        default="grub",
        description="grub: GRUB's next entry, which the next reset falls back from; kexec: the"
        " running kernel starts the next one, without the firmware.",
    )
    line: str = Field(
        description="What each of its boot lines begins with, such as root=/dev/sda1 ro. What the"
        " plan says follows.",
    )

    @field_validator("line")
    @classmethod
    def _is_a_line(cls, value: str) -> str:
        return " ".join(unchanged(value.split()))


class NodeEntry(Strict, ABC):
    """A host of a testbed, as its file says it. A subclass narrows ``kind`` to its name."""

    kind: str
    may: list[May] = Field(
        default_factory=list,
        description="What may be done to it beside starting programs: tune, reboot (and switch its"
        " power), bootline (boot a kernel and boot line of a plan).",
    )
    power: AnyPower | None = Field(
        default=None, description="What switches its power. With may: [reboot] it is used."
    )
    meter: AnyMeter | None = Field(default=None, description="What measures its power.")
    boot: NodeBoot | None = Field(
        default=None, description="How it is booted, for plans with boot."
    )
    boot_s: float = Field(
        default=300.0,
        gt=0,
        le=3_600,
        description="How long a boot may take until the node is reached by SSH, in seconds.",
    )
    cpus: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None,
        description="CPUs for what measures or is measured. Default: all but the first.",
    )
    spared: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None, description="CPUs for what only waits. Default: the first."
    )
    ports: dict[Name, PortEntry] = Field(description="Its ports by name.")

    @property
    def cycled_by(self) -> Power | None:
        """Power that may be switched off and on again; ``None`` where that is not allowed."""
        return self.power if "reboot" in self.may else None

    @property
    def address(self) -> str:
        """Its address, for drawings; empty where it has none."""
        return ""

    @abstractmethod
    def reserve(self, name: str, experiment: str) -> ReservedHost:
        """Reserve it, with the agent on it.

        Args:
            name: the name that the testbed file has for it.
            experiment: what it is reserved for.

        Raises:
            HostError: it cannot be reached, lacks what is needed, or others have it.

        """

    def answers(self, name: str) -> bool:
        """Whether it can be reached now."""
        del name
        return True

    def free(self, name: str, *, copies: bool = False) -> None:
        """Remove a reservation that is stale, and with ``copies`` what was copied there.

        Raises:
            HostError: others have it, or it cannot be reached.
            RunError: the connection is lost.

        """

    def shell(self, name: str) -> AbstractContextManager[Shell]:
        """Connect to it without a reservation, before and after a boot.

        Raises:
            HostError: it cannot be reached; or hosts of its kind are not booted.

        """
        raise HostError(f"{name}: kind {self.kind}: cannot be booted for an experiment")

    def starting(self, host: ReservedHost) -> Start:
        """Return a function that starts commands on its CPUs for what only waits."""
        cpus = [0] if self.spared is None else self.spared
        around = allowed(cpus) if cpus else ()
        return lambda command: host.start(*around, *command)


#: Kinds of hosts, in the order in which they are told.
NODES = Kinds(
    "tailtrim.nodes",
    "kind",
    {"ssh": "tailtrim.laboratory.nodes.ssh.address:SshHost"},
    default="ssh",
)
AnyNode = Annotated[NodeEntry, NODES]
