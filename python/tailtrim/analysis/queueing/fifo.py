"""A first-come first-served CPU that stalls: :func:`departures`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


# Packets that come in one stall are there at the same time of the CPU, but for rounding: in hours,
# counted in ns, it is 5e-4.
_ROUNDED_NS = 1e-3


class Stalled(NamedTuple):
    """Intervals in ns in which the CPU did not serve, in order and without overlap."""

    start_ns: Floats
    end_ns: Floats

    @classmethod
    def of(cls, intervals: Sequence[tuple[Floats, Floats]]) -> Stalled:
        """Return the union of intervals (starts, ends) in any order."""
        starts = [np.empty(0), *(start for start, _ in intervals)]
        ends = [np.empty(0), *(end for _, end in intervals)]
        start_ns, end_ns = np.concatenate(starts), np.concatenate(ends)
        order = np.argsort(start_ns, kind="stable")
        start_ns, reach_ns = start_ns[order], np.maximum.accumulate(end_ns[order])
        # An interval begins a new stall where nothing before it reaches its start.
        first = np.ones(start_ns.size, dtype=bool)
        first[1:] = start_ns[1:] > reach_ns[:-1]
        last = np.append(np.flatnonzero(first)[1:] - 1, start_ns.size - 1)[: int(first.sum())]
        return cls(start_ns[first], reach_ns[last])

    def until(self, at_ns: Floats) -> Floats:
        """Return the stalled time before each time."""
        taken = np.concatenate([[0.0], np.cumsum(self.end_ns - self.start_ns)])
        place = np.searchsorted(self.start_ns, at_ns, side="right")
        lasting = np.append(self.end_ns, np.inf)[place - 1] - at_ns
        running = np.where(place > 0, np.maximum(lasting, 0.0), 0.0)
        found: Floats = taken[place] - running
        return found


def departures(
    arrival_ns: Floats,
    service_ns: Floats,
    stalled: Stalled,
    *,
    batch: int = 1,
    gather_ns: Floats | None = None,
) -> Floats:
    """Return the departure times of packets.

    The CPU serves one packet after the other, and works whenever one is there and it is not
    stalled. A stall interrupts a service, which goes on behind it. On the axis of the CPU's time
    without the stalls this is Lindley's recursion, a cumulative maximum.

    Args:
        arrival_ns: when packets come, in order.
        service_ns: what each needs of the CPU.
        stalled: when the CPU does not serve.
        batch: the CPU takes up to so many waiting packets at once, and all of these leave when the
            last of them has been served.
        gather_ns: for each packet, how long an idle CPU waits before it takes the packet's batch.
            That this makes packets later is left out: it is part of the transport.

    """
    taken = np.cumsum(stalled.end_ns - stalled.start_ns)
    came = arrival_ns - stalled.until(arrival_ns)
    work = np.cumsum(service_ns)
    done = work + np.maximum.accumulate(came - (work - service_ns))
    if batch > 1:
        done = done[_last_of_batch(came, done, batch, gather_ns)]
    # A packet that is done when a stall begins leaves before it.
    begins = stalled.start_ns - np.concatenate([[0.0], taken[:-1]])[: taken.size]
    served: Floats = done + np.concatenate([[0.0], taken])[np.searchsorted(begins, done)]
    return served


def _last_of_batch(came: Floats, done: Floats, batch: int, gather_ns: Floats | None) -> Integers:
    """Return for each packet the last one of its batch.

    Batches do not change when the CPU is busy, so ``done`` of single packets says when the next
    batch is taken: who is last in a batch is done when the batch is.
    """
    begin = came.copy() if gather_ns is None else came + gather_ns
    begin[1:] = np.where(done[:-1] > came[1:], done[:-1], begin[1:])
    there = np.searchsorted(came, begin + _ROUNDED_NS, side="right")
    until = np.minimum(there, np.arange(came.size) + batch).tolist()
    last = np.empty(came.size, dtype=np.int64)
    first = 0
    while first < came.size:
        last[first : until[first]] = until[first] - 1
        first = until[first]
    return last
