"""A wire that holds, loses, doubles and reorders frames as it is told."""

from __future__ import annotations

import heapq
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from tailtrim.laboratory.nodes.namespace import link

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.namespace import Namespace

#: ETH_P_ALL of <linux/if_ether.h>.
_ALL = 3
#: PACKET_VNET_HDR of <linux/if_packet.h>: with a frame goes what is still to be summed in it.
_SOL_PACKET, _VNET_HEADER = 263, 15
_VNET_HEADER_BYTES = 10
_FRAME = 70_000
#: Of a frame on its way there (0) or back (1): how many ns each of its copies is held.
Fate = Callable[[int, bytes], Sequence[int]]


class Wire:
    """Lies between two hosts in a node of its own, whose kernel sees none of the frames."""

    def __init__(self, node: Namespace, fate: Fate) -> None:
        self.node, self.fate = node, fate
        self.sockets: list[socket.socket] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.carry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()
        for one in self.sockets:
            one.close()

    def lay(self, *hosts: Namespace) -> None:
        """Join both hosts, whose ports are named as those of a fibre."""
        for number, host in enumerate(hosts, 1):
            macs = (f"02:00:00:00:00:0{number}", f"02:00:00:00:01:0{number}")
            port = f"end{number}"
            link(host, "veth0", self.node, port, macs=macs, mtu=1500)
            self.node.run("ip", "link", "set", port, "up")
            self.sockets.append(self.node.inside(partial(_opened, port)))
        self.thread.start()

    def carry(self) -> None:
        held: list[tuple[int, int, bytes, socket.socket]] = []
        number = 0
        while not self.over.is_set():
            now_ns = time.monotonic_ns()
            while held and held[0][0] <= now_ns:
                _, _, frame, out = heapq.heappop(held)
                out.send(frame)
            wait_s = min((held[0][0] - now_ns) / 1e9, 0.05) if held else 0.05
            for one in select.select(self.sockets, [], [], wait_s)[0]:
                frame, (_, _, kind, *_) = one.recvfrom(_FRAME)
                if kind != socket.PACKET_OUTGOING:
                    way = self.sockets.index(one)
                    now_ns, out = time.monotonic_ns(), self.sockets[1 - way]
                    for hold_ns in self.fate(way, frame[_VNET_HEADER_BYTES:]):
                        heapq.heappush(held, (now_ns + hold_ns, number, frame, out))
                        number += 1


def _opened(port: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
    raw.setsockopt(_SOL_PACKET, _VNET_HEADER, 1)
    raw.bind((port, _ALL))
    return raw
