"""Emulated igb behind an emulated IOMMU: virtual functions by vfio-pci, and DPDK on both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import dpdk
import pytest
from same_machine import SCRATCH, SameMachine, same_machine

from tailtrim.laboratory.nodes.vm.pci import DRIVER

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Cards by their interfaces: a cable between eth0 and eth1, and another between eth2 and eth3.
CARDS = {f"eth{number}": f"0000:0{number + 1}:00.0" for number in range(4)}
CARD = CARDS["eth0"]
FUNCTIONS = ("0000:01:10.0", "0000:01:10.2")
MANY = 200
#: Of 2 MB, as many as DPDK asks for with one queue.
HUGE_PAGES = 128
#: Steps of the tool for a boot, until it is killed.
_CONTROLLER = f"""
import json, time
from dataclasses import replace
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.vm import pci
from tailtrim.laboratory.nodes.vm.sriov import Setting
from tailtrim.laboratory.nodes.vm.vfio import BoundDevices
asked = {{"in": pci.RequestedPort({FUNCTIONS[0]!r}, "eth1")}}
(port,) = pci.passed_ports(asked, 256, pci.ROOT).values()
# The driver of an igb has no such setting.
more = (*port.settings, Setting("eth0", 0, "state", "enable", "auto"))
port = replace(port, settings=more)
with Namespace("vm") as parking, BoundDevices([port], parking.pid) as held:
    told = {{"parking": parking.pid, "refused": held.refused, "port": port.record}}
    print(json.dumps(told), flush=True)
    time.sleep(600)
"""
_BIND = """
driver=$1
shift
for card; do
    echo $driver >/sys/bus/pci/devices/$card/driver_override
    echo $card >/sys/bus/pci/devices/$card/driver/unbind
    echo $card >/sys/bus/pci/drivers_probe
