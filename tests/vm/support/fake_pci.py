"""A host with PCI devices that can be passed through: files as in sysfs, programs as a kernel.

``tee`` is how devices are bound: this one does what the kernel does when those files are written,
and notes each write. ``ip``, ``ethtool`` and ``modprobe`` note what they are asked for.
"""

from __future__ import annotations

import json
import os
import platform
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NETWORK, BRIDGE, SOUND = "0x020000", "0x060400", "0x040300"
IN, OUT = "0000:03:00.0", "0000:03:00.1"
#: A virtual function of IN.
FUNCTION = "0000:03:10.0"
DRIVER = "ixgbe"

_TEE = """#!/bin/sh
read -r value
echo "${1#"$FAKE_ROOT"/sys/bus/pci/} $value" >>"$FAKE_LOG"
case " $FAKE_BUSY " in *" ${1#"$FAKE_ROOT"/sys/bus/pci/} "*)
    echo "tee: $1: Device or resource busy" >&2
    exit 1
    ;;
esac
pci=$FAKE_ROOT/sys/bus/pci
case $1 in
*/driver_override) echo "${value:-(null)}" >"$1" ;;
*/unbind) rm "${1%/unbind}" ;;
*/bind)
    driver=${1%/bind}
    driver=${driver##*/}
    override=$(cat "$pci/devices/$value/driver_override")
    case $override in "(null)") override=$FAKE_DRIVER ;; esac
    [ "$override" = "$driver" ] || { echo "tee: $1: No such device" >&2; exit 1; }
    ln -s "$pci/drivers/$driver" "$pci/devices/$value/driver"
    [ "$driver" != vfio-pci ] || [ "$FAKE_NO_NODE" ] ||
        : >"$FAKE_ROOT/dev/vfio/$(basename "$(readlink "$pci/devices/$value/iommu_group")")"
    ;;
esac
"""
_IP = """#!/bin/sh
case "$*" in
*"-json "*)
    cat "$FAKE_ROOT/ip/$(echo "$*" | tr -d ' /')" 2>/dev/null || echo '[]'
    exit
    ;;
"-o link show dev "*)
    echo "7: $5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP"
    exit
    ;;
"link show dev "*) exit 0 ;;
esac
case "$*" in ${FAKE_REFUSED:+*"$FAKE_REFUSED"*})
    echo "RTNETLINK answers: Operation not supported" >&2
    exit 2
    ;;
esac
echo "ip $*" >>"$FAKE_LOG"
"""
_NSENTER = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
_ETHTOOL = """#!/bin/sh
case $1 in
-k) printf 'rx-checksumming: on\\ntx-checksumming: on\\ngeneric-receive-offload: off\\n' ;;
*) echo "ethtool $*" >>"$FAKE_LOG" ;;
esac
"""
_NOTED = '#!/bin/sh\necho "${0##*/} $*" >>"$FAKE_LOG"\n'
_PROGRAMS = {
    "tee": _TEE,
    "ip": _IP,
    "nsenter": _NSENTER,
    "ethtool": _ETHTOOL,
    "modprobe": _NOTED,
}


