"""The testbed of hosts that are reached by SSH, as a testbed file describes it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import cable_delay, local_host, wiring
from tailtrim.laboratory.nodes.ports import Port, redirect
from tailtrim.laboratory.nodes.power_control import PowerRecovery
from tailtrim.laboratory.nodes.testbed import Forwarding, Reflection, Testbed, kept
from tailtrim.laboratory.nodes.testbed_file import SECOND_TAP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import Facts, ReservedHost
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.node_entry import NodeEntry
    from tailtrim.laboratory.nodes.testbed import Ability
    from tailtrim.laboratory.nodes.testbed_file import Place, TestbedDescription


class HostsTestbed(Testbed):
    """Hosts that are reached by SSH.

    Args:
        description: which, and how they are wired.
        experiment: what they are reserved for.

    """

    def __init__(self, description: TestbedDescription, experiment: str) -> None:
        """Take what is known; nothing is connected yet."""
        self._description, self._experiment = description, experiment
        self._sessions: dict[str, ReservedHost] = {}
        self._facts: Facts | None = None
        self._recovery = PowerRecovery()
        self.notices: list[str] = []

    def __enter__(self) -> Self:
        """Reserve all nodes."""
        try:
            for node in sorted(self._nodes.values()):
                self.session(node)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Give them up."""
        for session in self._sessions.values():
            session.close()
        self._sessions = {}

    @property
    def _nodes(self) -> dict[str, str]:
        return self._description.roles_of_nodes

    def session(self, node: str) -> ReservedHost:
        """Return the session with a node: a new one where there is none, or it was lost.

        Raises:
            HostError: it cannot be reached, or others have it.

        """
        known = self._sessions.get(node)
        if known is not None and known.lost:
            known.close()
            known = None
        if known is None:
            entry = self._description.nodes[node]
            known = self._sessions[node] = entry.reserve(node, self._experiment)
            if known.stale is not None:
                self.notices.append(f"{node}: a stale reservation was taken: {known.stale}")
        return known

    def session_after_boot(self, node: str) -> ReservedHost:
        """Return a new session with a node that was booted: what it had is gone.

        Raises:
            HostError: it cannot be reached, or others have it.

        """
        known = self._sessions.pop(node, None)
        if known is not None:
            known.close()
        return self.session(node)

    def revive(self, told: Callable[[str], None]) -> str | None:
        """Cycle the power of hosts that have died, once each, where the testbed file allows it."""
        revived = []
        for node in sorted({*self._nodes.values()}):
            session, entry = self._sessions.get(node), self._description.nodes[node]
            if (session is not None and not session.lost) or entry.answers(node):
                continue
            try:
                revived.append(self._recovery.recover(node, entry, told))
            except HostError as error:
                self.gone = str(error)
                return None
        return "; ".join(revived) or None

    @property
    def device(self) -> str:
        """The name of the device's node."""
        return self._nodes["dut"]

    def entry(self) -> NodeEntry:
        """Return what the testbed file says of the device's node."""
        return self._description.nodes[self.device]

    def facts(self) -> Facts:
        """Return what the device's node is, or was when it could be reached."""
        if self._facts is None:
            self._facts = self.host().facts
        return self._facts

    def host(self) -> ReservedHost:
        """Return the device's node."""
        return self.session(self.device)

    def require_departures(self, by: str) -> None:
        """Try it with the port, before a run has it."""
        kept(self.session(self._nodes["loadgen"]), self._description.interfaces("loadgen")[0], by)

    def forwarding(self, folder: Path, largest_frame: int = 1_518) -> HostsForwarding:
        """Bring the ports of the hosts into namespaces of the run."""
        return HostsForwarding(self._description, self._by_role(), folder, largest_frame)

    @property
    def lacks(self) -> dict[Ability, str]:
        """Abilities that these hosts lack, and why."""
        return lacks(self._description)

    def reflection(self, folder: Path, *, between: bool) -> HostsReflection:
        """Bring the ports between load generator and device into namespaces of the run."""
        return HostsReflection(self._description, self._by_role(), folder, between=between)

    def _by_role(self) -> dict[str, ReservedHost]:
        return {role: self.session(node) for role, node in self._nodes.items()}


def lacks(description: TestbedDescription) -> dict[Ability, str]:
    """Return what hosts cannot do, and why."""
    found: dict[Ability, str] = {
        "xdp": "preset xdp: only with testbed: local: the program is loaded by this process,"
        " which is not on the host"
    }
    if description.inline is None:
        found["between"] = (
            "preset reflector: a path other than direct needs a timestamper that is inline, which"
            " is the node between client and reflector"
        )
    return found


