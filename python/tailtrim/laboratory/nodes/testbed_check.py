"""Check of a testbed file against its hosts: :func:`examine`.

Each node is reached and looked at alone; if all is well with all of them, a frame is sent through
each cable, both ways, and looked for at every port, so that swapped cables are told as such.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tailtrim.errors import HostError, RunError, TailtrimError
from tailtrim.laboratory.nodes import clocks, environment, wiring
from tailtrim.laboratory.nodes.meters.meter import watts
from tailtrim.laboratory.nodes.namespace import TOOLS
from tailtrim.laboratory.nodes.ports import Port
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tailtrim.laboratory.nodes.host import ReservedHost
    from tailtrim.laboratory.nodes.node import Frames
    from tailtrim.laboratory.nodes.node_entry import NodeEntry
    from tailtrim.laboratory.nodes.testbed_file import Place, TestbedDescription

#: Tools of every node.
NEEDED = (*TOOLS, Tool("flock", "util-linux"), Tool("setsid", "util-linux"), Tool("gzip", "gzip"))
_EXPERIMENT = "testbed check"
_CARRIER_S, _ARRIVAL_S = 15.0, 1.0
#: For local experiments (IEEE 802).
_ETHERTYPE = b"\x88\xb5"
_EVERYBODY = b"\xff" * 6


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: a fault, a note, or that all is well (``good``)."""

    kind: Literal["fault", "note", "good"]
    where: str
    what: str
    expected: str = ""
    remedy: str = ""


def examine(
    description: TestbedDescription,
    told: Callable[[str], None],
    more: Callable[[Mapping[str, ReservedHost]], Iterable[Finding]] | None = None,
) -> list[Finding]:
    """Return what was found on the hosts of a testbed.

    Args:
        description: what its file says.
        told: is called with what is being done.
        more: what else is to be looked at on the hosts, by their names.

    """
    found: list[Finding] = []
    with ExitStack() as stack:
        hosts: dict[str, ReservedHost] = {}
        for name, entry in description.nodes.items():
            told(f"{name}: connecting")
            found += _power(name, entry)
            host = _reached(name, entry, found, stack)
            if host is not None:
                hosts[name] = host
                found += _node(host, entry)
                found += _meter(host, entry)
        found += _clocks(description, hosts)
        found += more(hosts) if more is not None else ()
        if any(one.kind == "fault" for one in found):
            told("cables are not tried before these faults are corrected")
            return found
        told("sending frames through the cables")
        found += _cables(description, hosts, stack)
    return found


def clean(description: TestbedDescription) -> list[Finding]:
    """Remove from the hosts what was copied there, and reservations that are stale.

    A host that is in use is left alone.
    """
    found = []
    for name, entry in description.nodes.items():
        try:
            entry.free(name, copies=True)
            found.append(Finding("good", name, "is clean"))
        except TailtrimError as error:
            found.append(_fault(name, error))
    return found


def _reached(
    name: str, entry: NodeEntry, found: list[Finding], stack: ExitStack
) -> ReservedHost | None:
    """Return a host with a node; where there can be none, that is found."""
    try:
        host = entry.reserve(name, _EXPERIMENT)
        stack.callback(host.close)
        notes = list(host.notes())
    except TailtrimError as error:
        found.append(_fault(name, error))
        return None
    found.append(Finding("good", name, f"reached as {host.login}, Linux {host.facts.kernel}"))
    found += (Finding("note", name, what, "", remedy) for what, remedy in notes)
    return host


def _power(name: str, entry: NodeEntry) -> Iterator[Finding]:
    """Read the state of a node's power; a person is not asked for a check."""
    if entry.power is None:
        return
    if entry.power.asks_a_person:
        yield Finding("note", name, f"its power is switched by a {entry.power.place}: not tried")
        return
    try:
        yield Finding("good", name, f"its power is {entry.power.state()} ({entry.power.place})")
    except TailtrimError as error:
        yield _fault(name, error)


