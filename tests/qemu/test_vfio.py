"""A machine with an emulated IOMMU: cards as its kernel describes them, and their binding."""

from __future__ import annotations

import shlex
import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from shell_guest import CONSOLE, Guest, booted, imaged, shell, with_libraries

from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.namespace import TOOLS
from tailtrim.laboratory.nodes.ports import REMEMBER
from tailtrim.laboratory.nodes.vm import image, pci

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RECIPE = image.Recipe("bookworm/amd64", drivers=("e1000e", "vfio_pci"))
LINE = f"{CONSOLE} intel_iommu=on"
HARDWARE = (
    *("-machine", "q35", "-device", "intel-iommu", "-nic", "none"),
    *("-device", "e1000e,mac=02:00:00:00:0b:01", "-device", "e1000e,mac=02:00:00:00:0b:02"),
)
WITHIN_S = 60
#: A line for each file and link that is looked at.
_TOLD = """
cd /sys
for path in bus/pci/devices/*/class bus/pci/devices/*/net/*/address class/net/*/address; do
    [ ! -f "$path" ] || echo "file $path $(cat "$path")"
done
for path in bus/pci/devices/*/driver bus/pci/devices/*/iommu_group bus/pci/drivers/*/module \\
    kernel/iommu_groups/*/devices/* class/net/*/device; do
    [ ! -L "$path" ] || echo "link $path $(readlink "$path")"
done
"""
_START = """
mkfifo /tmp/hold
unshare -n sleep 1000 >/dev/null 2>&1 &
echo $! >/tmp/parking
sleep 1
sleep 1000 >/tmp/hold 2>/dev/null &
echo $! >/tmp/controller
sh -c "$1" sh /sys "$(cat /tmp/parking)" "$2" "" eth1 </tmp/hold >/tmp/told 2>/tmp/problems &
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Guest]:
    files = shell()
    for tool in TOOLS:
        if tool.program in {"ip", "ethtool", "nsenter", "unshare"}:
            files |= with_libraries(local_host.find(tool) or "")
    options = imaged(tmp_path, RECIPE, files, LINE)
    with booted(tmp_path, *HARDWARE, *options) as guest:
        guest.run("modprobe", "e1000e")
        until(guest, lambda: guest.call("test", "-e", "/sys/class/net/eth1").returncode == 0)
        yield guest


def until(guest: Guest, condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + WITHIN_S
    while not condition():
        problems = guest.call("cat", "/tmp/problems").stdout  # noqa: S108 - in the guest
        assert time.monotonic() < ends, problems
        time.sleep(0.2)


def shown(guest: Guest, root: Path) -> Path:
    """Return a copy of what the guest's sysfs has of its cards."""
    for line in guest.run("sh", "-c", _TOLD).splitlines():
        kind, path, *value = line.split(" ")
        place = root / "sys" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            place.write_text(" ".join(value) + "\n")
        else:
            place.symlink_to(value[0])
    (root / "sys/bus/pci/drivers/vfio-pci").mkdir(parents=True, exist_ok=True)
    return root


def address(guest: Guest, interface: str) -> str:
    return Path(guest.run("readlink", f"/sys/class/net/{interface}/device").strip()).name


def driver(guest: Guest, card: str) -> str:
    link = guest.call("readlink", f"/sys/bus/pci/devices/{card}/driver").stdout
    return Path(link.strip()).name


def test_a_real_kernel_tells_binds_and_gives_back(
    machine: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pci, "ip", lambda *_: [])
    card = address(machine, "eth0")
    root = shown(machine, tmp_path / "root")
    (port,) = pci.passed_ports({"in": pci.RequestedPort(card, "eth1")}, 1, root).values()
    assert (port.interface, port.mac) == ("eth0", "02:00:00:00:0b:01")
    assert (port.driver, port.module) == ("e1000e", "e1000e")
    assert port.cable_mac == "02:00:00:00:0b:02"

    machine.run("ip", "link", "set", "eth1", "mtu", "1400")
    script = resources.files("tailtrim.laboratory.nodes.vm").joinpath("vfio.sh").read_text("utf-8")
    words = (f"{REMEMBER}\n{script}", f"{port.pci}={port.driver}")
    machine.run("sh", "-c", f"set -- {shlex.join(words)}\n{_START}")
    until(machine, lambda: machine.call("cat", "/tmp/told").stdout == "bound\n")  # noqa: S108
    assert driver(machine, card) == pci.DRIVER
    assert machine.call("test", "-c", f"/dev/vfio/{port.iommu_group}").returncode == 0
    assert "eth1" not in machine.run("ls", "/sys/class/net").split()
    parking = machine.run("cat", "/tmp/parking").strip()  # noqa: S108 - in the guest
    machine.run("nsenter", "-t", parking, "-n", "ip", "link", "set", "eth1", "mtu", "1500")

    # The namespace ends with its process, and the controller is killed.
    machine.run("sh", "-c", "kill -9 $(cat /tmp/parking /tmp/controller)")
    until(machine, lambda: driver(machine, card) == "e1000e")
    until(machine, lambda: "mtu 1400" in machine.call("ip", "link", "show", "eth1").stdout)
    assert machine.run("cat", f"/sys/bus/pci/devices/{card}/driver_override").strip() == "(null)"
    assert address(machine, machine.run("ls", f"/sys/bus/pci/devices/{card}/net").strip()) == card
