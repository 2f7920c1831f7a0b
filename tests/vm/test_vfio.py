"""PCI devices are bound to vfio-pci in the kernel's order, and come back, whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from dataclasses import astuple, replace
from typing import TYPE_CHECKING

import pytest
from fake_pci import DRIVER, IN, OUT, FakeHost

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.vm.pci import PassedPort
from tailtrim.laboratory.nodes.vm.sriov import Setting
from tailtrim.laboratory.nodes.vm.vfio import BoundDevices

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PORTS = (
    PassedPort(IN, "eth2", "02:00:00:00:0a:02", DRIVER, "ixgbe", 12, "eth4", "02:00:00:00:0a:04"),
    PassedPort(OUT, "eth3", "02:00:00:00:0a:03", DRIVER, "ixgbe", 13, "eth5", "02:00:00:00:0a:05"),
)
PARKING = os.getpid()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    return FakeHost(tmp_path, monkeypatch)


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def given(address: str) -> list[str]:
    return [
        f"devices/{address}/driver_override vfio-pci",
        f"devices/{address}/driver/unbind {address}",
        f"drivers/vfio-pci/bind {address}",
    ]


def returned(address: str) -> list[str]:
    return [
        f"devices/{address}/driver_override ",
        f"devices/{address}/driver/unbind {address}",
        f"drivers/{DRIVER}/bind {address}",
    ]


def made_again(interface: str) -> list[str]:
    return [
        f"ethtool -K {interface} rx on tx on gro off",
        f"ip link set dev {interface} mtu 1500 arp on multicast on up",
    ]


def test_devices_are_bound_and_come_back_in_the_order_of_the_kernel(fake: FakeHost) -> None:
    with BoundDevices(PORTS, PARKING, fake.root):
        assert [fake.bound(address) for address in (IN, OUT)] == ["vfio-pci", "vfio-pci"]
        cables = [f"ip link set dev {name} netns {PARKING}" for name in ("eth4", "eth5")]
        assert fake.writes == [*given(IN), *given(OUT), *cables]
    before = len(given(IN)) * 2 + len(cables)
    from_there = [line.rpartition(" ")[0] for line in fake.writes[before : before + 2]]
    assert from_there == ["ip link set dev eth4 netns", "ip link set dev eth5 netns"]
    again = [*made_again("eth4"), *made_again("eth5"), *returned(IN), *returned(OUT)]
    assert fake.writes[before + 2 :] == again
    assert [fake.bound(address) for address in (IN, OUT)] == [DRIVER, DRIVER]
    assert fake.override(IN) == "(null)"


def test_a_virtual_function_is_set_before_it_is_bound_and_after_it_came_back(
    fake: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (
        Setting("eth2", 3, "mac", "02:00:00:00:0a:06", "00:00:00:00:00:00"),
        Setting("eth2", 3, "trust", "on", "off"),
        Setting("eth2", 3, "spoofchk", "off", "on"),
        Setting("eth2", 4, "mac", "02:00:00:00:0a:07", "02:00:00:00:0a:07"),
    )
    monkeypatch.setenv("FAKE_REFUSED", "vf 3 trust")
    with BoundDevices([replace(PORTS[0], settings=settings)], PARKING, fake.root) as held:
        assert held.refused == ["eth2 vf 3 trust on: Operation not supported"]
        set_first = ["3 mac 02:00:00:00:0a:06", "3 spoofchk off", "4 mac 02:00:00:00:0a:07"]
        written = [f"ip link set dev eth2 vf {one}" for one in set_first]
        assert fake.writes[:4] == [*written, given(IN)[0]]
    set_last = ["3 mac 00:00:00:00:00:00", "3 spoofchk on"]
    written = [f"ip link set dev eth2 vf {one}" for one in set_last]
    assert fake.writes[-3:] == [returned(IN)[-1], *written]


def test_a_module_that_is_not_loaded_is_loaded_first(fake: FakeHost) -> None:
    fake.without_module()
    with BoundDevices(PORTS[:1], PARKING, fake.root):
        assert fake.writes[:2] == ["modprobe vfio-pci", given(IN)[0]]


def test_an_override_of_before_comes_back(fake: FakeHost) -> None:
    place = f"sys/bus/pci/devices/{IN}/driver_override"
    fake.write(place, f"{DRIVER}\n")
    with BoundDevices(PORTS[:1], PARKING, fake.root):
        assert fake.override(IN) == "vfio-pci"
    assert (fake.override(IN), fake.bound(IN)) == (DRIVER, DRIVER)


@pytest.mark.parametrize("busy", [f"devices/{OUT}/driver/unbind", "drivers/vfio-pci/bind"])
def test_a_device_that_cannot_be_bound_leaves_all_as_they_were(
    fake: FakeHost, monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    monkeypatch.setenv("FAKE_BUSY", busy)
    with pytest.raises(HostError) as raised:
        BoundDevices(PORTS, PARKING, fake.root)
    told = f"vm.ports: {fake.root}/sys/bus/pci/{busy}: cannot be set to 0000:03:00."
    assert str(raised.value).startswith(told)
    assert str(raised.value).endswith(": Device or resource busy")
    assert fake.bound(IN) == DRIVER
    assert (fake.override(IN), fake.override(OUT)) == ("(null)", "(null)")
    assert not any("netns" in line for line in fake.writes)


def test_a_device_that_does_not_come_back_is_told(
    fake: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUSY", f"drivers/{DRIVER}/bind")
    with (
        pytest.raises(HostError, match=r"vm\.ports: not as it was.*/ixgbe/bind"),
        BoundDevices(PORTS, PARKING, fake.root),
    ):
        pass


def test_a_group_that_may_not_be_used_is_told_and_given_back(
    fake: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NO_NODE", "yes")
    with pytest.raises(HostError, match=r"vm\.ports: 0000:03:00\.0: .*/dev/vfio/12 cannot"):
        BoundDevices(PORTS, PARKING, fake.root)
    assert [fake.bound(address) for address in (IN, OUT)] == [DRIVER, DRIVER]


def test_killed_the_devices_come_back(fake: FakeHost) -> None:
    program = textwrap.dedent(f"""
        import os, pathlib, time
        from tailtrim.laboratory.nodes.vm.pci import PassedPort
        from tailtrim.laboratory.nodes.vm.vfio import BoundDevices
        ports = [PassedPort(*one) for one in {[astuple(port) for port in PORTS]!r}]
        with BoundDevices(ports, os.getpid(), pathlib.Path({str(fake.root)!r})):
            print("bound", flush=True)
            time.sleep(60)
    """)
    controller = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == "bound\n"
        assert fake.bound(IN) == "vfio-pci"
        controller.kill()
    until(lambda: fake.writes[-1] == returned(OUT)[-1] and fake.bound(OUT) == DRIVER)
    assert fake.bound(IN) == DRIVER
    assert made_again("eth4")[1] in fake.writes
