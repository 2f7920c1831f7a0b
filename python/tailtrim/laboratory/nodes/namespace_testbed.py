"""The testbed on one machine: each node is a network namespace, veth pairs are the fibres.

A namespace lives as long as a process in it, and that process ends with this one: nothing has a
name that could collide, and nothing is left behind, also not after kill -9.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tailtrim.laboratory.nodes import local_host, wiring, xdp
from tailtrim.laboratory.nodes.namespace import LocalHost, Namespace, link
from tailtrim.laboratory.nodes.ports import Port
from tailtrim.laboratory.nodes.testbed import Forwarding, Reflection, Testbed, kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import Facts


class LocalTestbed(Testbed):
    """The testbed of this machine."""

    def __init__(self) -> None:
        """Take what this host is before anything of it is used."""
        self._facts = local_host.facts()

    def facts(self) -> Facts:
        """Return what this host is."""
        return self._facts

    def host(self) -> LocalHost:
        """Return this host."""
        return LocalHost(known=self._facts)

    def require_departures(self, by: str) -> None:
        """Try it with the loopback of a network namespace that ends with that."""
        kept(self.host(), "lo", by, "unshare", "--net")

    def forwarding(self, folder: Path, largest_frame: int = 1_518) -> LocalForwarding:
        """Wire namespaces for packets that pass a device."""
        return LocalForwarding(folder, largest_frame, self._facts)

    def reflection(self, folder: Path, *, between: bool) -> LocalReflection:
        """Wire namespaces for round trips."""
        return LocalReflection(folder, self._facts, between=between)


class LocalForwarding(Forwarding):
    """Load generator, timestamper and device under test on this machine.

    Where there are three CPUs the taps have their own; of two, the generator lends them its one:
    what they take there makes departures late, which is recorded, and on the device's it would make
    packets late (98.7 % of a p99.9 of 2.5 ms on two cores, before).
    """

    loadgen: Namespace
    timestamper: Namespace

    def __init__(
        self,
        folder: Path,
        largest_frame: int,
        facts: Facts,
        made: Callable[..., Any] = Namespace,
    ) -> None:
        """Make the nodes, each by ``made``, and lay the fibres."""
        generating, others = local_host.share_cpus()
        capturing = others[:-1] or [generating]
        # A pair of virtual interfaces hands frames on in the sender's context.
        self.receiving = [generating]
        self._mtu = wiring.mtu(largest_frame)
        with ExitStack() as stack:

            def node(role: str, own: Sequence[int]) -> Namespace:
                one: Namespace = stack.enter_context(
                    made(role, folder, facts, cpus=own, spared=capturing)
                )
                return one

            self.loadgen = node("loadgen", [generating])
            self.timestamper = node("timestamper", capturing)
            self.tap_in = Port(self.timestamper, "a0", "02:00:00:00:01:01")
            self._to_dut = Port(self.timestamper, "a1", "02:00:00:00:01:02")
            self.tap_out = Port(self.timestamper, "b0", "02:00:00:00:01:03")
            self._lay_fibres()
            self._connect_device(stack, lambda: node("dut", others))
            self._stack = stack.pop_all()

    def aside(self) -> AbstractContextManager[None]:
        """Have this process keep to the taps' CPUs."""
        return local_host.keeping_to(self.timestamper.cpus)

    def storm(self, cpu: int) -> Port:
        """Lay one more fibre whose packets this CPU receives, and return the port that sends."""
        sends = Port(self.loadgen, "s0", "02:00:00:00:02:01")
        receives = Port(self.timestamper, "s1", "02:00:00:00:02:02")
        macs = (sends.mac, receives.mac)
        link(self.loadgen, sends.name, self.timestamper, receives.name, macs=macs, mtu=self._mtu)
        wiring.storm(sends, receives, cpu)
        return sends

    def takes_redirected(self) -> AbstractContextManager[None]:
        """Make the second tap accept what XDP redirects out of the device."""
        # A veth takes redirected frames only when its peer polls: a program makes it.
        return self.timestamper.attach_xdp(self.tap_out.name, xdp.passing())

    def stand_off(self) -> None:
        """Make Linux forget on which CPUs this process was before."""
        local_host.leave_cpus()

    def _lay_fibres(self) -> None:
        """Join load generator and timestamper, which then waits for the device's ports."""
        self.send = Port(self.loadgen, "l0", "02:00:00:00:00:01")
        self.sink = Port(self.loadgen, "l1", "02:00:00:00:00:04")
        self._to_loadgen = Port(self.timestamper, "b1", "02:00:00:00:01:04")
        for node in (self.loadgen, self.timestamper):
            wiring.without_ipv6(node)
        self._fibre(self.loadgen, self.send, self.timestamper, self.tap_in)
        self._fibre(self.timestamper, self._to_loadgen, self.loadgen, self.sink)

    def _connect_device(self, stack: ExitStack, make: Callable[[], Namespace]) -> None:
        """Make the device's node, with a fibre to each side of the timestamper."""
        del stack
        dut = make()
        self.dut = dut
        self.dut_in = Port(dut, "d0", "02:00:00:00:00:02")
        self.dut_out = Port(dut, "d1", "02:00:00:00:00:03")
        wiring.without_ipv6(dut)
        self._fibre(self.timestamper, self._to_dut, dut, self.dut_in)
        self._fibre(dut, self.dut_out, self.timestamper, self.tap_out)
        wiring.tap_inline(self, self._to_dut, self._to_loadgen)

    def _fibre(self, one: Namespace, port: Port, other: Namespace, peer: Port) -> None:
        link(one, port.name, other, peer.name, macs=(port.mac, peer.mac), mtu=self._mtu)
        for end in (port, peer):
            wiring.carry(end)


class LocalReflection(Reflection):
    """Client and reflector on this machine; what only waits is on the client's CPU."""

    def __init__(
        self,
        folder: Path,
        facts: Facts,
        *,
        between: bool,
        made: Callable[..., Any] = Namespace,
    ) -> None:
        """Make the nodes, each by ``made``, and lay the fibres."""
        asking, others = local_host.share_cpus()
        with ExitStack() as stack:

            def node(role: str, own: Sequence[int]) -> Namespace:
                one: Namespace = stack.enter_context(
                    made(role, folder, facts, cpus=own, spared=[asking])
                )
                wiring.without_ipv6(one)
                return one

            client, reflector = node("client", [asking]), node("reflector", others)
            self.client, self.reflector = client, reflector
            self.asks = Port(client, "c0", "02:00:00:00:03:01")
            self.answers = Port(reflector, "r0", "02:00:00:00:03:04")
            if between:
                middle = node("middle", ())
                near = Port(middle, "m0", "02:00:00:00:03:02")
                far = Port(middle, "m1", "02:00:00:00:03:03")
                self.between = near, far
                _cable(client, self.asks, middle, near)
                _cable(middle, far, reflector, self.answers)
            else:
                self.between = None
                _cable(client, self.asks, reflector, self.answers)
            self._stack = stack.pop_all()

    def aside(self) -> AbstractContextManager[None]:
        """Have this process keep to the client's CPU."""
        return local_host.keeping_to(self.client.cpus)


def _cable(one: Namespace, port: Port, other: Namespace, peer: Port) -> None:
    """Join two hosts as a cable does: with ARP."""
    link(one, port.name, other, peer.name, macs=(port.mac, peer.mac), mtu=wiring.MTU)
    for end in (port, peer):
        end.node.run("ip", "link", "set", "lo", "up")
        end.node.run("ip", "link", "set", end.name, "up")
