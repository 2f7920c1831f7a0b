"""Memory of a tap for packets that wait to be written.

On a machine with few cores, to fetch, compress and write them takes the CPU from the load
generator. The agent begins with it when the memory is half full, so that a run that fits into half
of it is not disturbed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.plan import Traffic

#: Memory that the agent takes by default, and the most that it is asked for, in MB.
LEAST_MB, MOST_MB = 128, 1_024
#: A tap takes this part of the memory that is available at most: two of them leave three quarters.
_PART = 8
#: Bytes that AF_PACKET (TPACKET_V3) puts before a frame, and to which it rounds up.
_HEAD, _ALIGNED = 82, 8
_FCS = 4


def held(traffic: Traffic, snap_bytes: int, megabytes: int = MOST_MB) -> int:
    """Return how many packets are held before a tap begins to write: half of its memory."""
    return (megabytes << 20) // 2 // _bytes(traffic, snap_bytes)


def wanted_mb(traffic: Traffic, snap_bytes: int, *, held: bool = True) -> int:
    """Return the memory in MB that holds all packets of a run, within limits.

    Packets that are matched while they come are not held.
    """
    if not held:
        return LEAST_MB
    packets = (traffic.packets_per_s or 0.0) * traffic.duration_s
    needed_mb = math.ceil(2 * packets * _bytes(traffic, snap_bytes) / 2**20)
    return min(max(needed_mb, LEAST_MB), MOST_MB)


def available_mb(node: Node, wanted: int) -> int:
    """Return how much of the memory that is wanted a node has."""
    if wanted <= LEAST_MB:
        return wanted
    for line in node.call("cat", "/proc/meminfo").stdout.splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return min(wanted, max(int(rest.split()[0]) // 1024 // _PART, LEAST_MB))
    return LEAST_MB


def _bytes(traffic: Traffic, snap_bytes: int) -> int:
    kept = min(snap_bytes, traffic.largest_frame - _FCS)
    return math.ceil((_HEAD + kept) / _ALIGNED) * _ALIGNED
