"""The taps of a run: they capture the packets that pass them, on one node or two.

Packets that wait to be written are in memory. On a machine with few cores, to fetch, compress and
write them takes the CPU from the load generator. The agent begins with it when the memory is half
full, so that a run that fits into half of it is not disturbed.
"""

from __future__ import annotations

import json
import math
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from tailtrim import units
from tailtrim.errors import RunError
from tailtrim.laboratory.experiment.matching import TAPS
from tailtrim.laboratory.nodes.agent import Agent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.laboratory.experiment.context import InlineRunContext
    from tailtrim.laboratory.nodes.node import Node
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding
    from tailtrim.laboratory.plan import Traffic

#: Counters of frames that a port lost, by their names in ip(8).
_LOST = ("errors", "dropped", "over_errors", "missed_errors", "fifo_errors", "nohandler")
_CRC = "crc_errors"

#: A busy host allocates the memory of taps, and writes it to a disk, at least this fast.
_SLOWEST_MB_S = 50.0
#: Memory that the agent takes by default, and the most that it is asked for, in MB.
LEAST_MB, MOST_MB = 128, 1_024
#: A tap takes this part of the memory that is available at most: two of them leave three quarters.
_PART = 8
#: Bytes that AF_PACKET (TPACKET_V3) puts before a frame, and to which it rounds up.
_HEAD, _ALIGNED = 82, 8
_FCS = 4


class Taps:
    """Both taps, for as long as the context lasts.

    Args:
        context: the run, with its nodes.
        stamps: the source of stamps, as ``tailtrim-agent capture --stamps`` has it.

    Raises:
        HostError: a node cannot capture.
        RunError: it did not begin to.

    """

    def __init__(self, context: InlineRunContext, stamps: str) -> None:
        """Begin to capture, or to match packets while they come."""
        at, snap_bytes = context.at, context.plan.snap_bytes
        matching = context.by_minute.words if context.by_minute else ()
        self._ports = {"tap_in": at.tap_in, "tap_out": at.tap_out, "sink": at.sink}
        self._agents: list[Agent] = []
        with ExitStack() as stack:
            all_mb = needed_mb(context.run.traffic, snap_bytes, held=not matching)
            for node, words in capturing(at, snap_bytes, stamps, matching):
                # The agent replaces no capture; a device that is kept has that of its last run.
                node.call("rm", "-f", *(node.path(f"{tap}.pcap.zst") for tap in TAPS))
                memory_mb = available_mb(node, all_mb)
                words += ["--buffer", str(memory_mb)]
                agent = Agent(node, *words, cpus=node.cpus, more_s=memory_mb / _SLOWEST_MB_S)
                self._agents.append(stack.enter_context(agent))
            for agent in self._agents:
                agent.ready()
            self._before = self._counted()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the taps themselves."""
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self._stack.close()

    @property
    def told(self) -> str:
        """Text on the packets that were matched so far.

        Nothing where they are captured: they stay in the kernel's buffer until it is half full.
        """
        matched = self._agents[0].live
        return "" if matched is None else live(matched)

    @property
    def around(self) -> list[dict[str, Any]]:
        """The worst packets so far, where packets are matched by minute."""
        return self._agents[0].around

    def check(self) -> None:
        """Make sure that they capture.

        Raises:
            RunError: one has ended.

        """
        for agent in self._agents:
            if not agent.poll():
                agent.result(1)
                raise RunError("the capture ended before the run did")

    def stop(self) -> dict[str, Any]:
        """End them, and return what they counted.

        ``ports`` is what the kernel and the NIC counted meanwhile, of what came in at the taps and
        at the load generator's sink: ``packets``, and ``lost`` before any capture saw it.
        """
        results = [agent.stop() for agent in self._agents]
        after = self._counted()
        merged: dict[str, Any] = {**results[0], "taps": {}}
        for result in results:
            merged["taps"] |= result["taps"]
        merged["ports"] = {
            place: {key: count - self._before[place][key] for key, count in counted.items()}
            for place, counted in after.items()
        }
        return merged

    def _counted(self) -> dict[str, dict[str, int]]:
        return {place: _counters(port.node, port) for place, port in self._ports.items()}


def _counters(node: Node, port: Port) -> dict[str, int]:
    told = node.run("ip", "-json", "-s", "-s", "link", "show", "dev", port.name)
    received: dict[str, int] = json.loads(told)[0]["stats64"]["rx"]
    return {"packets": received["packets"]} | {
        key: received[key] for key in (*_LOST, _CRC) if key in received
    }


def live(matched: dict[str, Any]) -> str:
    """Return what was matched so far, and the tail of the last second, in words.

    Args:
        matched: a line of ``tailtrim capture --live``.

    """
    told = f"{matched['packets']['ingress']:,} packets, {matched['lost']:,} lost"
    known = matched["latency_ns"]
    shown = {name: known[name] for name in ("p50", "p99", "p99.9", "max") if name in known}
    return f"{told}; last second {units.listed(shown)}" if shown else told


def capturing(
    at: Forwarding, snap_bytes: int, stamps: str = "best", matching: Sequence[str] = ()
) -> Iterator[tuple[Node, list[str]]]:
    """Yield each node with a tap, and verb and arguments of its agent.

    With ``matching``, further arguments, it matches packets while they come, without captures.
    """
    taps = {"ingress": at.tap_in, "egress": at.tap_out}
    for node in dict.fromkeys(port.node for port in taps.values()):
        own = [f"{name}={port.name}" for name, port in taps.items() if port.node is node]
        words = ["capture", *(word for one in own for word in ("--tap", one))]
        words += matching or ["--out", node.path(), "--zstd"]
        words += ["--snap", str(snap_bytes), "--stamps", stamps]
        yield node, words


def held_packets(traffic: Traffic, snap_bytes: int, megabytes: int = MOST_MB) -> int:
    """Return how many packets are held before a tap begins to write: half of its memory."""
    return (megabytes << 20) // 2 // _bytes(traffic, snap_bytes)


def needed_mb(traffic: Traffic, snap_bytes: int, *, held: bool = True) -> int:
    """Return the memory in MB that holds all packets of a run, within limits.

    Packets that are matched while they come are not held.
    """
    if not held:
        return LEAST_MB
    packets = (traffic.packets_per_s or 0.0) * traffic.duration_s
    memory_mb = math.ceil(2 * packets * _bytes(traffic, snap_bytes) / 2**20)
    return min(max(memory_mb, LEAST_MB), MOST_MB)


def available_mb(node: Node, needed: int) -> int:
    """Return how much of the memory that is needed a node has."""
    if needed <= LEAST_MB:
        return needed
    for line in node.call("cat", "/proc/meminfo").stdout.splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return min(needed, max(int(rest.split()[0]) // 1024 // _PART, LEAST_MB))
    return LEAST_MB


def _bytes(traffic: Traffic, snap_bytes: int) -> int:
    kept = min(snap_bytes, traffic.largest_frame - _FCS)
    return math.ceil((_HEAD + kept) / _ALIGNED) * _ALIGNED
