"""Obstacles to passing a PCI device through are reported before anything starts."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest
from fake_pci import BRIDGE, DRIVER, FUNCTION, IN, NETWORK, OUT, SOUND, FakeHost

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.vm import pci
from tailtrim.laboratory.nodes.vm.pci import PassedPort, RequestedPort
from tailtrim.laboratory.nodes.vm.sriov import Setting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BOTH = {"in": RequestedPort(IN, "eth4"), "out": RequestedPort(OUT, "eth5")}
MEMORY_MIB = 512


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    return FakeHost(tmp_path, monkeypatch)


def found(fake: FakeHost, asked: dict[str, RequestedPort] = BOTH) -> dict[str, PassedPort]:
    return pci.passed_ports(asked, MEMORY_MIB, fake.root)


def refused(fake: FakeHost, asked: dict[str, RequestedPort] = BOTH) -> str:
    with pytest.raises(HostError) as raised:
        found(fake, asked)
    assert fake.writes == []
    return str(raised.value)


def test_what_a_device_is_shows_before_it_is_bound(fake: FakeHost) -> None:
    ports = found(fake)
    assert list(ports) == ["in", "out"]
    assert ports["in"] == PassedPort(
        pci=IN,
        interface="eth2",
        mac="02:00:00:00:0a:02",
        driver=DRIVER,
        module="ixgbe",
        iommu_group=12,
        cable="eth4",
        cable_mac="02:00:00:00:0a:04",
    )
    assert ports["in"].record == {
        "kind": "passed through",
        "mac": "02:00:00:00:0a:02",
        "pci": IN,
        "iommu_group": 12,
        "interface_before": "eth2",
        "driver_before": DRIVER,
        "cable": "eth4",
    }


def test_without_devices_nothing_is_asked_of_the_host(tmp_path: Path) -> None:
    assert pci.passed_ports({}, MEMORY_MIB, tmp_path) == {}


def test_no_iommu(fake: FakeHost) -> None:
    for group in (fake.root / pci._GROUPS).iterdir():  # noqa: SLF001 - emptied as without one
        group.rename(fake.root / group.name)
    told = refused(fake)
    for fact in ("no IOMMU", "/sys/kernel/iommu_groups", "VT-d", "AMD-Vi"):
        assert fact in told
    assert told.endswith("with intel_iommu=on")
    fake.write("proc/cpuinfo", "vendor_id\t: AuthenticAMD\n")
    told = refused(fake)
    for fact in ("without amd_iommu=off", " iommu=off"):
        assert fact in told


def test_no_root(fake: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILTRIM_USER_NAMESPACE", "1")
    assert "PCI device needs root" in refused(fake)
    monkeypatch.delenv("TAILTRIM_USER_NAMESPACE")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "PCI device needs root" in refused(fake)


def test_no_vfio_pci(fake: FakeHost) -> None:
    fake.without_module()
    assert "vfio-pci: the kernel" in refused(fake)
    fake.with_module()
    assert found(fake)


def test_no_such_device(fake: FakeHost) -> None:
    told = refused(fake, {"in": RequestedPort("0000:09:00.0", "eth4")})
    assert told.startswith("vm.ports.in.pci: no device 0000:09:00.0")
    assert f"{IN} (eth2)" in told


def test_a_device_that_is_no_network_card(fake: FakeHost) -> None:
    fake.device("0000:05:00.0", SOUND, group=20, driver="snd_hda_intel")
    told = refused(fake, {"out": RequestedPort("0000:05:00.0", "eth4")})
    for fact in ("vm.ports.out.pci: 0000:05:00.0 ", "not a network card"):
        assert fact in told


def test_a_card_without_its_network_driver(fake: FakeHost) -> None:
    fake.device("0000:05:00.0", NETWORK, group=20)
    told = refused(fake, {"in": RequestedPort("0000:05:00.0", "eth4")})
    for fact in ("0000:05:00.0", "no network interface", "without a driver"):
        assert fact in told
    fake.device("0000:06:00.0", NETWORK, group=21, driver="vfio-pci")
    told = refused(fake, {"in": RequestedPort("0000:06:00.0", "eth4")})
    for fact in ("bound to vfio-pci", "MAC address"):
        assert fact in told
    assert "echo 0000:06:00.0 > /sys/bus/pci/drivers_probe" in told


def test_another_device_in_its_group(fake: FakeHost) -> None:
    fake.device("0000:05:00.0", SOUND, group=12)
    told = refused(fake)
    for fact in ("vm.ports.in.pci: ", f"IOMMU group 12 of {IN} ", "also has 0000:05:00.0;"):
        assert fact in told


def test_a_group_with_a_bridge_or_of_both_ports(fake: FakeHost) -> None:
    fake.device("0000:00:1c.0", BRIDGE, group=12)
    assert found(fake)["in"].iommu_group == 12
    group = fake.root / pci._GROUPS / "14" / "devices"  # noqa: SLF001 - that of a whole card
    whole = {
        "in": RequestedPort("0000:04:00.0", "eth2"),
        "out": RequestedPort("0000:04:00.1", "eth3"),
    }
    assert len(list(group.iterdir())) == len(whole)
    assert [port.iommu_group for port in found(fake, whole).values()] == [14, 14]
    assert "also has 0000:04:00.1" in refused(fake, {"in": whole["in"]})


def default_route(fake: FakeHost, interface: str) -> None:
    fake.answers("-4 route show default", [{"dst": "default", "dev": interface}])


def default_route_6(fake: FakeHost, interface: str) -> None:
    fake.answers("-6 route show default", [{"dst": "default", "dev": interface}])


def address(fake: FakeHost, interface: str) -> None:
    known = {"local": "192.0.2.7", "prefixlen": 24, "scope": "global"}
    fake.answers(f"address show dev {interface}", [{"ifname": interface, "addr_info": [known]}])


def member(fake: FakeHost, interface: str) -> None:
    fake.write(f"sys/class/net/{interface}/upper_br0", "")


@pytest.mark.parametrize(
    ("needing", "told"),
    [
        (default_route, "default route"),
        (default_route_6, "default route"),
        (address, "address 192.0.2.7/24"),
        (member, "part of br0"),
    ],
)
@pytest.mark.parametrize(
    ("interface", "where"),
    [("eth2", f"vm.ports.in.pci: {IN} is eth2"), ("eth5", "vm.ports.out.cable: eth5")],
)
def test_an_interface_that_this_host_needs(
    fake: FakeHost,
    needing: Callable[[FakeHost, str], None],
    told: str,
    interface: str,
    where: str,
) -> None:
    needing(fake, interface)
    refusal = refused(fake)
    assert refusal.startswith(f"{where}, which this host needs: ")
    assert told in refusal
    if needing is address:
        assert f"ip address flush dev {interface}" in refusal


def test_an_address_of_the_link_alone_needs_nothing(fake: FakeHost) -> None:
    known = {"local": "fe80::1", "prefixlen": 64, "scope": "link"}
    fake.answers("address show dev eth2", [{"ifname": "eth2", "addr_info": [known]}])
    assert found(fake)


def test_a_cable_to_nowhere(fake: FakeHost) -> None:
    told = refused(fake, {"in": RequestedPort(IN, "eth9")})
    assert told.startswith("vm.ports.in.cable: eth9 does not exist")
    (fake.root / "sys/class/net/br0").mkdir()
    told = refused(fake, {"in": RequestedPort(IN, "br0")})
    assert told.startswith("vm.ports.in.cable: br0 is not a port")
    told = refused(fake, {"in": RequestedPort(IN, "eth3"), "out": RequestedPort(OUT, "eth5")})
    assert told.startswith("vm.ports.in.cable: eth3 is passed through")


def test_settings_of_a_virtual_function_that_a_guest_needs(fake: FakeHost) -> None:
    fake.function(spoofchk=True, trust=True)
    (port,) = found(fake, {"in": RequestedPort(FUNCTION, "eth4")}).values()
    zeros = "00:00:00:00:00:00"
    assert port.settings == (
        Setting("eth2", 0, "mac", "02:00:00:00:0a:06", zeros),
        Setting("eth2", 0, "spoofchk", "off", "on"),
    )
    assert port.record["virtual_functions"][1] == {
        "interface": "eth2",
        "function": 0,
        "name": "spoofchk",
        "value": "off",
        "before": "on",
    }


def test_settings_of_a_virtual_function_at_the_end_of_a_cable(fake: FakeHost) -> None:
    mac = "02:00:00:00:0a:06"
    fake.function(spoofchk=False, trust=False, link_state="disable", address=mac)
    (port,) = found(fake, {"in": RequestedPort(OUT, "eth6")}).values()
    assert [(one.name, one.value, one.before) for one in port.settings] == [
        # Told, but maybe of its own choice: the next reset would change it.
        ("mac", mac, mac),
        ("trust", "on", "off"),
        ("state", "auto", "disable"),
    ]


def test_a_virtual_function_whose_physical_one_cannot_serve_it(fake: FakeHost) -> None:
    asked = {"in": RequestedPort(FUNCTION, "eth4")}
    fake.function()
    fake.answers("link show dev eth2", [{"ifname": "eth2", "flags": ["UP"]}])
    told = refused(fake, asked)
    assert told.startswith(f"vm.ports.in.pci: {FUNCTION} is a virtual function of {IN}, which has")
    down = {"ifname": "eth2", "flags": ["BROADCAST"], "vfinfo_list": [{"vf": 0}]}
    fake.answers("link show dev eth2", [down])
    assert refused(fake, asked).endswith("which is down; its link is up after: ip link set eth2 up")


def test_a_card_with_virtual_functions(fake: FakeHost) -> None:
    fake.function()
    told = refused(fake, {"in": RequestedPort(IN, "eth4")})
    assert told.startswith(f"vm.ports.in.pci: {IN} has 1 virtual functions, expected one of them")


def test_memory_that_may_not_be_locked(fake: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.write("proc/self/status", "CapEff:\t000001ffffffbfff\n")
    limits = [8 << 20, 8 << 20]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limits))
    told = refused(fake)
    for fact in ("vm.memory_mib: 512 MiB ", "locked in memory", "limit is 8.0 MiB", "ulimit -l"):
        assert fact in told
    limits[0] = resource.RLIM_INFINITY
    assert found(fake)
    limits[0] = 8 << 20
    fake.write("proc/self/status", "CapEff:\t000001ffffffffff\n")
    assert found(fake)
