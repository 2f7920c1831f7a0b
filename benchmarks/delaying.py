"""Forwards frames between two interfaces both ways, each later by a Pareto-distributed time.

    python benchmarks/delaying.py PORT PORT LEAST_MS EXPONENT

For kernels without netem, and some dozens of frames a second. Frames may overtake each other.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import sys
import time

ALL_PROTOCOLS = 3
OUTGOING = 4


def main() -> None:
    """Forward without end."""
    names, least_s, exponent = sys.argv[1:3], float(sys.argv[3]) / 1e3, float(sys.argv[4])
    ports = []
    for name in names:
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        port.bind((name, ALL_PROTOCOLS))
        ports.append(port)
    number, waiting = 0, list[tuple[float, int, socket.socket, bytes]]()
    while True:
        left_s = waiting[0][0] - time.monotonic() if waiting else None
        ready = select.select(ports, [], [], None if left_s is None else max(left_s, 0.0))[0]
        for port in ready:
            frame, (*_, kind, _, _) = port.recvfrom(65_535)
            if kind == OUTGOING:
                continue
            other = ports[1 - ports.index(port)]
            number += 1
            delay_s = least_s * random.paretovariate(exponent)
            heapq.heappush(waiting, (time.monotonic() + delay_s, number, other, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, port, frame = heapq.heappop(waiting)
            port.send(frame)


if __name__ == "__main__":
    main()
