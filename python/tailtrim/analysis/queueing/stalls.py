"""Stalls of the CPU by their cause, from a trace or from the captures alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim import _native
from tailtrim.analysis.explain import host_events
from tailtrim.analysis.queueing.estimate import (
    STRETCHES,
    Estimate,
    of_stretches,
)
from tailtrim.analysis.queueing.fifo import Stalled

if TYPE_CHECKING:
    from tailtrim.analysis.explain import Host
    from tailtrim.analysis.explain.host_events import Flags, HostEvents
    from tailtrim.analysis.queueing.fifo import Floats
    from tailtrim.analysis.queueing.service_times import ServedPackets
    from tailtrim.results import RunDirectory

# Precedence of kinds on a CPU: later ones interrupt earlier ones (crates/cause/src/timeline.rs).
_RANKS = ("gap", "hole", "thread", "fault", "softirq", "irq", "nmi")
# A device that sleeps more than once in so many packets waits for them (absence.rs).
_RARELY = 10
# A stall that begins within this part of the latency after a departure is the packet's (usual.rs).
_SOON = 4
#: Usual frequencies of a kernel's tick, and how far a clock may be off.
_TICKS_HZ, _OFF = (100, 250, 300, 1000), 1e-3
TICK = "tick"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of stalls: its intervals in ns since the first arrival, and the time they took.

    ``ns_per_s`` does not count what interrupted it: causes add up. ``tick`` says that it is the
    kernel's tick. A cause whose ``when`` is empty is in the service times, and counted only.
    """

    name: str
    when: tuple[Floats, Floats]
    ns_per_s: Estimate
    tick: bool = False


def of_trace(run: RunDirectory, host: Host, packets: ServedPackets) -> tuple[Cause, ...]:
    """Return the causes in a run's trace, the costliest first."""
    serving = host.verdict["serving"]
    events = host_events.read(run, cpu=host.cpu, serving=serving)
    if events is None:
        return ()
    hidden = {
        (cause["kind"], cause["name"], cause["detail"]): cause["hidden_ns"]
        for cause in host.verdict["causes"]
    }
    spans: list[tuple[tuple[str, str, str | None], Floats, Floats]] = []
    for place, key in enumerate(events.keys):
        if _waits_for_packets(events, place, serving, packets.arrival_ns.size):
            continue
        mine = events.key == place
        start_ns = (events.start_ns[mine] - packets.origin_ns).astype(np.float64)
        end_ns = (events.end_ns[mine] - packets.origin_ns).astype(np.float64)
        start_ns -= hidden.get(key, 0)
        start_ns = start_ns + _usual_ns(Stalled.of([(start_ns, end_ns)]), packets)
        inside = (end_ns > start_ns) & (end_ns > 0) & (start_ns < packets.span_ns)
        edges = np.clip((start_ns[inside], end_ns[inside]), 0.0, packets.span_ns)
        spans.append((key, edges[0], edges[1]))
    return _exclusive(spans, packets.span_ns)


def _waits_for_packets(events: HostEvents, place: int, serving: str | None, packets: int) -> bool:
    kind, name, why = events.keys[place]
    asleep = kind == "thread" and name == serving and why == "asleep"
    return asleep and int((events.key == place).sum()) * _RARELY > packets


def _usual_ns(stalled: Stalled, packets: ServedPackets) -> float:
    """Return the part of a cause that most packets meet: it comes with them and is no stall."""
    came, left = packets.arrival_ns, packets.departure_ns
    begin = np.maximum(came, np.append(-np.inf, left[:-1]))
    soon_ns = float(np.quantile(left - came, 0.001)) / _SOON
    until = np.maximum(np.minimum(left + soon_ns, np.append(begin[1:], np.inf)), left)
    return float(np.median(stalled.until(until) - stalled.until(begin)))