class HostsForwarding(Forwarding):
    """Load generator, timestamper and device under test on hosts.

    Several roles of one host are several namespaces there.
    """

    def __init__(
        self,
        description: TestbedDescription,
        hosts: Mapping[str, ReservedHost],
        folder: Path,
        largest_frame: int,
    ) -> None:
        """Bring the ports to where they are used, and make them ready."""
        placed = placement(description, {role: one.facts for role, one in hosts.items()})
        with ExitStack() as stack:

            def node(role: str) -> Node:
                own, spared = placed[role]
                ports = description.interfaces(role)
                return stack.enter_context(
                    hosts[role].node(role, ports, folder, cpus=own, spared=spared)
                )

            self.loadgen, self.timestamper, self.dut = map(node, ("loadgen", "timestamper", "dut"))
            two = SECOND_TAP in description.roles_of_nodes
            self.second_tap = node(SECOND_TAP) if two else self.timestamper
            self.receiving = sorted({*self.dut.cpus, *self.dut.spared})
            self.captures, self.correction = (
                description.captures,
                cable_delay.correction(description),
            )
            self._mtu = wiring.mtu(largest_frame)
            self._wire(description, self._mtu)
            self._stack = stack.pop_all()

    def _wire(self, description: TestbedDescription, mtu: int) -> None:
        for node in (self.loadgen, self.timestamper, self.second_tap, self.dut):
            wiring.without_ipv6(node)

        def ports(node: Node, *names: str) -> list[Port]:
            places = description.roles.ports
            return [_port(description, node, places[name]) for name in names]

        self.send, self.sink = ports(self.loadgen, "send", "sink")
        (self.tap_in,) = ports(self.timestamper, "tap_in")
        (self.tap_out,) = ports(self.second_tap, "tap_out")
        self.dut_in, self.dut_out = ports(self.dut, "dut_in", "dut_out")
        every = [self.send, self.sink, self.tap_in, self.tap_out, self.dut_in, self.dut_out]
        inline = description.inline
        if inline is not None:
            through = zip((self.timestamper, self.second_tap), inline, strict=True)
            on = [_port(description, node, place) for node, place in through]
            every += on
        for port in every:
            port.node.run("ip", "link", "set", "dev", port.name, "mtu", str(mtu))
            wiring.carry(port)
        wiring.until_carrying(every)
        if inline is not None:
            wiring.tap_inline(self, *on)

    def storm(self, cpu: int) -> Port:
        """Lay a virtual fibre from the device's host to itself, and return the port that sends."""
        dut = self.dut
        sends = Port(dut, "s0", "02:00:00:00:02:01")
        receives = Port(dut, "s1", "02:00:00:00:02:02")
        dut.run(
            *("ip", "link", "add", sends.name, "address", sends.mac, "mtu", str(self._mtu)),
            *("type", "veth", "peer", "name", receives.name, "address", receives.mac),
            *("mtu", str(self._mtu)),
        )
        wiring.storm(sends, receives, cpu)
        return sends


class HostsReflection(Reflection):
    """Client and reflector on the hosts of load generator and device.

    The timestamper, where it is inline, is the node between them; without one it passes on what
    comes in, as a fibre would.
    """

    def __init__(
        self,
        description: TestbedDescription,
        hosts: Mapping[str, ReservedHost],
        folder: Path,
        *,
        between: bool,
    ) -> None:
        """Bring the ports to where they are used, and make them ready."""
        places, inline = description.roles.ports, description.inline
        placed = placement(description, {role: one.facts for role, one in hosts.items()})
        with ExitStack() as stack:

            def node(role: str, of: str, *at: Place) -> list[Port]:
                ports = [description.port(place).interface for place in at]
                own, spared = placed[of]
                one = stack.enter_context(
                    hosts[of].node(role, ports, folder, cpus=own, spared=spared)
                )
                wiring.without_ipv6(one)
                one.run("ip", "link", "set", "lo", "up")
                return [_port(description, one, place) for place in at]

            (self.asks,) = node("client", "loadgen", places["send"])
            (self.answers,) = node("reflector", "dut", places["dut_in"])
            self.client, self.reflector = self.asks.node, self.answers.node
            ends = [self.asks, self.answers]
            if inline is not None:
                near, far = node("middle", "timestamper", places["tap_in"], inline.to_dut)
                ends += [near, far]
                self.between = (near, far) if between else None
                if not between:
                    redirect(near, far)
                    redirect(far, near)
            elif between:
                raise HostError("no node is between client and reflector")
            else:
                self.between = None
            for end in ends:
                end.node.run("ip", "link", "set", end.name, "mtu", str(wiring.MTU), "up")
            wiring.until_carrying(ends)
            self.one_clock = self.client.host_name == self.reflector.host_name
            self._stack = stack.pop_all()


def placement(
    description: TestbedDescription, facts: Mapping[str, Facts]
) -> dict[str, tuple[list[int], list[int]]]:
    """Return the CPUs of each role for what measures or is measured, and those for what waits.

    Roles of one node share its CPUs as those of one machine do.
    """
    roles = {role: node for role, node in description.roles_of_nodes.items() if role in facts}
    placed = {}
    for role, node in roles.items():
        entry, every = description.nodes[node], list(range(facts[role].cpus))
        own = every[1:] or every if entry.cpus is None else entry.cpus
        spared = every[:1] if entry.spared is None else entry.spared
        if list(roles.values()).count(node) > 1:
            generating, others = local_host.share_cpus(own)
            capturing = others[:-1] or [generating]
            own = {"loadgen": [generating], "dut": others}.get(role, capturing)
        placed[role] = own, spared
    return placed


def _port(description: TestbedDescription, node: Node, place: Place) -> Port:
    entry = description.port(place)
    (link,) = json.loads(node.run("ip", "-json", "link", "show", "dev", entry.interface))
    mac = str(link["address"])
    if entry.mac is not None and entry.mac.lower() != mac:
        told = f"the MAC address is {mac}, expected {entry.mac} (testbed file)"
        raise HostError(f"{'.'.join(place)}: {entry.interface}: {told}")
    return Port(node, entry.interface, mac)
