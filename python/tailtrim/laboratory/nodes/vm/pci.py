"""PCI devices of this host that are passed through to a guest, and what makes that impossible.

Everything is read, nothing is changed. ``root`` is where the files of the kernel are.
"""

from __future__ import annotations

import os
import platform
import re
import resource
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.vm.sriov import Setting, function_count, ip, settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path("/")
DRIVER = "vfio-pci"
_DEVICES, _GROUPS = "sys/bus/pci/devices", "sys/kernel/iommu_groups"
#: Class codes of PCI, as sysfs has them.
_NETWORK, _BRIDGE = "0x02", "0x0604"
# <linux/capability.h>
_IPC_LOCK = 14
_MIB = 1 << 20


class RequestedPort(NamedTuple):
    """A port that a plan asks for: the address of the device, and the interface it is cabled to."""

    pci: str
    cable: str


@dataclass(frozen=True, slots=True)
class PassedPort:
    """A port of a guest that is a PCI device of this host.

    Args:
        pci: address of the device.
        interface: its name on this host.
        mac: its MAC address, which it has in the guest as well.
        driver: what it is bound to, and goes back to.
        module: the module of that driver, which the guest needs.
        iommu_group: its group.
        cable: the interface of this host at the other end of its cable.
        cable_mac: the MAC address of that.
        settings: those needed if it, or the end of its cable, is a virtual function.

    """

    pci: str
    interface: str
    mac: str
    driver: str
    module: str
    iommu_group: int
    cable: str
    cable_mac: str
    settings: tuple[Setting, ...] = ()

    @property
    def record(self) -> dict[str, Any]:
        """Its record in run directories."""
        changed = {"virtual_functions": [asdict(one) for one in self.settings]}
        return (changed if self.settings else {}) | {
            "kind": "passed through",
            "mac": self.mac,
            "pci": self.pci,
            "iommu_group": self.iommu_group,
            "interface_before": self.interface,
            "driver_before": self.driver,
            "cable": self.cable,
        }


def passed_ports(
    asked: Mapping[str, RequestedPort], memory_mib: int, root: Path
) -> dict[str, PassedPort]:
    """Return the ports that a plan asks for, once it is sure that they can be passed through.

    Args:
        asked: by their names in the plan, in and out.
        memory_mib: memory of the guest.
        root: where the files of the kernel are.

    Raises:
        HostError: one cannot; says which, why, and what to do.

    """
    if not asked:
        return {}
    possible(root)
    _lockable(memory_mib, root)
    found = {}
    for name, port in asked.items():
        where = f"vm.ports.{name}"
        one = found[name] = _port(where, port, root)
        _alone(where, one, {other.pci for other in asked.values()}, root)
        _whole(where, one, root)
        _spared(f"{where}.pci", f"{one.pci} is {one.interface}", one.interface, root)
        _spared(f"{where}.cable", one.cable, one.cable, root)
    through = {one.interface for one in found.values()}
    for name, one in found.items():
        if one.cable in through:
            told = f"{one.cable} is passed through itself, expected an interface that stays here"
            raise HostError(f"vm.ports.{name}.cable: {told}")
    return found


def possible(root: Path = ROOT) -> None:
    """Make sure that this host can pass through devices at all.

    Raises:
        HostError: it cannot; says why, and what to do.

    """
    if os.geteuid() != 0 or local_host.unprivileged():
        raise HostError("passing through a PCI device needs root")
    if not any(_entries(root / _GROUPS)):
        raise HostError(
            "no IOMMU: /sys/kernel/iommu_groups is empty; switch on VT-d or AMD-Vi in the firmware"
            f" and boot {_boot_word(root)}"
        )
    if not (root / "sys/bus/pci/drivers" / DRIVER).exists() and not _has_module(root):
        raise HostError(
            f"{DRIVER}: the kernel {platform.release()} has no such module, expected one with"
            " CONFIG_VFIO_PCI, such as Debian's of flavour amd64 or rt"
        )


def _boot_word(root: Path) -> str:
    if "AuthenticAMD" in _text(root / "proc/cpuinfo"):
        return "without amd_iommu=off and iommu=off"
    return "with intel_iommu=on"


def _has_module(root: Path) -> bool:
    folder = root / "lib/modules" / platform.release()
    files = (_text(folder / name) for name in ("modules.dep", "modules.builtin"))
    return any(f"/{DRIVER}.ko" in text for text in files)


def _lockable(memory_mib: int, root: Path) -> None:
    """Make sure that the guest's memory may be locked: the device reaches all of it.

    The limit is not for processes with CAP_IPC_LOCK (drivers/vfio/vfio_iommu_type1.c of Linux).
    """
    rights = re.search(r"^CapEff:\s*([0-9a-f]+)$", _text(root / "proc/self/status"), re.MULTILINE)
    if rights is not None and int(rights[1], 16) >> _IPC_LOCK & 1:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit != resource.RLIM_INFINITY and limit <= memory_mib * _MIB:
        raise HostError(
            f"vm.memory_mib: {memory_mib:,} MiB have to be locked in memory, the limit is"
            f" {limit / _MIB:,.1f} MiB; set it by: ulimit -l unlimited"
        )