done
"""


def _hardware() -> list[str]:
    words = []
    for number in range(4):
        words += ["-device", f"pcie-root-port,id=rp{number},chassis={number},slot={number}"]
        words += ["-netdev", f"hubport,id=h{number},hubid={number // 2}"]
        words += ["-device", f"igb,netdev=h{number},bus=rp{number},mac=02:00:00:00:0c:0{number}"]
    return words


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SameMachine]:
    """Boot once: each test leaves the cards as they were."""
    dpdk.program()
    folder = tmp_path_factory.mktemp("igb")
    with same_machine(folder, ("igb", "igbvf"), *_hardware()) as booted:
        yield booted


def driver(machine: SameMachine, card: str) -> str:
    link = machine.call("readlink", f"/sys/bus/pci/devices/{card}/driver").stdout
    return link.strip().rpartition("/")[2]


def functions(machine: SameMachine) -> list[dict[str, Any]]:
    (link,) = json.loads(machine.run("ip", "-json", "link", "show", "dev", "eth0"))
    kept = ("address", "spoofchk", "trust", "link_state")
    return [{key: told[key] for key in kept} for told in link["vfinfo_list"]]


def captured(machine: SameMachine, device: str, *sends: str) -> dict[str, Any]:
    """Return what DPDK captured of a device while a generator sent there."""
    taps = ("--tap", f"one={device}", "--out", f"{SCRATCH}/taken")
    machine.start("capture", dpdk.program(), "capture", *taps)
    machine.told("capture", '"ready"')
    generated(machine, *sends)
    machine.told("capture", f'"packets":{MANY}')
    machine.stop("capture", "INT")
    tap: dict[str, Any] = json.loads(machine.told("capture", '"result"'))["taps"]["one"]
    return tap


def generated(machine: SameMachine, *words: str) -> dict[str, Any]:
    path = f"PATH={dpdk.program().rpartition('/')[0]}:$PATH"
    traffic = f"--rate 200pps --count {MANY}"
    told = machine.run("sh", "-c", f"{path} exec {' '.join(words)} {traffic}")
    result: dict[str, Any] = json.loads(told.splitlines()[-1])
    assert result["sent"] == MANY
    return result


def received(machine: SameMachine, interface: str) -> int:
    return int(machine.run("cat", f"/sys/class/net/{interface}/statistics/rx_packets"))


def test_a_virtual_function_is_given_and_comes_back(machine: SameMachine) -> None:
    machine.run("ip", "link", "set", "eth0", "up")
    machine.run("sh", "-c", f"echo 2 >/sys/bus/pci/devices/{CARD}/sriov_numvfs")
    machine.until(lambda: driver(machine, FUNCTIONS[1]) == "igbvf", "none")
    before, mtu = functions(machine), "1400"
    assert before[0] | before[1] == before[1]
    machine.run("ip", "link", "set", "eth1", "mtu", mtu)

    machine.start("controller", "python", "-c", _CONTROLLER)
    told = json.loads(machine.told("controller", "{"))
    port, parking = told["port"], ("nsenter", f"--net=/proc/{told['parking']}/ns/net")
    assert port["driver_before"] == "igbvf"
    assert told["refused"] == ["eth0 vf 0 state enable: Operation not supported"]
    assert [driver(machine, one) for one in FUNCTIONS] == [DRIVER, "igbvf"]
    needed = {"address": port["mac"], "spoofchk": False, "trust": True, "link_state": "auto"}
    assert functions(machine) == [needed, before[1]]
    assert "eth1" not in machine.run("ls", "/sys/class/net").split()

    # Packets pass between it and the end of the cable, which is in another namespace.
    machine.run(*parking, "ip", "link", "set", "eth1", "mtu", "1500", "promisc", "on", "up")
    shown = (*parking, "ip", "link", "show", "dev", "eth1")
    machine.until(lambda: "LOWER_UP" in machine.run(*shown), "controller")
    sends = (*parking, "tailtrim-agent", "generate", "--interface", "eth1", "--dst-mac")
    tap = captured(machine, FUNCTIONS[0], *sends, port["mac"])
    assert (tap["packets"], tap["dropped"], tap["port"]["mac"]) == (MANY, 0, port["mac"])

    machine.stop("controller", "KILL")
    machine.until(lambda: driver(machine, FUNCTIONS[0]) == "igbvf", "controller")
    machine.until(lambda: functions(machine) == before, "controller")
    machine.until(lambda: f"mtu {mtu}" in machine.call("ip", "link", "show", "eth1").stdout, "none")
    assert [driver(machine, one) for one in FUNCTIONS] == ["igbvf"] * 2
    place = f"/sys/bus/pci/devices/{FUNCTIONS[0]}"
    assert machine.run("cat", f"{place}/driver_override").strip() == "(null)"
    assert machine.run("sh", "-c", f"cat {place}/net/*/address").strip() == port["mac"]
    machine.run("sh", "-c", f"echo 0 >/sys/bus/pci/devices/{CARD}/sriov_numvfs")


def test_dpdk_sends_captures_and_forwards_by_interrupts(machine: SameMachine) -> None:
    near, far = CARDS["eth1"], CARDS["eth3"]
    for end in ("eth0", "eth2"):
        machine.run("ip", "link", "set", end, "promisc", "on", "up")
    machine.run("sh", "-c", _BIND, "sh", DRIVER, near, far)

    kernel_sends = ("tailtrim-agent", "generate", "--interface", "eth0")
    tap = captured(machine, near, *kernel_sends)
    assert (tap["packets"], tap["received"], tap["dropped"]) == (MANY, MANY, 0)
    assert tap["port"]["driver"] == "net_e1000_igb"

    before = received(machine, "eth2")
    sent = generated(machine, "tailtrim-agent", "generate", "--interface", f"dpdk:{far}")
    assert sent["discarded"] == 0
    machine.until(lambda: received(machine, "eth2") - before >= MANY, "capture")

    machine.run("sh", "-c", f"echo {HUGE_PAGES} >/proc/sys/vm/nr_hugepages")
    before = received(machine, "eth2")
    ways = ("--ingress", near, "--egress", far, "--mode", "interrupt")
    machine.start("forward", dpdk.program(), "forward", *ways)
    assert json.loads(machine.told("forward", '"ready"'))["huge_pages"] is True
    generated(machine, *kernel_sends)
    machine.until(lambda: received(machine, "eth2") - before >= MANY, "forward")
    machine.stop("forward", "INT")
    result = json.loads(machine.told("forward", '"result"'))
    assert (result["received"], result["sent"], result["dropped"]) == (MANY, MANY, 0)
    assert result["wakeups"] > 0
    assert result["overslept"] == 0
    machine.run("sh", "-c", _BIND, "sh", "igb", near, far)
