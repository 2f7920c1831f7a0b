"""Three nodes and their fibres."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from tailtrim.testbed.node import Node, link

#: The load generator's port that sends and the one that receives, and the device's two.
SEND, SINK, DUT_IN, DUT_OUT = "l0", "l1", "d0", "d1"
#: Taps: where frames come in on their way to the device, and on their way back.
TAP_IN, TAP_OUT = "a0", "b0"
_TO_DUT, _TO_LOADGEN = "a1", "b1"
_STORM, _STORMED = "s0", "s1"

#: Without them a frame arrives as it was sent: not merged, not split, with its checksum.
_OFFLOADS = ("tx", "off", "rx", "off", "sg", "off", "gso", "off", "gro", "off", "tso", "off")
#: Bytes of a frame that are not its payload: addresses, EtherType, FCS. An MTU counts the payload.
_AROUND = 18

MACS = {
    SEND: "02:00:00:00:00:01",
    DUT_IN: "02:00:00:00:00:02",
    DUT_OUT: "02:00:00:00:00:03",
    SINK: "02:00:00:00:00:04",
    TAP_IN: "02:00:00:00:01:01",
    _TO_DUT: "02:00:00:00:01:02",
    TAP_OUT: "02:00:00:00:01:03",
    _TO_LOADGEN: "02:00:00:00:01:04",
}


class Testbed:
    """Load generator, timestamper and device under test, wired up; the device does nothing yet."""

    def __init__(self, largest_frame: int = 1_518) -> None:
        """Make the nodes.

        Args:
            largest_frame: bytes of the largest frame that fibres have to carry, with FCS.

        Raises:
            HostError: this host cannot.

        """
        self._mtu = max(largest_frame - _AROUND, 1_500)
        with ExitStack() as stack:
            self.loadgen = stack.enter_context(Node("loadgen"))
            self.timestamper = stack.enter_context(Node("timestamper"))
            self.dut = stack.enter_context(Node("dut"))
            self._lay_fibres()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the testbed itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove everything."""
        self._stack.close()

    def storm(self, cpu: int) -> str:
        """Lay one more fibre whose packets this CPU receives, and return the port that sends.

        Raises:
            HostError: this host cannot.

        """
        macs = ("02:00:00:00:02:01", "02:00:00:00:02:02")
        link(self.loadgen, _STORM, self.timestamper, _STORMED, macs=macs, mtu=self._mtu)
        for node, end in ((self.loadgen, _STORM), (self.timestamper, _STORMED)):
            node.run("ip", "link", "set", end, "up", "arp", "off", "multicast", "off")
        # Receive packet steering takes a mask in words of 32 bits. /sys shows the interfaces of the
        # namespace that it was mounted in.
        words = [
            f"{(1 << cpu) >> shift & 0xFFFFFFFF:x}" for shift in range(cpu // 32 * 32, -1, -32)
        ]
        steer = f"echo {','.join(words)} > /sys/class/net/{_STORMED}/queues/rx-0/rps_cpus"
        there = f"mount -t sysfs none /sys && {steer}"
        self.timestamper.run("unshare", "--mount", "sh", "-c", there)
        return _STORM

    def _lay_fibres(self) -> None:
        for node in (self.loadgen, self.timestamper, self.dut):
            # A fibre carries what the experiment sends and nothing else.
            node.set("net/ipv6/conf/all/disable_ipv6", "1")
            node.set("net/ipv6/conf/default/disable_ipv6", "1")
        fibres = (
            (self.loadgen, SEND, self.timestamper, TAP_IN),
            (self.timestamper, _TO_DUT, self.dut, DUT_IN),
            (self.dut, DUT_OUT, self.timestamper, TAP_OUT),
            (self.timestamper, _TO_LOADGEN, self.loadgen, SINK),
        )
        for one, name, other, peer in fibres:
            link(one, name, other, peer, macs=(MACS[name], MACS[peer]), mtu=self._mtu)
            for node, end in ((one, name), (other, peer)):
                node.run("ethtool", "-K", end, *_OFFLOADS)
                node.run("ip", "link", "set", end, "up", "arp", "off", "multicast", "off")
        redirect(self.timestamper, TAP_IN, _TO_DUT)
        redirect(self.timestamper, TAP_OUT, _TO_LOADGEN)


def redirect(node: Node, source: str, target: str) -> None:
    """Have the kernel pass everything that comes in at one port out of the other.

    By u32 and mirred, which every kernel has; matchall is missing from some.
    """
    node.run("tc", "qdisc", "add", "dev", source, "ingress")
    node.run(
        *("tc", "filter", "add", "dev", source, "parent", "ffff:", "protocol", "all"),
        *("u32", "match", "u32", "0", "0"),
        *("action", "mirred", "egress", "redirect", "dev", target),
    )