def _port(where: str, asked: RequestedPort, root: Path) -> PassedPort:
    device = root / _DEVICES / asked.pci
    if not device.is_dir():
        known = ", ".join(_networks(root)) or "none: this host has no network card on PCI"
        raise HostError(f"{where}.pci: no device {asked.pci}, expected one of {known}")
    if not _text(device / "class").startswith(_NETWORK):
        told = ", ".join(_networks(root)) or "a network card"
        raise HostError(f"{where}.pci: {asked.pci} is not a network card, expected {told}")
    driver = _target(device / "driver")
    interfaces = sorted(path.name for path in _entries(device / "net"))
    if len(interfaces) != 1:
        raise HostError(f"{where}.pci: {asked.pci} {_without(asked.pci, driver, interfaces)}")
    group = _target(device / "iommu_group")
    if not group.isdecimal():
        raise HostError(f"{where}.pci: {asked.pci} is in no IOMMU group, expected another slot")
    cable = root / "sys/class/net" / asked.cable
    if not (cable / "device").is_symlink():
        told = "is not a port of hardware" if cable.exists() else "does not exist"
        expected = "expected the interface of this host that the cable goes to"
        raise HostError(f"{where}.cable: {asked.cable} {told}, {expected}")
    module = _target(root / "sys/bus/pci/drivers" / driver / "module") or driver
    mac = _text(device / "net" / interfaces[0] / "address").strip()
    cable_mac = _text(cable / "address").strip()
    return PassedPort(
        pci=asked.pci,
        interface=interfaces[0],
        mac=mac,
        driver=driver,
        module=module.replace("-", "_"),
        iommu_group=int(group),
        cable=asked.cable,
        cable_mac=cable_mac,
        settings=(
            *settings(f"{where}.pci", device, mac),
            *settings(f"{where}.cable", (cable / "device").resolve(), cable_mac),
        ),
    )


def _without(pci: str, driver: str, interfaces: list[str]) -> str:
    """Return why a device has not one interface, and what to do."""
    if interfaces:
        return f"has several interfaces ({', '.join(interfaces)}), expected a device with one"
    if driver == DRIVER:
        again = f"/sys/bus/pci/devices/{pci}"
        return (
            f"is bound to {DRIVER} already, so its MAC address is not known; bind it to its"
            f" network driver: echo > {again}/driver_override; echo {pci} > {again}/driver/unbind;"
            f" echo {pci} > /sys/bus/pci/drivers_probe"
        )
    bound = f"bound to {driver}" if driver else "without a driver"
    return f"has no network interface ({bound}), expected its network driver"


def _alone(where: str, port: PassedPort, passed: set[str], root: Path) -> None:
    """Make sure that nothing else is in its group, all of which the guest could reach."""
    folder = root / _GROUPS / str(port.iommu_group) / "devices"
    others = [
        path.name
        for path in sorted(_entries(folder))
        if path.name not in passed and not _text(path / "class").startswith(_BRIDGE)
    ]
    if others:
        told = f"IOMMU group {port.iommu_group} of {port.pci} also has {', '.join(others)}"
        raise HostError(
            f"{where}.pci: {told}; pass only ports through that are alone in their group: another"
            " slot, or a virtual function (SR-IOV)"
        )


def _whole(where: str, port: PassedPort, root: Path) -> None:
    """Make sure that it has no virtual functions: they would go with its driver."""
    count = function_count(root / _DEVICES / port.pci)
    if count:
        raise HostError(
            f"{where}.pci: {port.pci} has {count} virtual functions, expected one of them or a card"
            f" without: echo 0 > /sys/bus/pci/devices/{port.pci}/sriov_numvfs"
        )


def _spared(where: str, what: str, interface: str, root: Path) -> None:
    """Make sure that this host does not need an interface, such as for the control connection."""
    above = [
        path.name.removeprefix("upper_")
        for path in sorted(_entries(root / "sys/class/net" / interface))
        if path.name.startswith("upper_")
    ]
    needs = f"{where}: {what}, which this host needs:"
    if above:
        raise HostError(f"{needs} it is part of {', '.join(above)}; take it out of that first")
    for version in ("-4", "-6"):
        if any(route.get("dev") == interface for route in ip(version, "route", "show", "default")):
            raise HostError(f"{needs} the default route is through it; take another interface")
    for link in ip("address", "show", "dev", interface):
        for one in link.get("addr_info", ()):
            if one.get("scope") == "global":
                told = f"{one['local']}/{one['prefixlen']}"
                remedy = f"ip address flush dev {interface}"
                raise HostError(f"{needs} it has the address {told}; if that is unused: {remedy}")


def _networks(root: Path) -> Iterator[str]:
    for device in sorted(_entries(root / _DEVICES)):
        if _text(device / "class").startswith(_NETWORK):
            names = ", ".join(path.name for path in _entries(device / "net"))
            yield f"{device.name} ({names})" if names else device.name


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _target(link: Path) -> str:
    """Return the name of what a link points to; empty without a link."""
    try:
        return link.readlink().name
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
