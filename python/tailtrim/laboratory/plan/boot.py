"""Boot of the device's node: kernel and boot line, and the virtual machine that they are for."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from tailtrim.laboratory.nodes.node_entry import Interface, Pci
from tailtrim.laboratory.plan.fields import Number
from tailtrim.model_base import Strict

#: COMMAND_LINE_SIZE of x86 is 2,048: the words of every guest leave so much of it.
_LONGEST = 1_900


class Boot(Strict):
    """A kernel and its boot line. Runs with the same kernel and boot line share boots."""

    kernel: str = Field(
        min_length=1,
        description="Debian's by RELEASE/FLAVOUR, such as trixie/rt (amd64, cloud or rt), a"
        " bzImage, or a directory that tailtrim image build has made. On a host of a testbed file:"
        " the release of a kernel in its /boot, such as 6.12.48-rt-amd64.",
    )
    cmdline: str = Field(
        default="",
        description="Boot line, such as isolcpus=1: in a virtual machine beside the console's"
        " words, on a host of a testbed file behind nodes.NAME.boot.line of that.",
    )

    @field_validator("cmdline")
    @classmethod
    def _is_a_line(cls, value: str) -> str:
        if not (value.isascii() and value.isprintable()) or len(value) > _LONGEST:
            raise ValueError(f"expected at most {_LONGEST:,} printable ASCII characters")
        return value


class PassedThrough(Strict):
    """A port of the guest that is a PCI device of this host, and where its cable goes."""

    pci: Pci = Field(
        description="PCI address of a network card, or of a virtual function, of this host, such as"
        " 0000:03:00.0. It is passed through with vfio-pci and goes back to its driver afterwards.",
    )
    cable: Interface = Field(
        description="The interface of this host at the other end of its cable. The timestamper has"
        " it during a run.",
    )

    @field_validator("pci")
    @classmethod
    def _with_domain(cls, value: str) -> str:
        return value if value.count(":") > 1 else f"0000:{value}"


class VirtualMachine(Strict):
    """The virtual machine that a device with node vm is in."""

    cpus: int = Field(default=2, ge=1, le=256, description="Number of CPUs of the guest.")
    memory_mib: int = Field(
        default=512, ge=256, le=1 << 20, description="Memory of the guest, in MiB."
    )
    pinned: list[int] | None = Field(
        default=None,
        min_length=1,
        description="CPUs of this host for those of the guest, in turn. Default: the device's.",
    )
    accelerator: Literal["auto", "kvm", "tcg"] = Field(
        default="auto",
        description="What runs the guest: kvm (the CPU) or tcg (QEMU, whose latencies are not those"
        " of hardware). auto: kvm, unless this host has none or is a guest itself.",
    )
    boot_s: Number = Field(
        default=120.0, gt=0, le=3_600, description="How long a boot may take, in seconds."
    )
    release: str = Field(
        default="bookworm",
        pattern="^[a-z]+$",
        description="Debian release of the guest's programs; its kernel may be of another one.",
    )
    packages: list[str] = Field(
        default_factory=list, description="Debian packages of the guest, beside what nodes need."
    )

    ports: dict[Literal["in", "out"], PassedThrough] = Field(
        default_factory=dict,
        description="Ports of the guest that are PCI devices of this host: in, at which packets"
        " enter the device, and out. Default: virtio-net on a tap.",
    )

    @model_validator(mode="after")
    def _has_each_once(self) -> VirtualMachine:
        ports = list(self.ports.values())
        for key in ("pci", "cable"):
            one, *others = [getattr(port, key) for port in ports] or [None]
            if one in others:
                raise ValueError(f"ports: {key} {one} is that of both, expected one each")
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Experiments from before devices were passed through can be gone on with.
        every: dict[str, Any] = handler(self)
        return {key: value for key, value in every.items() if key != "ports" or self.ports}

    @field_validator("packages")
    @classmethod
    def _are_names(cls, value: list[str]) -> list[str]:
        for name in value:
            if not name or not all(c.isascii() and (c.isalnum() or c in "+-.") for c in name):
                raise ValueError(f"invalid name of a Debian package: {name!r}")
        return value