def _meter(host: ReservedHost, entry: NodeEntry) -> Iterator[Finding]:
    """Read a node's meter once."""
    meter = entry.meter
    if meter is None:
        return
    try:
        power_w = watts(meter, entry.starting(host))
    except TailtrimError as error:
        yield _fault(host.role, error)
        return
    yield Finding("good", host.role, f"its meter tells {power_w:,.1f} W ({meter.place})")
    if meter.accuracy_percent is None:
        what = "its meter has no accuracy_percent: uncertainties do not contain its own error"
        yield Finding("note", host.role, what, "", "see its data sheet")


def _node(host: ReservedHost, entry: NodeEntry) -> Iterator[Finding]:
    try:
        for tool in NEEDED:
            if host.find(tool) is None:
                what = f"{tool.program} is not installed"
                yield Finding("fault", host.role, what, tool.source, "install it there")
        for name, port in entry.ports.items():
            yield from _port(host, f"{host.role}.{name}", port.interface, port.mac, port.pci)
        cpus = range(host.facts.cpus)
        for key, wanted in (("cpus", entry.cpus), ("spared", entry.spared)):
            absent = [cpu for cpu in wanted or () if cpu not in cpus]
            if absent:
                what = f"{key}: CPU {', '.join(map(str, absent))} is not there"
                yield Finding("fault", host.role, what, f"CPUs 0 to {cpus[-1]}")
    except RunError as error:
        yield _fault(host.role, error)


def _port(
    host: ReservedHost, where: str, interface: str, mac: str | None, pci: str | None
) -> Iterator[Finding]:
    ended = host.call("ip", "-json", "address", "show", "dev", interface)
    if ended.returncode != 0:
        yield Finding("fault", where, f"there is no interface {interface}", "", "ip link")
        return
    link: dict[str, Any] = json.loads(ended.stdout)[0]
    if mac is not None and link["address"].lower() != mac.lower():
        what = f"{interface} has the MAC address {link['address']}"
        yield Finding("fault", where, what, mac, "correct the testbed file, or the interface")
    addresses = [f"{one['local']}" for one in link.get("addr_info", ()) if one["scope"] == "global"]
    if host.control_address in addresses:
        what = f"{interface} is the way to this host by SSH, which would be cut"
        yield Finding("fault", where, what, "a port for tests only", "name another interface")
    elif addresses:
        what = f"{interface} has addresses, which are lost: {', '.join(addresses)}"
        yield Finding("note", where, what, "", "name another interface if others need them")
    if pci is not None:
        place = host.call("readlink", f"/sys/class/net/{interface}/device").stdout.strip()
        if not place.endswith(pci):
            what = f"{interface} has the PCI address {place.rpartition('/')[2] or 'none'}"
            yield Finding("fault", where, what, pci, "correct the testbed file")


def _clocks(description: TestbedDescription, hosts: dict[str, ReservedHost]) -> Iterator[Finding]:
    ports = description.roles.ports
    taps = [ports["tap_in"], ports["tap_out"]]
    if any(node not in hosts for node, _ in taps):
        return
    if taps[0][0] != taps[1][0]:
        yield _two_hosts(*(hosts[node] for node, _ in taps))
        return
    tap_in, tap_out = (
        environment.clock_of(
            hosts[place[0]].call("ethtool", "-T", description.port(place).interface).stdout
        )
        for place in taps
    )
    yield clock_finding(taps[0][0], tap_in, tap_out)


def _two_hosts(one: ReservedHost, other: ReservedHost) -> Finding:
    near, far = (clocks.parsed(side.call("sh", "-c", clocks.ASK).stdout) for side in (one, other))
    where = f"{one.role} and {other.role}"
    by_nic, by_kernel = (clocks.difference(near, far, by) for by in (clocks.BY_NIC, "kernel"))
    found = by_nic if by_nic.ns is not None else by_kernel
    if found.ns is None:
        told = f"two clocks, and how far they are apart is not known: {found.why}"
        remedy = "put both taps on one host, or run ptp4l or chronyd on both"
        return Finding("fault", where, told, "a bound", remedy)
    return Finding("note", where, f"two clocks, at most {found.ns:,} ns apart ({found.why})")


