"""The kernel's bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tailtrim.laboratory.devices.device import InlineDevice

if TYPE_CHECKING:
    from contextlib import ExitStack

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding


class Bridge(InlineDevice):
    """The kernel's bridge."""

    preset: Literal["bridge"]

    def start(self, at: Forwarding, ip: int, stack: ExitStack) -> None:
        """Join the device's ports."""
        join(at.dut_in, at.dut_out)


def join(one: Port, other: Port) -> None:
    """Join two ports of a node by a bridge that says nothing itself."""
    bridge(one.node, "br0", one.name, other.name)


def bridge(node: Node, name: str, *ports: str) -> None:
    """Join interfaces of a node by a bridge of this name that says nothing itself."""
    node.run("ip", "link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0")
    for port in ports:
        node.run("ip", "link", "set", port, "master", name)
    node.run("ip", "link", "set", name, "up", "arp", "off", "multicast", "off")