def _exclusive(
    spans: list[tuple[tuple[str, str, str | None], Floats, Floats]], span_ns: float
) -> tuple[Cause, ...]:
    """Return causes with the time that each took, without what interrupted it."""
    edges = np.linspace(0, span_ns, STRETCHES + 1)
    per_s = STRETCHES * 1e9 / span_ns
    above: list[tuple[Floats, Floats]] = []
    found: list[Cause] = []
    for kind in reversed(_RANKS):
        same = [span for span in spans if span[0][0] == kind]
        for key, start_ns, end_ns in same:
            if not start_ns.size:
                continue
            higher = np.diff(Stalled.of(above).until(edges))
            both = np.diff(Stalled.of([*above, (start_ns, end_ns)]).until(edges))
            taken = of_stretches((both - higher) * per_s)
            if both.sum() > higher.sum():
                name = " ".join(filter(None, key))
                tick = "local_timer" in name
                found.append(Cause(name, (start_ns, end_ns), _positive(taken), tick))
            # The next one of this kind counts what this one did not take.
            above.append((start_ns, end_ns))
    return tuple(sorted(found, key=lambda cause: -cause.ns_per_s.value))


def _positive(one: Estimate) -> Estimate:
    return Estimate(one.value, max(one.low, 0.0), one.high)


def of_captures(
    run: RunDirectory, packets: ServedPackets, at_ns: Floats
) -> tuple[tuple[Cause, ...], Flags]:
    """Return the periodic causes of a run without a trace, and who came at ``at_ns`` to meet one.

    A cause lasts as long as it delays packets at most; the interval is that of its width, as
    ``explain`` tells it. What is not periodic is counted by the packets that met it: packets meet
    what takes a part of the time in this part of the cases. A clock that wanders stays in the
    service times, too.
    """
    told = json.loads(_native.periodic_causes(run.table("sample")))
    met = np.zeros(at_ns.size, dtype=bool)
    causes: list[Cause] = []
    for source in sorted({one["source"] for one in told["causes"]}):
        levels = [one for one in told["causes"] if one["source"] == source]
        longest = min(levels, key=lambda one: one["every"])
        when = _times(longest, levels, packets.span_ns)
        if longest["wanders"]:
            taken_ns = longest["frequency_hz"] * longest["delay_ns"]
            when = np.empty(0), np.empty(0)
        else:
            taken_ns = float((when[1] - when[0]).sum()) * 1e9 / packets.span_ns
            to_end_ns = (longest["phase_ns"] - at_ns) % longest["period_ns"]
            met |= to_end_ns < longest["width"]["high_ns"]
        width = longest["width"]
        low, high = (width[edge] / width["value_ns"] for edge in ("low_ns", "high_ns"))
        name = f"{longest['frequency_hz']:.1f} Hz"
        tick = any(abs(longest["frequency_hz"] / hz - 1) < _OFF for hz in _TICKS_HZ)
        causes.append(Cause(name, when, Estimate(taken_ns, taken_ns * low, taken_ns * high), tick))
    rest = sum(row["stalls"] for row in told["rows"] if row["kind"] == "not_periodic")
    causes.append(_rest(rest, packets))
    return tuple(sorted(causes, key=lambda cause: -cause.ns_per_s.value)), met


def _times(
    first: dict[str, Any], levels: list[dict[str, Any]], span_ns: float
) -> tuple[Floats, Floats]:
    """Return the intervals of a clock some of whose events take longer."""
    count = int((span_ns - first["phase_ns"]) // first["period_ns"]) + 1
    end_ns = first["phase_ns"] + np.arange(max(count, 0)) * first["period_ns"]
    long_ns = np.full(end_ns.size, float(first["delay_ns"]))
    for level in levels:
        off_ns = (end_ns - level["phase_ns"]) % level["period_ns"]
        off_ns = np.minimum(off_ns, level["period_ns"] - off_ns)
        long_ns[off_ns < first["period_ns"] / 2] = level["delay_ns"]
    return end_ns - long_ns, end_ns


def _rest(count: int, packets: ServedPackets) -> Cause:
    """Return the stalls that are not periodic, by the packets that met them."""
    share = 1e9 / packets.arrival_ns.size
    # Roots of Poisson counts have a standard deviation of 1/2.
    root = np.sqrt(count)
    low, high = max(root - 0.98, 0.0) ** 2 * share, (root + 0.98) ** 2 * share
    return Cause("not periodic", (np.empty(0), np.empty(0)), Estimate(count * share, low, high))
