"""CPU time of the packets of a run, from their stamps: :func:`served_packets`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.analysis.explain.traced import service
from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    from tailtrim.analysis.queueing.fifo import Floats, Integers, Stalled
    from tailtrim.results import RunDirectory

#: Departures at most so many usual spacings apart are of one batch (crates/cause/src/batch.rs).
_TOGETHER = 4
#: So many service times show the 99th percentile by 10 of them.
ENOUGH = 1_000
# A burst goes on where a packet comes after less than this part of the mean gap.
_BACK_TO_BACK = 10


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """Times from when the CPU was free for packets until it had served them, in order.

    A batch has one, for all its ``packets``; times are ns since the first arrival.
    """

    begin_ns: Floats
    end_ns: Floats
    packets: Integers

    def stolen_ns(self, stalled: Stalled) -> Floats:
        """Return the time that the CPU was stalled in each."""
        return stalled.until(self.end_ns) - stalled.until(self.begin_ns)


@dataclass(frozen=True)
class ServedPackets:
    """A run's packets: arrivals, departures, and service times behind others and alone.

    ``queued`` are those of packets that certainly waited for the one ahead: they came before
    it left, by more than the shortest latency, or with batches more than the transport. ``alone``
    are those of packets that came when all others had left, of which the transport is not taken
    off. ``batch`` is how many packets leave together at most, 1 where each leaves alone;
    ``gather_ns`` is, for those alone, the time from the first to the last arrival of a batch.
    """

    arrival_ns: Floats
    departure_ns: Floats
    origin_ns: int
    queued: ServiceTimes
    alone: ServiceTimes
    batch: int
    gather_ns: Floats

    @property
    def span_ns(self) -> float:
        """From the first arrival to the last departure."""
        return float(self.departure_ns[-1])

    @property
    def rate_pps(self) -> float:
        """Packets a second."""
        return (self.arrival_ns.size - 1) * 1e9 / float(self.arrival_ns[-1])

    @cached_property
    def bursts(self) -> tuple[int, float]:
        """Packets of a burst, 1 without bursts, and the gap between them."""
        gap_ns = np.diff(self.arrival_ns)
        close = gap_ns < gap_ns.mean() / _BACK_TO_BACK
        ends = np.flatnonzero(~close)
        # Few packets of a Poisson process are so close: 1 - exp(-1/10), 10 %.
        if ends.size < 2 or close.mean() < 0.5:  # noqa: PLR2004 - half of a burst of two is close
            return 1, 0.0
        return int(np.median(np.diff(ends))), float(np.median(gap_ns[close]))


def served_packets(run: RunDirectory) -> ServedPackets:
    """Read the packets of a run.

    Raises:
        RunDirectoryError: it has no samples, or too few.

    """
    table = run.table("sample")
    if table.num_rows < ENOUGH:
        message = f"{run.path}: {table.num_rows:,} packets are too few, expected {ENOUGH:,} or more"
        raise RunDirectoryError(message)
    told = service(table)
    arrival_ns, departure_ns = (table[name].to_numpy() for name in ("ingress_ns", "egress_ns"))
    origin_ns = int(arrival_ns.min())
    order = np.lexsort((arrival_ns, departure_ns))
    came, left = (
        (times[order] - origin_ns).astype(np.float64) for times in (arrival_ns, departure_ns)
    )
    if came.max() <= 0:
        raise RunDirectoryError(f"{run.path}: all packets came at the same time")
    first = _firsts(came, left, told)
    last = np.append(first[1:], came.size) - 1
    packets = np.diff(np.append(first, came.size))
    before = np.append(-np.inf, left[last[:-1]])
    # The shortest latency has the CPU time of a packet, known from batches: the rest is transport.
    margin_ns = told["base_ns"] - (told["service_ns"] if told["batch"] > 1 else 0)
    waited = came[first] < before - margin_ns
    alone = came[first] >= before
    several = packets[packets > 1]
    return ServedPackets(
        arrival_ns=np.sort(came),
        departure_ns=left,
        origin_ns=origin_ns,
        queued=ServiceTimes(before[waited], left[last][waited], packets[waited]),
        alone=ServiceTimes(came[first][alone], left[last][alone], packets[alone]),
        # One in a hundred is left out: a stall may have joined two batches.
        batch=int(np.quantile(several, 0.99)) if told["batch"] > 1 and several.size else 1,
        gather_ns=(came[last] - came[first])[alone],
    )


def _firsts(came: Floats, left: Floats, told: dict[str, int]) -> Integers:
    """Return the first packet of each service: of every packet, or of every batch."""
    if told["batch"] == 1:
        return np.arange(came.size)
    base_ns, service_ns = told["base_ns"], told["service_ns"]
    gap_ns = np.diff(left)
    behind = came[1:] < left[:-1] - base_ns
    usual_ns = float(np.median(gap_ns[behind])) if behind.any() else 0.0
    together = (gap_ns <= _TOGETHER * usual_ns) & (came[1:] < left[:-1])
    first = np.flatnonzero(np.append(True, ~together))
    # A stall while a batch leaves cuts it in two: the rest leaves in less than its packets take.
    last = np.append(first[1:], came.size) - 1
    each_ns = np.diff(left[last], prepend=-np.inf) / (last - first + 1)
    cut = np.append(False, came[first[1:]] < left[last[:-1]])
    cut &= each_ns < service_ns / 2
    found: Integers = first[~cut]
    return found
