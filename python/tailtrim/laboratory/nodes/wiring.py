"""Ports made to carry what an experiment sends, and nothing else; the timestamper between them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.ports import redirect
from tailtrim.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: For :func:`storm`.
MOUNT = Tool("mount", "mount")
#: The MTU that every port has at least.
MTU = 1_500
#: Bytes of a frame that are not its payload: addresses, EtherType, FCS. An MTU counts the payload.
_AROUND = 18
#: Without them a frame arrives as it was sent: not merged, not split, with its checksum.
_OFFLOADS = ("tx", "rx", "sg", "gso", "gro", "tso")
#: Time for links to come up.
_CARRIER_S = 30.0
_LOOK_S = 0.1


def mtu(largest_frame: int) -> int:
    """Return the MTU for frames of this size, with FCS."""
    return max(largest_frame - _AROUND, MTU)


def without_ipv6(node: Node) -> None:
    """Have a node say nothing of its own: a fibre carries what the experiment sends."""
    node.set("net/ipv6/conf/all/disable_ipv6", "1")
    node.set("net/ipv6/conf/default/disable_ipv6", "1")


def carry(port: Port) -> None:
    """Have a port pass frames as they are, and take it up."""
    words = [word for offload in _OFFLOADS for word in (offload, "off")]
    port.node.run("ethtool", "-K", port.name, *words)
    up(port)


def carries(port: Port) -> bool:
    """Whether a port has a link."""
    (link,) = json.loads(port.node.run("ip", "-json", "link", "show", "dev", port.name))
    return "LOWER_UP" in link["flags"]


def until_carrying(ports: Sequence[Port]) -> None:
    """Wait until links are up.

    Raises:
        RunError: some are not in time; says which.

    """
    waiting, until_s = list(ports), time.monotonic() + _CARRIER_S
    while waiting:
        waiting = [port for port in waiting if not carries(port)]
        if waiting and time.monotonic() > until_s:
            names = ", ".join(f"{port.node.named} {port.name}" for port in waiting)
            raise RunError(f"no link within {_CARRIER_S:g} s: {names}")
        if waiting:
            time.sleep(_LOOK_S)


def up(port: Port) -> None:
    """Take a port up; it sends nothing of its own."""
    port.node.run("ip", "link", "set", port.name, "up", "arp", "off", "multicast", "off")


def storm(sends: Port, receives: Port, cpu: int) -> None:
    """Have this CPU handle what one end of a cable receives from the other."""
    for end in (sends, receives):
        up(end)
    # Receive packet steering takes a mask in words of 32 bits. /sys shows the interfaces of the
    # namespace that it was mounted in.
    words = [f"{(1 << cpu) >> shift & 0xFFFFFFFF:x}" for shift in range(cpu // 32 * 32, -1, -32)]
    steer = f"echo {','.join(words)} > /sys/class/net/{receives.name}/queues/rx-0/rps_cpus"
    there = f"mount -t sysfs none /sys && {steer}"
    receives.node.require(MOUNT)
    receives.node.run("unshare", "--mount", "sh", "-c", there)


def tap_inline(at: Forwarding, to_dut: Port, to_loadgen: Port) -> None:
    """Have the timestamper pass what comes to each of its taps.

    Args:
        at: where.
        to_dut: its port that is cabled to the device's ``dut_in``.
        to_loadgen: its port that is cabled to the load generator's ``sink``.

    """
    redirect(at.tap_in, to_dut)
    redirect(at.tap_out, to_loadgen)
