"""Devices whose service and stalls are known, and the runs that they leave."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from tailtrim.analysis.queueing import Stalled, departures
from tailtrim.analysis.roundtrip.write_run import Series, write_run

if TYPE_CHECKING:
    from pathlib import Path

Times: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

ORIGIN_NS = 1_700_000_000_000_000_000
# Offset of the trace's times, and the bound of it that the trace states.
_OFF_NS, ERROR_NS = 100, 300


@dataclass(frozen=True)
class World:
    """A device: its services, the stalls of two causes, its transport, its load.

    ``service`` is constant, normal (a fifth of the mean), exponential or two: one in five packets
    takes six times as long as the others. The tick comes at a constant rate, the thread at random,
    for times from an exponential law. ``burst`` packets come back to back, 1: a Poisson process.
    """

    service: str = "constant"
    mean_ns: float = 10_000.0
    transport_ns: float = 4_000.0
    tick_hz: float = 250.0
    tick_ns: float = 8_000.0
    thread_hz: float = 40.0
    thread_ns: float = 100_000.0
    rate_pps: float = 40_000.0
    burst: int = 1
    batch: int = 1
    seconds: float = 4.0

    @property
    def stolen_ns_per_s(self) -> float:
        """Time that both causes take: a tick within a thread's time takes nothing more."""
        thread = self.thread_hz * self.thread_ns / 1e9
        busy = 1 - float(np.exp(-thread))
        return 1e9 * (busy + (1 - busy) * self.tick_hz * self.tick_ns / 1e9)

    @property
    def r_max_pps(self) -> float:
        """The highest rate."""
        return (1e9 - self.stolen_ns_per_s) / self.mean_ns

    def at(self, load: float) -> World:
        """Return it at a part of its highest rate."""
        return replace(self, rate_pps=load * self.r_max_pps)


@dataclass(frozen=True)
class Simulated:
    """When packets came and left, and when each cause had the CPU."""

    arrival_ns: Times
    left_ns: Times
    tick: tuple[Times, Times]
    thread: tuple[Times, Times]

    @property
    def latency_ns(self) -> Times:
        """Latencies in order of arrival."""
        return self.left_ns - self.arrival_ns


def simulated(world: World, random: np.random.Generator) -> Simulated:
    """Let the device serve its load."""
    span_ns = world.seconds * 1e9
    arrival_ns = _arrivals(world, random, span_ns)
    tick = _tick(world, random, span_ns)
    start_ns = np.sort(random.uniform(0, span_ns, random.poisson(world.thread_hz * world.seconds)))
    thread = start_ns, start_ns + random.exponential(world.thread_ns, start_ns.size)
    service_ns = _services(world, random, arrival_ns.size)
    served = departures(arrival_ns, service_ns, Stalled.of([tick, thread]), batch=world.batch)
    return Simulated(arrival_ns, served + world.transport_ns, tick, thread)


def _arrivals(world: World, random: np.random.Generator, span_ns: float) -> Times:
    count = int(span_ns * world.rate_pps / 1e9)
    if world.burst > 1:
        first = (np.arange(count // world.burst) + random.random()) * world.burst
        apart = 700.0 * np.arange(world.burst)
        found: Times = (first[:, None] * 1e9 / world.rate_pps + apart).ravel()
        return found
    poisson: Times = np.cumsum(random.exponential(1e9 / world.rate_pps, count))
    return poisson


def _tick(world: World, random: np.random.Generator, span_ns: float) -> tuple[Times, Times]:
    if not world.tick_hz:
        return np.empty(0), np.empty(0)
    number = int(span_ns * world.tick_hz / 1e9)
    edges = np.arange(number).astype(np.float64) + random.random()
    start_ns: Times = (edges * (1e9 / world.tick_hz)).astype(np.float64)
    return start_ns, start_ns + world.tick_ns


def _services(world: World, random: np.random.Generator, count: int) -> Times:
    if world.service == "constant":
        return np.full(count, world.mean_ns)
    if world.service == "normal":
        return np.maximum(random.normal(world.mean_ns, world.mean_ns / 5, count), 100.0)
    if world.service == "exponential":
        return random.exponential(world.mean_ns, count)
    return np.where(random.random(count) < 0.2, 3.0, 0.5) * world.mean_ns


def left_run(
    directory: Path, world: World, random: np.random.Generator, *, traced: bool = True
) -> Simulated:
    """Leave a run directory of the device, with a trace that is a little off."""
    run = simulated(world, random)
    came = np.rint(run.arrival_ns).astype(np.int64) + ORIGIN_NS
    took = np.rint(run.left_ns).astype(np.int64) + ORIGIN_NS - came
    write_run(directory, Series("simulated", came, np.ones(came.size, dtype=bool), took, 60))
    if traced:
        _leave_trace(directory, run, random)
    return run


def _leave_trace(directory: Path, run: Simulated, random: np.random.Generator) -> None:
    thief = Stalled.of([run.thread])
    own_start = np.append(0.0, thief.end_ns)
    own_end = np.append(thief.start_ns, run.left_ns[-1] + 1e6)
    rows: list[dict[str, Any]] = []
    for kind, name, detail, left, (start_ns, end_ns) in (
        ("irq", "local_timer", None, None, run.tick),
        ("thread", "thief", "77", "sleeping", (thief.start_ns, thief.end_ns)),
        ("thread", "device", "42", "runnable", (own_start, own_end)),
    ):
        off_ns = random.uniform(-_OFF_NS, _OFF_NS, start_ns.size)
        for start, end in zip(
            (start_ns + off_ns).tolist(), (end_ns + off_ns).tolist(), strict=True
        ):
            event = {"cpu": 1, "start_ns": ORIGIN_NS + int(start), "end_ns": ORIGIN_NS + int(end)}
            rows.append({**event, "kind": kind, "name": name, "detail": detail, "left": left})
    rows.sort(key=lambda row: row["start_ns"])
    header = {"schema": "tailtrim.events/1", "error_ns": ERROR_NS, "holes": 0, "cpus": "1"}
    with pa.output_stream(str(directory / "events.jsonl.zst"), compression="zstd") as stream:
        stream.write(("\n".join(map(json.dumps, (header, *rows))) + "\n").encode())
