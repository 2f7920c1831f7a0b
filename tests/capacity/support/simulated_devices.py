"""Devices whose capacity is known, measured in trials as real ones are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.analysis.queueing import Stalled, departures
from tailtrim.laboratory.capacity.lateness import LateSpan, beyond
from tailtrim.laboratory.capacity.trial import LOST, Count, Purpose, Trial, TrialResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.capacity.promise import Condition
    from tailtrim.laboratory.capacity.search import Search

Latencies = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

#: Overhead of a trial, added to its duration.
BESIDE_S = 2.0


@dataclass
class Device:
    """A device in a testbed whose generator reaches ``generator_pps``, and whose taps hold so many.

    ``latency`` returns the latency in s of each packet of a trial, infinite where it is lost.
    """

    rng: np.random.Generator
    conditions: Sequence[Condition] = ()
    generator_pps: float = math.inf
    taps_hold: float = math.inf
    done: list[TrialResult] = field(default_factory=list)

    def latency(self, load: int, packets: int) -> Latencies:
        raise NotImplementedError

    def measure(self, trial: Trial) -> TrialResult:
        took_s = trial.duration_s + BESIDE_S
        if trial.load > self.generator_pps:
            share = self.generator_pps / trial.load
            return TrialResult(trial, took_s, {}, "the generator was late", share)
        if trial.load * trial.duration_s > self.taps_hold:
            return TrialResult(trial, took_s, {}, "the egress tap dropped 9 frames")
        latency_s = self.latency(trial.load, max(round(trial.load * trial.duration_s), 1))
        counts = {LOST: Count(int(np.isinf(latency_s).sum()), latency_s.size)}
        for one in self.conditions:
            limit_s = math.inf if one.deadline_ns is None else one.deadline_ns / 1e9
            bad = latency_s >= limit_s
            counts[one.text] = Count(int(bad.sum()), bad.size, self._effect(latency_s, one))
        return TrialResult(trial, took_s, counts)

    def _effect(self, latency_s: Latencies, condition: Condition) -> float:
        """Return the design effect at the quantile, as a summary has it."""
        beyond = np.sort(latency_s)[math.floor((1 - condition.ratio) * latency_s.size) - 1]
        limit_s = math.inf if condition.deadline_ns is None else condition.deadline_ns / 1e9
        return max(design_effect(latency_s > beyond), design_effect(latency_s >= limit_s))

    def searched(self, search: Search) -> list[TrialResult]:
        """Return the trials of a search."""
        while (trial := search.next_trial(self.done)) is not None:
            self.done.append(self.measure(trial))
        return self.done

    @property
    def counted(self) -> list[TrialResult]:
        return [one for one in self.done if one.trial.purpose is not Purpose.WARM_UP]


@dataclass
class Queue(Device):
    """A single server with random service times: packets at random times, no packet is lost.

    Its latency is exponential with rate ``served_pps - load`` (M/M/1), so its capacity is known.
    """

    served_pps: float = 10_000.0

    def latency(self, load: int, packets: int) -> Latencies:
        gaps = self.rng.exponential(1 / load, packets)
        work = self.rng.exponential(1 / self.served_pps, packets)
        # It has been running: the first packet finds the queue as any other does.
        began_s = 0.0
        if load < self.served_pps and self.rng.random() < load / self.served_pps:
            began_s = self.rng.exponential(1 / (self.served_pps - load))
        walk = np.cumsum(np.concatenate(([began_s], work[:-1] - gaps[1:])))
        waits = walk - np.minimum(np.minimum.accumulate(walk), 0.0)
        return waits + work

    def capacity(self, late: float, deadline_s: float) -> float:
        """Return the load at which a share of packets is later than a deadline."""
        return self.served_pps - math.log(1 / late) / deadline_s


@dataclass
class Server(Device):
    """A server with a buffer, and packets at a constant rate: packets that overflow it are lost.

    Service varies by ``noise`` (relatively) from packet to packet. With ``stalls`` it stands still
    for ``stall_s`` so often a second. Between the loads of ``hole`` it loses one packet in ten.
    """

    served_pps: float = 10_000.0
    buffer: int = 256
    noise: float = 0.2
    stalls: float = 0.0
    stall_s: float = 0.0
    hole: tuple[int, int] = (0, 0)

    def latency(self, load: int, packets: int) -> Latencies:
        work = self.rng.normal(1, self.noise, packets).clip(0) / self.served_pps
        work[self.rng.random(packets) < self.stalls / load] += self.stall_s
        lost = self.rng.random(packets) < (0.1 if self.hole[0] <= load < self.hole[1] else 0.0)
        latency_s, wait_s, gap_s = [], 0.0, 1 / load
        room_s = self.buffer / self.served_pps
        for one, gone in zip(work.tolist(), lost.tolist(), strict=True):
            if gone or wait_s > room_s:
                latency_s.append(math.inf)
            else:
                wait_s += one
                latency_s.append(wait_s)
            wait_s = max(wait_s - gap_s, 0.0)
        return np.array(latency_s)


@dataclass
class Shared(Device):
    """A server on a virtual machine: its CPU and the generator's stand still for a tick at times.

    ``stalls`` is how often a second, of either one at times of its own. After a stall the generator
    catches up at three times the load. Nothing is lost.
    """

    served_pps: float = 10_000.0
    noise: float = 0.1
    stall_s: float = 0.004
    stalls: float = 0.7
    generator_stalls: float = 0.7

    def measure(self, trial: Trial) -> TrialResult:
        due_ns = np.arange(max(round(trial.load * trial.duration_s), 1)) * 1e9 / trial.load
        sent_ns, spans = self._sent(due_ns, trial)
        latency_ns = self._left(sent_ns, trial.duration_s) - sent_ns
        counts = {LOST: Count(0, sent_ns.size)}
        for one in self.conditions:
            deadline_ns = one.deadline_ns or 2**62
            came, took = sent_ns.astype(np.int64), latency_ns.astype(np.int64)
            bad, unknown = beyond(came, took, spans, deadline_ns)
            effect = self._effect(latency_ns / 1e9, one)
            counts[one.text] = Count(int(bad.sum()), bad.size, effect, int(unknown.sum()))
        return TrialResult(trial, trial.duration_s + BESIDE_S, counts)

    def share(self, load: int, seconds: float, deadline_ns: int) -> float:
        """Return the share of packets that are not within a deadline under punctual load."""
        due_ns = np.arange(round(load * seconds)) * 1e9 / load
        return float((self._left(due_ns, seconds) - due_ns >= deadline_ns).mean())

    def _sent(self, due_ns: Latencies, trial: Trial) -> tuple[Latencies, list[LateSpan]]:
        ready_ns = due_ns.copy()
        for at_ns in self._times(self.generator_stalls, trial.duration_s):
            end_ns = at_ns + self.stall_s * 1e9
            ready_ns[(ready_ns >= at_ns) & (ready_ns < end_ns)] = end_ns
        apart_ns = np.arange(due_ns.size) * (1e9 / trial.load / 3)
        sent_ns = np.maximum.accumulate(ready_ns - apart_ns) + apart_ns
        late = np.flatnonzero(sent_ns - due_ns > 20_000)
        parts = np.split(late, np.flatnonzero(np.diff(late) > 1) + 1) if late.size else []
        return sent_ns, [
            LateSpan(
                int(sent_ns[part[0]]),
                math.ceil(sent_ns[part[-1]]),
                math.ceil((sent_ns - due_ns)[part].max()),
            )
            for part in parts
        ]

    def _left(self, sent_ns: Latencies, seconds: float) -> Latencies:
        starts = self._times(self.stalls, seconds)
        work = self.rng.normal(1, self.noise, sent_ns.size).clip(0.2) * (1e9 / self.served_pps)
        return departures(sent_ns, work, Stalled.of([(starts, starts + self.stall_s * 1e9)]))

    def _times(self, rate: float, seconds: float) -> Latencies:
        return np.sort(self.rng.uniform(0, seconds * 1e9, self.rng.poisson(rate * seconds)))


def design_effect(bad: Flags) -> float:
    """Return how many packets are worth one independent one: the variance of blocks over chance."""
    ratio, effects = bad.mean(), [1.0]
    for blocks in (128, 64, 32, 16):
        length = bad.size // blocks
        if not 0 < ratio < 1 or length == 0:
            break
        counts = bad[: length * blocks].reshape(blocks, length).sum(axis=1)
        vary = counts[1:].std() and counts[:-1].std()
        alike = float(np.corrcoef(counts[:-1], counts[1:])[0, 1]) if vary else 0.0
        alike = alike + 1 / blocks if alike > 3 / math.sqrt(blocks) else 0.0
        alike = min(alike, 0.98)
        found = counts.var(ddof=1) / (length * ratio * (1 - ratio)) * (1 + alike) / (1 - alike)
        effects.append(float(found))
    return max(effects)
