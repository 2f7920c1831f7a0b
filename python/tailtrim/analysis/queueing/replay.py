"""A measured device under other loads: :func:`replay`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tailtrim.analysis.queueing.estimate import STRETCHES
from tailtrim.analysis.queueing.fifo import Stalled, departures
from tailtrim.student_t import critical

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.queueing.fifo import Floats
    from tailtrim.analysis.queueing.model import QueueModel

#: A further replay lies outside of the smallest and largest of 39 in 2 of 40 cases: 5 %.
REPLAYS = 39
_SURE = 0.95
# From so many degrees of freedom on, Student's t is the normal deviate.
_MANY = 1_000
#: Packets of a replay at most: longer runs are cut.
MOST = 200_000
# Successive gaps between packets that are drawn together.
_GAPS = 1_000


@dataclass(frozen=True, slots=True)
class Load:
    """Packets a second; ``burst`` of them come back to back, ``None`` as the run's came."""

    rate_pps: float
    burst: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A changed device: services take ``scale`` as long, batches have up to ``batch`` packets."""

    scale: float = 1.0
    batch: int | None = None


UNCHANGED = Change()


class Band(NamedTuple):
    """The median of replays, and between what a run would lie in 95 % of the cases."""

    value: float
    low: float
    high: float


def band(values: Sequence[float], wider: float) -> Band:
    """Return the band of what each replay gave; ``wider`` is by :func:`widening`."""
    middle = float(np.median(values))
    if middle <= 0:
        return Band(middle, min(values), max(values))
    low, high = (middle * (edge / middle) ** wider for edge in (min(values), max(values)))
    return Band(middle, low, high)


def widening(device: QueueModel, rate_pps: float, *, most: int = MOST) -> float:
    """Return the factor on a logarithmic scale by which a run varies more than its replays.

    Replays differ as runs of their length do. So does the run itself, whose stretches they are
    drawn from: if it is as long as n replays, both together have 1 + 1 / n of the variance. Of N
    stretches that are drawn with replacement, the variance is too small by (N - 1) / N, and it is
    known with N - 1 degrees of freedom.
    """
    pieces = _number(device, _long_ns(device, rate_pps, most))
    student = critical(min(pieces - 1, _MANY), _SURE) / NormalDist().inv_cdf((1 + _SURE) / 2)
    return student * math.sqrt((1 + STRETCHES / pieces) * pieces / (pieces - 1))


def replay(
    device: QueueModel, load: Load, change: Change = UNCHANGED, *, most: int = MOST, seed: int = 1
) -> Iterator[Floats]:
    """Let the device serve a load, :data:`REPLAYS` times; give latencies in order of arrival.

    A replay is as long as the run, or has ``most`` packets if that is shorter. It consists of 20
    stretches that are drawn from all of the run, with replacement: with each come the times
    when the CPU was stalled then, and the services of that time in their order. At higher rates
    services are repeated, from a random one on.

    Raises:
        ValueError: the rate is too low for one packet in the time of the run.

    """
    random = np.random.default_rng(seed)
    long_ns = _long_ns(device, load.rate_pps, most)
    pieces = _Pieces(device, long_ns)
    batch = change.batch or device.packets.batch
    for _ in range(REPLAYS):
        chosen = random.integers(0, pieces.number, STRETCHES)
        arrival_ns = _arrivals(device, load, long_ns * STRETCHES, random)
        place = np.minimum((arrival_ns / long_ns).astype(np.int64), STRETCHES - 1)
        service_ns = pieces.services(chosen, place, random) * change.scale
        gather_ns = None
        if batch > 1 and device.packets.gather_ns.size:
            gather_ns = random.choice(device.packets.gather_ns, arrival_ns.size)
        left_ns = departures(
            arrival_ns, service_ns, pieces.stalled(chosen), batch=batch, gather_ns=gather_ns
        )
        yield left_ns - arrival_ns + device.transport_ns


def _long_ns(device: QueueModel, rate_pps: float, most: int) -> float:
    """Return the duration of a stretch."""
    return min(device.packets.span_ns, most / rate_pps * 1e9) / STRETCHES


def _number(device: QueueModel, long_ns: float) -> int:
    """Return the number of stretches of the run."""
    return max(int(device.packets.span_ns / long_ns + 0.5), 1)


class _Pieces:
    """A run in pieces of equal length: their stalls and services."""

    def __init__(self, device: QueueModel, long_ns: float) -> None:
        self.number = _number(device, long_ns)
        self._long_ns = long_ns
        whole = Stalled.of([cause.when for cause in device.causes])
        edges = np.arange(self.number) * long_ns
        self._stalled = [_within(whole, edge, edge + long_ns) for edge in edges.tolist()]
        places = np.searchsorted(device.service_at_ns, edges[1:])
        self._first = np.concatenate([[0], places])
        self._count = np.diff(np.append(self._first, device.service_ns.size))
        # A piece without any service has those of the whole run.
        none = self._count == 0
        self._first[none], self._count[none] = 0, device.service_ns.size
        self._service_ns = device.service_ns

    def stalled(self, chosen: np.ndarray) -> Stalled:
        """Return the stalls of stretches that are put one behind the other."""
        return Stalled.of(
            [
                (
                    self._stalled[n].start_ns + place * self._long_ns,
                    self._stalled[n].end_ns + place * self._long_ns,
                )
                for place, n in enumerate(chosen.tolist())
            ]
        )

    def services(
        self, chosen: np.ndarray, place: np.ndarray, random: np.random.Generator
    ) -> Floats:
        """Return services for packets, each at a place among the stretches, in order."""
        begins = np.searchsorted(place, np.arange(chosen.size))
        count = self._count[chosen]
        offset = random.integers(0, count) - begins
        turn = (np.arange(place.size) + offset[place]) % count[place]
        found: Floats = self._service_ns[self._first[chosen][place] + turn]
        return found


def _within(whole: Stalled, low_ns: float, high_ns: float) -> Stalled:
    inside = (whole.end_ns > low_ns) & (whole.start_ns < high_ns)
    start_ns, end_ns = (
        np.clip(edge[inside], low_ns, high_ns) - low_ns for edge in (whole.start_ns, whole.end_ns)
    )
    return Stalled(start_ns, end_ns)


def _arrivals(
    device: QueueModel, load: Load, until_ns: float, random: np.random.Generator
) -> Floats:
    """Return arrival times: bursts at a constant rate, or the run's gaps at another pace."""
    mean_ns = 1e9 / load.rate_pps
    count = int(until_ns / mean_ns)
    if count < 1:
        raise ValueError(f"rate {load.rate_pps:g}: too low, a replay has no packet")
    burst = load.burst or device.packets.bursts[0]
    if burst > 1 or load.burst is not None:
        bursts = max(count // burst, 1)
        apart_ns = min(device.packets.bursts[1], mean_ns)
        first_ns = (np.arange(bursts) + random.random()) * mean_ns * burst
        found: Floats = (first_ns[:, None] + np.arange(burst) * apart_ns).ravel()
        return found
    gap_ns = np.diff(device.packets.arrival_ns)
    starts = random.integers(0, gap_ns.size, -(-count // _GAPS))
    drawn = (starts[:, None] + np.arange(_GAPS)).ravel()[:count] % gap_ns.size
    scaled: Floats = np.cumsum(gap_ns[drawn]) * (mean_ns / float(gap_ns.mean()))
    return scaled
