"""Cables between local nodes: pairs of virtual interfaces, with the names that the folder uses.

By default each two nodes of an allocation have two cables, and the ports of each node are eth1,
eth2, … in the order of the allocation.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError
from tailtrim.laboratory.nodes import wiring
from tailtrim.laboratory.nodes.namespace import link

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tailtrim_pos.local_node import LocalNode

_BY_DEFAULT = 2
_END = re.compile(r"([A-Za-z0-9_.-]+):([A-Za-z0-9_.-]{1,15})")
#: Of all ports: for frames of 9,018 bytes.
MTU = wiring.mtu(9_018)
_OFFLOADS = ("tx", "rx", "sg", "gso", "gro", "tso")


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable."""

    node: str
    port: str


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable; ``number`` gives its ends their MAC addresses."""

    number: int
    one: End
    other: End

    def mac(self, end: End) -> str:
        """Return the MAC address of an end: locally administered, the same each time."""
        high, low = divmod(self.number, 256)
        return f"02:00:00:{high:02x}:{low:02x}:{1 if end == self.one else 2:02x}"

    def joins(self, node: str) -> bool:
        """Whether an end is a node's."""
        return node in {self.one.node, self.other.node}


def cables_of(given: Sequence[str]) -> list[Cable]:
    """Return the cables that a user wrote as ``NODE:PORT=NODE:PORT``.

    Raises:
        PlanError: one is not written like that, or a port has two cables.

    """
    cables = []
    for number, text in enumerate(given, 1):
        ends = [_END.fullmatch(end) for end in text.split("=")]
        if len(ends) != 2 or None in ends:  # noqa: PLR2004 - a cable has two ends
            raise PlanError(f"cable {text!r}: expected NODE:PORT=NODE:PORT, such as a:eth1=b:eth1")
        one, other = (End(*found.groups()) for found in ends if found)
        cables.append(Cable(number, one, other))
    ends_of = [end for cable in cables for end in (cable.one, cable.other)]
    for end in ends_of:
        if ends_of.count(end) > 1:
            raise PlanError(f"cable: {end.node}:{end.port} has two cables")
    return cables


def usual(nodes: Iterable[str]) -> list[Cable]:
    """Return the cables between nodes for which none are given."""
    ports: dict[str, int] = {}

    def end(node: str) -> End:
        ports[node] = ports.get(node, 0) + 1
        return End(node, f"eth{ports[node]}")

    pairs = itertools.combinations(nodes, 2)
    both = itertools.chain.from_iterable(itertools.repeat(pair, _BY_DEFAULT) for pair in pairs)
    return [Cable(number, end(one), end(other)) for number, (one, other) in enumerate(both, 1)]


def connect(cables: Iterable[Cable], nodes: Mapping[str, LocalNode], new: str) -> None:
    """Lay the cables of a node that was booted to those that are there.

    Ports pass frames as they are, and are down, as after a boot.
    """
    for cable in cables:
        if not cable.joins(new) or not {cable.one.node, cable.other.node} <= nodes.keys():
            continue
        one, other = (nodes[end.node].network for end in (cable.one, cable.other))
        macs = [cable.mac(end) for end in (cable.one, cable.other)]
        link(one, cable.one.port, other, cable.other.port, macs=macs, mtu=MTU)
        for network, end in ((one, cable.one), (other, cable.other)):
            words = [word for offload in _OFFLOADS for word in (offload, "off")]
            network.run("ethtool", "-K", end.port, *words)


def moved(cables: Iterable[Cable], old: LocalNode, new: LocalNode) -> None:
    """Plug the cables of a node into the one that was booted in its place; the others keep theirs.

    The kernel takes addresses, queues and filters of a port away on the way.
    """
    for cable in cables:
        for end in (cable.one, cable.other):
            if (
                end.node == old.name
                and old.network.call("ip", "link", "show", end.port).returncode == 0
            ):
                old.network.run("ip", "link", "set", end.port, "down")
                old.network.run("ip", "link", "set", end.port, "netns", str(new.network.pid))


def topology(cables: Iterable[Cable], node: str) -> list[dict[str, str]]:
    """Return what a node's ports are cabled to."""
    rows = []
    for cable in cables:
        for end, far in ((cable.one, cable.other), (cable.other, cable.one)):
            if end.node == node:
                mac = cable.mac(end)
                peer = {"peer": far.node, "peer_port": far.port}
                rows.append({"port": end.port, "mac": mac} | peer)
    return rows