def clock_finding(node: str, tap_in: str | None, tap_out: str | None) -> Finding:
    """Return what is to say of the clocks of two taps."""
    if tap_in is None and tap_out is None:
        return Finding("good", node, "both taps are stamped by the kernel: one clock")
    if tap_in == tap_out:
        return Finding("good", node, f"both taps have the clock {tap_in}")
    told = f"two clocks: tap_in has {tap_in or 'none'}, tap_out has {tap_out or 'none'}"
    return Finding(
        "fault",
        node,
        told,
        "two ports of one NIC, or of two without clocks",
        "use two ports of one NIC; stamps of two clocks cannot be compared",
    )


def _fault(where: str, error: TailtrimError) -> Finding:
    what = str(error).removeprefix(f"{where}: ")
    return Finding("fault", where, what, "", "; ".join(getattr(error, "__notes__", ())))


def _cables(
    description: TestbedDescription, hosts: dict[str, ReservedHost], stack: ExitStack
) -> Iterator[Finding]:
    """Send a frame from each end of each cable, and say where it arrived."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    ports: dict[Place, Port] = {}
    try:
        for name, entry in description.nodes.items():
            interfaces = [port.interface for port in entry.ports.values()]
            node = stack.enter_context(hosts[name].node(name, interfaces, folder))
            wiring.without_ipv6(node)
            for port, told in entry.ports.items():
                ports[name, port] = Port(node, told.interface, told.mac or "")
                wiring.up(ports[name, port])
    except (HostError, RunError) as error:
        yield _fault("cables", error)
        return
    down = _down(ports)
    for place in down:
        what = f"{ports[place].name} is down: no carrier within {_CARRIER_S:g} s"
        yield Finding("fault", ".".join(place), what, "a link", "check the cable and its far end")
    up = {place: port for place, port in ports.items() if place not in down}
    opened = {place: stack.enter_context(port.node.frames(port.name)) for place, port in up.items()}
    roles = description.roles.ports
    # Frames of the other direction may be copied, too.
    taps = [] if description.inline else [roles["tap_in"], roles["tap_out"]]
    copies = {} if not taps else {roles["send"]: taps[:1], roles["dut_out"]: taps[1:]}
    for one, other in description.cables:
        for sender, receiver in ((one, other), (other, one)):
            if sender in opened and receiver in opened:
                copied = copies.get(sender, [])
                yield _sent(sender, [receiver, *copied], opened, set(taps))


def _down(ports: dict[Place, Port]) -> list[Place]:
    waiting, until_s = list(ports), time.monotonic() + _CARRIER_S
    while waiting and time.monotonic() < until_s:
        waiting = [place for place in waiting if not wiring.carries(ports[place])]
        time.sleep(0 if not waiting else 0.1)
    return waiting


def _sent(
    sender: Place, expected: list[Place], opened: dict[Place, Frames], taps: set[Place]
) -> Finding:
    payload = uuid.uuid4().bytes
    opened[sender].send(_EVERYBODY + b"\x02\0\0\0\0\x01" + _ETHERTYPE + payload.ljust(46, b"\0"))
    until_s = time.monotonic() + _ARRIVAL_S
    seen: set[Place] = set()
    while time.monotonic() < until_s and not seen.issuperset(expected):
        for place, frames in opened.items():
            while (frame := frames.receive(0.005)) is not None:
                if payload in frame:
                    seen.add(place)
    name, far = ".".join(sender), _told(expected)
    if seen.issuperset(expected) and seen - taps <= set(expected):
        return Finding("good", name, f"its frames arrive at {far}")
    arrived = f"arrived at {_told(sorted(seen))}" if seen else "arrived nowhere"
    remedy = "swap the cables, or correct the testbed file"
    return Finding("fault", name, f"a frame sent there {arrived}", far, remedy)


def _told(places: list[Place]) -> str:
    return " and ".join(map(".".join, places))
