"""Ports of nodes, and what passes between two of one node."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.node import Node

#: Of a shell: a function that sets ``restore`` to commands that make ports again what they are.
#: A port may be given as ``old=new``: its name now, and the one that it will have.
REMEMBER = r"""
remember() {
    restore=
    short='s/^rx-checksumming: \(o[nf]*\)$/rx \1/p
s/^tx-checksumming: \(o[nf]*\)$/tx \1/p
s/^scatter-gather: \(o[nf]*\)$/sg \1/p
s/^tcp-segmentation-offload: \(o[nf]*\)$/tso \1/p
s/^generic-segmentation-offload: \(o[nf]*\)$/gso \1/p
s/^generic-receive-offload: \(o[nf]*\)$/gro \1/p'
    for named; do
        port=${named%%=*}
        link=$(ip -o link show dev "$port") || exit 1
        mtu=${link#* mtu }; mtu=${mtu%% *}
        case $link in *NOARP*) arp=off ;; *) arp=on ;; esac
        case $link in *MULTICAST*) multicast=on ;; *) multicast=off ;; esac
        case $link in *[\<,]UP[,\>]*) state=up ;; *) state=down ;; esac
        features=$(ethtool -k "$port" 2>/dev/null | sed -n "$short" | tr '\n' ' ')
        restore="$restore
ethtool -K $port $features >/dev/null 2>&1
ip link set dev $port mtu $mtu arp $arp multicast $multicast $state"
    done
}
"""


@dataclass(frozen=True, slots=True)
class Port:
    """A network interface of a node."""

    node: Node
    name: str
    mac: str


def received(port: Port) -> int:
    """Return how many frames have come in at a port since it was made.

    Raises:
        HostError: the port is gone.

    """
    (link,) = json.loads(port.node.run("ip", "-json", "-stats", "link", "show", "dev", port.name))
    return int(link["stats64"]["rx"]["packets"])


def redirect(source: Port, target: Port) -> None:
    """Have the kernel pass everything that comes in at one port out of another of its node.

    By u32 and mirred, which every kernel has; matchall is missing from some.
    """
    node = source.node
    node.run("tc", "qdisc", "add", "dev", source.name, "ingress")
    node.run(
        *("tc", "filter", "add", "dev", source.name, "parent", "ffff:", "protocol", "all"),
        *("u32", "match", "u32", "0", "0"),
        *("action", "mirred", "egress", "redirect", "dev", target.name),
    )