class FakeHost:
    """Two ports, each alone in its group, and a card with both in one: their cables go there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.log = folder / "root", folder / "log"
        self._programs(folder / "bin", monkeypatch)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.delenv("TAILTRIM_USER_NAMESPACE", raising=False)
        environment = {"ROOT": self.root, "LOG": self.log, "DRIVER": DRIVER, "BUSY": ""}
        for name, value in environment.items():
            monkeypatch.setenv(f"FAKE_{name}", str(value))
        for name in ("NO_NODE", "REFUSED"):
            monkeypatch.setenv(f"FAKE_{name}", "")
        for folder_ in ("dev/vfio", "sys/bus/pci/drivers/vfio-pci", "sys/kernel/iommu_groups"):
            (self.root / folder_).mkdir(parents=True)
        driver = self.driver(DRIVER)
        (self.root / "sys/module/ixgbe").mkdir(parents=True)
        (driver / "module").symlink_to(self.root / "sys/module/ixgbe")
        self.write("proc/self/status", "Name:\tpython\nCapEff:\t000001ffffffffff\n")
        self.write("proc/cpuinfo", "vendor_id\t: GenuineIntel\n")
        self.card(IN, "eth2", "02:00:00:00:0a:02", group=12)
        self.card(OUT, "eth3", "02:00:00:00:0a:03", group=13)
        self.card("0000:04:00.0", "eth4", "02:00:00:00:0a:04", group=14)
        self.card("0000:04:00.1", "eth5", "02:00:00:00:0a:05", group=14)

    def _programs(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.mkdir()
        for name, text in _PROGRAMS.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def write(self, name: str, text: str) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def driver(self, name: str) -> Path:
        place = self.root / "sys/bus/pci/drivers" / name
        place.mkdir(exist_ok=True)
        return place

    def device(self, address: str, kind: str, *, group: int, driver: str | None = None) -> Path:
        place = self.root / "sys/bus/pci/devices" / address
        place.mkdir(parents=True)
        (place / "class").write_text(f"{kind}\n")
        (place / "driver_override").write_text("(null)\n")
        if driver is not None:
            (place / "driver").symlink_to(self.driver(driver))
        of_group = self.root / "sys/kernel/iommu_groups" / str(group)
        (of_group / "devices").mkdir(parents=True, exist_ok=True)
        (of_group / "devices" / address).symlink_to(place)
        (place / "iommu_group").symlink_to(of_group)
        return place

    def card(self, address: str, interface: str, mac: str, *, group: int) -> Path:
        place = self.device(address, NETWORK, group=group, driver=DRIVER)
        (place / "net" / interface).mkdir(parents=True)
        (place / "net" / interface / "address").write_text(f"{mac}\n")
        known = self.root / "sys/class/net"
        known.mkdir(parents=True, exist_ok=True)
        (known / interface).symlink_to(place / "net" / interface)
        (place / "net" / interface / "device").symlink_to(place)
        return place

    def function(self, **told: Any) -> None:
        """Make a virtual function of IN, of which ``ip`` tells this."""
        function = self.card(FUNCTION, "eth6", "02:00:00:00:0a:06", group=15)
        physical = self.root / "sys/bus/pci/devices" / IN
        (function / "physfn").symlink_to(physical)
        (physical / "virtfn0").symlink_to(function)
        (physical / "sriov_numvfs").write_text("1\n")
        known = {"vf": 0, "address": "00:00:00:00:00:00", "link_state": "auto"}
        link = {"ifname": "eth2", "flags": ["BROADCAST", "UP"], "vfinfo_list": [known | told]}
        self.answers("link show dev eth2", [link])

    def answers(self, question: str, answer: list[dict[str, Any]]) -> None:
        """Have ``ip -json`` answer."""
        name = f"-json {question}".replace(" ", "").replace("/", "")
        self.write(f"ip/{name}", json.dumps(answer))

    def bound(self, address: str) -> str:
        link = self.root / "sys/bus/pci/devices" / address / "driver"
        return link.readlink().name if link.is_symlink() else ""

    def override(self, address: str) -> str:
        return (self.root / "sys/bus/pci/devices" / address / "driver_override").read_text().strip()

    def without_module(self) -> None:
        (self.root / "sys/bus/pci/drivers/vfio-pci").rmdir()

    def with_module(self) -> None:
        name = f"lib/modules/{platform.release()}/modules.dep"
        self.write(name, "kernel/drivers/vfio/pci/vfio-pci.ko.xz: kernel/drivers/vfio/vfio.ko.xz\n")

    @property
    def writes(self) -> list[str]:
        """Writes and requests to the fake host, in order."""
        return self.log.read_text().splitlines() if self.log.exists() else []
