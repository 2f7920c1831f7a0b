"""The testbed of hosts that are reached by SSH, as a testbed file describes it."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Any, Self

from tailtrim.errors import HostError, RunError
from tailtrim.nodes import cpus, wiring
from tailtrim.nodes.ports import Port
from tailtrim.nodes.ssh.node import SshNode
from tailtrim.nodes.ssh.session import Session
from tailtrim.nodes.testbed import Forwarding, Reflection, Testbed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tailtrim.nodes.description import Place, TestbedDescription
    from tailtrim.nodes.node import Facts

#: How long links may take until they carry.
_CARRIER_S = 30.0
_LOOK_S = 0.1


class HostsTestbed(Testbed):
    """Hosts that are reached by SSH.

    Args:
        description: which, and how they are wired.
        experiment: what they are reserved for.

    """

    def __init__(self, description: TestbedDescription, experiment: str) -> None:
        """Take what is known; nothing is connected yet."""
        self._description, self._experiment = description, experiment
        self._sessions: dict[str, Session] = {}
        self._facts: Facts | None = None
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
        roles = self._description.roles
        return {
            "loadgen": roles.loadgen.node,
            "timestamper": roles.timestamper.node,
            "dut": roles.dut.node,
        }

    def session(self, node: str) -> Session:
        """Return the session with a node: a new one where there is none, or it was lost.

        Raises:
            HostError: it cannot be reached, or others have it.

        """
        known = self._sessions.get(node)
        if known is not None and known.lost:
            known.close()
            known = None
        if known is None:
            address = self._description.nodes[node].ssh
            known = self._sessions[node] = Session(node, address, self._experiment)
            if known.stale is not None:
                self.notices.append(f"{node}: a stale reservation was taken: {known.stale}")
        return known

    def facts(self) -> Facts:
        """Return what the device's node is, or was when it could be reached."""
        if self._facts is None:
            self._facts = self.host().facts
        return self._facts

    def host(self) -> Session:
        """Return the device's node."""
        return self.session(self._nodes["dut"])

    def audit(self) -> dict[str, Any]:
        """Return what the agent's audit says of the device's node."""
        session = self.host()
        ended = session.as_root(session.agent, "audit", "--observe", "0", "--json")
        try:
            return dict(json.loads(ended.stdout))
        except ValueError as error:
            told = ended.stderr.strip() or f"ended with {ended.returncode}"
            raise HostError(f"{session.name}: tailtrim-agent audit: {told}") from error

    def forwarding(self, folder: Path, largest_frame: int = 1_518) -> HostsForwarding:
        """Bring the ports of the hosts into namespaces of the run."""
        sessions = {role: self.session(node) for role, node in self._nodes.items()}
        return HostsForwarding(self._description, sessions, folder, largest_frame)

    def reflection(self, folder: Path, *, between: bool) -> Reflection:
        """Refuse: round trips are for one machine so far."""
        del folder, between
        raise HostError(
            "preset reflector: only with testbed: local, on other hosts use tailtrim reflect and"
            " tailtrim ping"
        )


class HostsForwarding(Forwarding):
    """Load generator, timestamper and device under test on hosts.

    Several roles of one host are several namespaces there.
    """

    def __init__(
        self,
        description: TestbedDescription,
        sessions: Mapping[str, Session],
        folder: Path,
        largest_frame: int,
    ) -> None:
        """Bring the ports to where they are used, and make them ready."""
        used, placed = description.used(), placement(description, sessions)
        with ExitStack() as stack:

            def node(role: str) -> SshNode:
                entry = description.nodes[getattr(description.roles, role).node]
                ports = [entry.ports[name].interface for name in used[role]]
                own, spared = placed[role]
                return stack.enter_context(
                    SshNode(role, sessions[role], ports, folder, cpus=own, spared=spared)
                )

            self.loadgen, self.timestamper, self.dut = map(node, ("loadgen", "timestamper", "dut"))
            self.receiving = sorted({*self.dut.cpus, *self.dut.spared})
            self._wire(description, wiring.mtu(largest_frame))
            self._stack = stack.pop_all()

    def _wire(self, description: TestbedDescription, mtu: int) -> None:
        for node in self.nodes.values():
            wiring.without_ipv6(node)

        def ports(role: str, *names: str) -> list[Port]:
            places = description.roles.ports
            return [self._port(description, role, places[name]) for name in names]

        self.send, self.sink = ports("loadgen", "send", "sink")
        self.tap_in, self.tap_out = ports("timestamper", "tap_in", "tap_out")
        self.dut_in, self.dut_out = ports("dut", "dut_in", "dut_out")
        every = [self.send, self.sink, self.tap_in, self.tap_out, self.dut_in, self.dut_out]
        inline = description.inline
        if inline is not None:
            on = [self._port(description, "timestamper", place) for place in inline]
            every += on
        for port in every:
            port.node.run("ip", "link", "set", "dev", port.name, "mtu", str(mtu))
            wiring.carry(port)
        until_carrying(every)
        if inline is not None:
            wiring.tap_inline(self, *on)

    def _port(self, description: TestbedDescription, role: str, place: Place) -> Port:
        node, entry = self.nodes[role], description.port(place)
        (link,) = json.loads(node.run("ip", "-json", "link", "show", "dev", entry.interface))
        mac = str(link["address"])
        if entry.mac is not None and entry.mac.lower() != mac:
            told = f"the MAC address is {mac}, expected {entry.mac} (testbed file)"
            raise HostError(f"{'.'.join(place)}: {entry.interface}: {told}")
        return Port(node, entry.interface, mac)

    def __enter__(self) -> Self:
        """Return the testbed itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the namespaces up; the ports go back."""
        self._stack.close()

    def aside(self) -> AbstractContextManager[None]:
        """Leave this process alone: it runs elsewhere."""
        return nullcontext()

    def storm(self, cpu: int) -> Port:
        """Refuse: a fibre more cannot be laid."""
        del cpu
        raise HostError("disturb softirqs: only with testbed: local")

    def takes_redirected(self) -> AbstractContextManager[None]:
        """Do nothing: ports of hardware take what XDP redirects."""
        return nullcontext()

    def stand_off(self) -> None:
        """Do nothing: this process is elsewhere."""


def placement(
    description: TestbedDescription, sessions: Mapping[str, Session]
) -> dict[str, tuple[list[int], list[int]]]:
    """Return the CPUs of each role for what measures or is measured, and those for what waits.

    Roles of one node share its CPUs as those of one machine do.
    """
    roles = {role: getattr(description.roles, role).node for role in sessions}
    placed = {}
    for role, node in roles.items():
        entry, every = description.nodes[node], list(range(sessions[role].facts.cpus))
        own = every[1:] or every if entry.cpus is None else entry.cpus
        spared = every[:1] if entry.spared is None else entry.spared
        if list(roles.values()).count(node) > 1:
            generating, others = cpus.placed(own)
            capturing = others[:-1] or [generating]
            own = {"loadgen": [generating], "timestamper": capturing, "dut": others}[role]
        placed[role] = own, spared
    return placed


def until_carrying(ports: list[Port]) -> None:
    """Wait until links are up.

    Raises:
        RunError: some are not in time; says which.

    """
    waiting, until_s = list(ports), time.monotonic() + _CARRIER_S
    while waiting:
        waiting = [port for port in waiting if not wiring.carries(port)]
        if waiting and time.monotonic() > until_s:
            names = ", ".join(f"{port.node.named} {port.name}" for port in waiting)
            raise RunError(f"no link within {_CARRIER_S:g} s: {names}")
        if waiting:
            time.sleep(_LOOK_S)
