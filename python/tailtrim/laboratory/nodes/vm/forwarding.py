"""Packets pass a device in a guest, between load generator and taps of this machine."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes import wiring
from tailtrim.laboratory.nodes.namespace_testbed import LocalForwarding
from tailtrim.laboratory.nodes.ports import Port
from tailtrim.laboratory.nodes.ssh.node import SshNode
from tailtrim.laboratory.nodes.vm.guest import PORTS
from tailtrim.laboratory.nodes.vm.machine import GuestPort, Wired
from tailtrim.laboratory.nodes.vm.pci import PassedPort

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from tailtrim.laboratory.nodes.host import Facts
    from tailtrim.laboratory.nodes.namespace import Namespace
    from tailtrim.laboratory.nodes.vm.guest import Guest
    from tailtrim.tool import Tool


# Each process takes a tenth of a second on an emulated CPU.
_MAKE = """
exec 7</proc/self/ns/net
exec unshare --net -- sh -c '
for port; do echo "link set $port netns $$"; done |
    nsenter --net=/proc/self/fd/7 -- ip -batch - && echo $$ && exec cat >/dev/null' sh "$@"
"""


class GuestNode(SshNode):
    """A network namespace in a guest, of which nothing has to be as it was afterwards."""

    def _making(self, ports: Sequence[str]) -> tuple[str, ...]:
        return ("sh", "-c", _MAKE, "sh", *ports)

    def require(self, *tools: Tool) -> None:
        """Make sure that tools are there."""
        try:
            super().require(*tools)
        except HostError as error:
            error.add_note("vm.packages of the plan names packages of the virtual machine")
            raise


class GuestForwarding(LocalForwarding):
    """The testbed of this machine with a guest as the device's node.

    Each run has a network namespace in the guest, so that the next one finds it as it has booted.
    The timestamper's ports to the device are the taps of the guest's ports, or the interfaces of
    this host that they are cabled to.
    """

    def __init__(self, guest: Guest, folder: Path, largest_frame: int, facts: Facts) -> None:
        """Make the nodes and lay the fibres."""
        self._guest, self._folder = guest, folder
        super().__init__(folder, largest_frame, facts)

    def _connect_device(self, stack: ExitStack, make: Callable[[], Namespace]) -> None:
        del make
        guest, timestamper = self._guest, self.timestamper
        into, out = guest.ports.values()
        self._to_dut, self.tap_out = _end(self._to_dut, into), _end(self.tap_out, out)
        names = (self._to_dut.name, self.tap_out.name)
        stack.callback(self._unplug, names)
        guest.plug(timestamper, names)
        for end, port in zip((self._to_dut, self.tap_out), (into, out), strict=True):
            if isinstance(port, Wired):
                timestamper.run("ip", "link", "set", end.name, "address", end.mac)
        cpus = list(range(guest.record["cpus"]))
        dut = stack.enter_context(
            GuestNode("dut", guest.session, list(PORTS), self._folder, cpus=cpus, spared=cpus[:1])
        )
        self.dut = dut
        self.dut_in, self.dut_out = (Port(dut, name, one.mac) for name, one in guest.ports.items())
        #: The guest's CPUs: which one an interrupt goes to is up to its kernel.
        self.receiving = cpus
        for end in (self._to_dut, self.tap_out):
            timestamper.run("ip", "link", "set", end.name, "mtu", str(self._mtu))
            wiring.carry(end)
        dut.run("sh", "-c", _SET_UP, "sh", str(self._mtu), *PORTS)
        self._await_cables()
        wiring.tap_inline(self, self._to_dut, self._to_loadgen)

    def _await_cables(self) -> None:
        """Make ports that are passed through pass frames as they are, and wait for their links."""
        ends = zip(
            self._guest.ports.values(),
            (self.dut_in, self.dut_out),
            (self._to_dut, self.tap_out),
            strict=True,
        )
        for port, inside, outside in ends:
            if isinstance(port, PassedPort):
                wiring.carry(inside)
                wiring.until_carrying((inside, outside))

    def _unplug(self, names: tuple[str, str]) -> None:
        # A guest without its ports is not used again.
        with suppress(HostError):
            self._guest.unplug(self.timestamper, names)

    def storm(self, cpu: int) -> Port:
        """Refuse: what disturbs a CPU of the guest has to be in it."""
        raise HostError(f"dut: CPU {cpu} of a virtual machine cannot be sent packets for itself")


def _end(usual: Port, port: GuestPort) -> Port:
    """Return the timestamper's port to one of the guest: the usual one is a tap."""
    return usual if isinstance(port, Wired) else Port(usual.node, port.cable, port.cable_mac)


# One command: each one takes long on an emulated CPU.
_SET_UP = """
mtu=$1; shift
for where in all default; do
    [ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/$where/disable_ipv6
done
for port; do
    echo "link set $port mtu $mtu up arp off multicast off"
done | ip -batch -
"""
