"""A PCI device passed through to a guest, on a host that has an IOMMU and two cables to itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_pci import DRIVER, IN, OUT, FakeHost

from tailtrim.laboratory.doctor.check import attempt
from tailtrim.laboratory.nodes import local_host
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.vm import forwarding, pci
from tailtrim.laboratory.nodes.vm.guest import Guest, ports_with
from tailtrim.laboratory.nodes.vm.pci import PassedPort

if TYPE_CHECKING:
    from laboratory import Lab

pytestmark = pytest.mark.guests

#: The ports of the guest and the interfaces that they are cabled to: ADDRESS=INTERFACE for in and
#: out, such as "0000:03:00.0=enp4s0f0 0000:03:00.1=enp4s0f1". Only who laid the cables knows them.
PORTS = "TAILTRIM_PASSED_THROUGH"
#: Broadcast, from nowhere, of an EtherType for experiments (IEEE 802).
FRAME = bytes([0xFF] * 6 + [2, 0, 0, 0, 0, 9]) + b"\x88\xb5" + bytes(46)
_FAKES = ("ip", "nsenter", "ethtool")


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes network namespaces")


@pytest.fixture
def ports() -> dict[str, Any]:
    missing = attempt(pci.possible)
    if missing is not None:
        pytest.skip(f"no PCI device can be passed through: {missing}")
    given = [one.partition("=") for one in os.environ.get(PORTS, "").split()]
    if len(given) != len(("in", "out")):
        pytest.skip(f"{PORTS} does not name two ports and their cables")
    return {
        name: {"pci": one, "cable": cable}
        for name, (one, _, cable) in zip(("in", "out"), given, strict=True)
    }


def driver(address: str) -> str:
    return Path(f"/sys/bus/pci/devices/{address}/driver").readlink().name


def test_packets_pass_a_device_whose_ports_are_hardware(lab: Lab, ports: dict[str, Any]) -> None:
    before = {port["pci"]: driver(port["pci"]) for port in ports.values()}
    plan = lab.plan(
        dut={"preset": "router", "node": "vm"},
        boot={"kernel": "trixie/amd64"},
        boots=1,
        vm={"ports": ports},
        traffic={"rate_pps": 100, "duration_s": 1},
    )
    ended = lab.run("run", str(plan), "--out", "out", timeout_s=600)
    assert ended.returncode == 0, ended.stderr
    assert lab.result("run-000", "summary")["samples"] > 0
    attached = lab.result("run-000", "nodes")["boot"]["ports"]
    assert [attached[name]["kind"] for name in ("d0", "d1")] == ["passed through"] * 2
    assert {one["pci"]: one["driver_before"] for one in attached.values()} == before
    assert {address: driver(address) for address in before} == before


class Cabled(Guest):
    """A guest that is a network namespace: its cards are ends of virtual cables."""

    def __init__(self, stack: ExitStack) -> None:
        self.parking = stack.enter_context(Namespace("vm"))
        self.inside = stack.enter_context(Namespace("guest"))
        passed = {}
        for number, name in enumerate(("in", "out")):
            card, cable = f"d{number}", f"eth{number}"
            ends = ("mtu", "9000", "type", "veth", "peer", "name", card, "netns")
            pid = str(self.inside.pid)
            self.parking.run("ip", "link", "add", cable, *ends, pid)
            macs = [_mac(self.parking, cable), _mac(self.inside, card)]
            passed[name] = PassedPort(IN, card, macs[1], DRIVER, DRIVER, 1, cable, macs[0])
        self.ports, self._unplugged = ports_with(passed), False
        self.record = {"cpus": 1}
        self.session: Any = None


def _mac(node: Namespace, interface: str) -> str:
    (link,) = json.loads(node.run("ip", "-json", "link", "show", "dev", interface))
    return str(link["address"])


@pytest.mark.usefixtures("root")
def test_frames_pass_between_the_timestamper_and_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        guest = Cabled(stack)
        monkeypatch.setattr(forwarding, "GuestNode", lambda *_, **__: nullcontext(guest.inside))
        with forwarding.GuestForwarding(guest, tmp_path, 1_518, local_host.facts()) as at:
            assert at.tap_out.name == "eth1"
            assert [port.mac for port in (at.dut_in, at.dut_out)] == [
                _mac(guest.inside, name) for name in ("d0", "d1")
            ]
            with at.dut_in.node.frames("d0") as card, at.send.node.frames(at.send.name) as sends:
                sends.send(FRAME)
                assert card.receive(5) == FRAME
            with at.dut_out.node.frames("d1") as card, at.sink.node.frames(at.sink.name) as sink:
                card.send(FRAME)
                assert sink.receive(5) == FRAME
        # Back for the next run of the boot.
        assert _mac(guest.parking, "eth0")
        assert _mac(guest.parking, "eth1")


_BINDS = """
import os, pathlib, subprocess
from tailtrim.laboratory.nodes.namespace import Namespace
from tailtrim.laboratory.nodes.vm.pci import PassedPort
from tailtrim.laboratory.nodes.vm.vfio import BoundDevices

def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
ip("link", "add", "eth4", "mtu", "1400", "type", "veth", "peer", "name", "far")
ip("link", "set", "eth4", "multicast", "off", "up")
port = PassedPort({pci!r}, "eth2", "", {driver!r}, "", 12, "eth4", "")
with Namespace("vm") as parking:
    with BoundDevices([port], parking.pid, pathlib.Path({root!r})):
        parking.run("ip", "link", "set", "eth4", "mtu", "9000", "arp", "off")
        assert "eth4" not in ip("link")
    print(ip("-json", "link", "show", "dev", "eth4"))
"""


@pytest.mark.usefixtures("root")
def test_the_end_of_a_cable_comes_back_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interface is real, in a network namespace; the card is not."""
    fake = FakeHost(tmp_path, monkeypatch)
    for name in _FAKES:
        (tmp_path / "bin" / name).unlink()
    program = textwrap.dedent(_BINDS).format(pci=OUT, driver=DRIVER, root=str(fake.root))
    unshare = shutil.which("unshare") or "unshare"
    fake.write("dev/vfio/12", "")
    ended = subprocess.run(
        [unshare, "--net", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    (link,) = json.loads(ended.stdout)
    assert link["mtu"] == 1_400
    assert "UP" in link["flags"]
    assert not {"NOARP", "MULTICAST"} & set(link["flags"])
    assert fake.bound(OUT) == DRIVER
