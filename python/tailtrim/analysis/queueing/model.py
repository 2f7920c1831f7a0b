"""The queueing model of a run's device: :func:`queue_model`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from tailtrim import units
from tailtrim.analysis.explain.traced import traced
from tailtrim.analysis.queueing.estimate import (
    Estimate,
    difference,
    of_stretches,
    stretches,
    total,
)
from tailtrim.analysis.queueing.fifo import Stalled
from tailtrim.analysis.queueing.service_times import ENOUGH, ServedPackets, served_packets
from tailtrim.analysis.queueing.stalls import Cause, of_captures, of_trace
from tailtrim.errors import Remedy, RunDirectoryError

if TYPE_CHECKING:
    from tailtrim.analysis.queueing.fifo import Floats
    from tailtrim.results import RunDirectory

Basis = Literal["queued", "floor", "latency"]


@dataclass(frozen=True, slots=True)
class QueueModel:
    """A device as one queue: service times of packets, and causes that take the CPU from them.

    ``basis`` says where ``service_ns`` comes from: ``queued``, packets that waited;
    ``floor``, latencies less the median of a forwarder that does nothing; ``latency``, whole
    latencies, which are too long. ``service_at_ns`` is when each was served. ``transport_ns`` is
    what a packet takes beside the CPU's time. ``t_cpu_ns`` is the mean service, with a floor the
    difference of the medians, as in the paper.
    """

    run: str
    basis: Basis
    traced: bool
    packets: ServedPackets
    transport_ns: float
    service_at_ns: Floats
    service_ns: Floats
    t_cpu_ns: Estimate
    causes: tuple[Cause, ...]
    warnings: tuple[str, ...] = ()

    @property
    def stolen_ns_per_s(self) -> Estimate:
        """Time that all causes take of a second, d_sum in the paper."""
        return total([cause.ns_per_s for cause in self.causes])

    def without(self, names: tuple[str, ...]) -> QueueModel:
        """Return the device without causes whose name contains one of these, or the tick.

        Raises:
            ValueError: no cause is called so.

        """
        kept = self.causes
        for name in names:
            rest = tuple(one for one in kept if not _called(one, name))
            if len(rest) == len(kept):
                known = ", ".join(repr(one.name) for one in self.causes) or "none"
                raise ValueError(f"no cause is called {name!r}; the run has: {known}")
            kept = rest
        return replace(self, causes=kept)


def _called(cause: Cause, name: str) -> bool:
    return (cause.tick and name == "tick") or name.casefold() in cause.name.casefold()


def queue_model(
    run: RunDirectory,
    *,
    floor: RunDirectory | None = None,
    spare: RunDirectory | None = None,
    cpu: int | None = None,
) -> QueueModel:
    """Return the queueing model of a run's device.

    Args:
        run: a run with a trace, or one whose packets queue, or any with a floor.
        floor: a run of a forwarder that does nothing, on the same path.
        spare: a floor that is used only where too few packets queue.
        cpu: the CPU that serves packets, where the trace covers several.

    Raises:
        RunDirectoryError: a run cannot be read, or this one does not say what a packet takes.

    """
    packets = served_packets(run)
    host = traced(run, cpu=cpu)
    causes = of_trace(run, host, packets) if host is not None else ()
    queues = int(packets.queued.packets.sum()) >= ENOUGH
    if floor is None and not queues and packets.batch == 1:
        floor = spare
    if floor is not None:
        if packets.batch > 1:
            raise RunDirectoryError(
                f"{run.path}: up to {packets.batch} packets leave together, so that a latency is"
                " not one packet's; leave the floor out: the departures of batches say what one"
                " takes"
            )
        return _above_floor(run, packets, floor, causes if host is not None else None)
    if queues:
        return _of_queued(run, packets, causes, traced=host is not None)
    if host is None:
        failure = RunDirectoryError(
            f"{run.path}: what a packet takes of the CPU is unknown: the run has no trace, and"
            f" {int(packets.queued.packets.sum()):,} of its packets waited for another one,"
            f" expected {ENOUGH:,}"
        )
        failure.add_note(
            Remedy(
                "{floor} names a run of a forwarder that does nothing, on the same path; or"
                " measure with trace: true, in bursts, or at a higher rate"
            )
        )
        raise failure
    return _of_latency(run, packets, causes)


def _of_queued(
    run: RunDirectory, packets: ServedPackets, causes: tuple[Cause, ...], *, traced: bool
) -> QueueModel:
    """Take the service times of packets that waited: they are those under load."""
    services = packets.queued
    net_ns = services.end_ns - services.begin_ns - services.stolen_ns(_all(causes))
    net_ns = np.maximum(net_ns, 0.0)
    means = [
        float(net_ns[part].sum() / services.packets[part].sum())
        for part in stretches(services.end_ns, packets.span_ns)
        if services.packets[part].size
    ]
    each_ns = net_ns / services.packets
    mean_ns = float(net_ns.sum() / services.packets.sum())
    of_means = of_stretches(np.array(means))
    edges = (edge + mean_ns - of_means.value for edge in (of_means.low, of_means.high))
    t_cpu_ns = Estimate(mean_ns, *edges)
    warnings = []
    if not traced:
        warnings.append("without a trace, what took the CPU is part of the service times")
    alone = packets.alone
    if alone.begin_ns.size:
        whole_ns = alone.end_ns - alone.begin_ns - alone.stolen_ns(_all(causes))
        transport_ns = max(float(np.median(whole_ns - alone.packets * np.median(each_ns))), 0.0)
    else:
        transport_ns = 0.0
        warnings.append("no packet found the device idle: predictions lack the transport")
    return QueueModel(
        run=run.name,
        basis="queued",
        traced=traced,
        packets=packets,
        transport_ns=transport_ns,
        service_at_ns=np.repeat(services.end_ns, services.packets),
        service_ns=np.repeat(each_ns, services.packets),
        t_cpu_ns=t_cpu_ns,
        causes=causes,
        warnings=tuple(warnings),
    )


def _above_floor(
    run: RunDirectory, packets: ServedPackets, floor: RunDirectory, causes: tuple[Cause, ...] | None
) -> QueueModel:
    """Take latencies less the median of a floor; the CPU time is that of the medians."""
    alone = packets.alone
    if alone.begin_ns.size < ENOUGH:
        raise RunDirectoryError(
            f"{run.path}: {alone.begin_ns.size:,} of its packets found the device idle, expected"
            f" {ENOUGH:,}: leave the floor out, the queue says what a packet takes"
        )
    least = _median(floor)
    t_cpu_ns = difference(_median(run), least)
    if t_cpu_ns.value <= 0:
        raise RunDirectoryError(
            f"{floor.path}: the floor's median latency, {units.time(least.value)}, is not below"
            " that of the run: expected the run of a forwarder that does nothing"
        )
    traced = causes is not None
    if causes is None:
        causes, met = of_captures(run, packets, alone.begin_ns)
        chosen = ~met
        stolen = np.zeros(alone.begin_ns.size)
    else:
        stolen = alone.stolen_ns(_all(causes))
        chosen = np.ones(alone.begin_ns.size, dtype=bool)
    service_ns = np.maximum(alone.end_ns - alone.begin_ns - stolen - least.value, 0.0)
    return QueueModel(
        run=run.name,
        basis="floor",
        traced=traced,
        packets=packets,
        transport_ns=least.value,
        service_at_ns=alone.end_ns[chosen],
        service_ns=service_ns[chosen],
        t_cpu_ns=t_cpu_ns,
        causes=causes,
        warnings=(),
    )


_WHOLE = (
    "too few packets waited for another one to tell the CPU's time from the transport: the whole"
    " latency is taken as CPU time, and R_max is too low; give a floor, or measure in bursts or at"
    " a higher rate"
)


def _of_latency(run: RunDirectory, packets: ServedPackets, causes: tuple[Cause, ...]) -> QueueModel:
    alone = packets.alone
    whole_ns = np.maximum(alone.end_ns - alone.begin_ns - alone.stolen_ns(_all(causes)), 0.0)
    parts = [whole_ns[part] for part in stretches(alone.end_ns, packets.span_ns)]
    means = [float(part.mean()) for part in parts if part.size]
    return QueueModel(
        run=run.name,
        basis="latency",
        traced=True,
        packets=packets,
        transport_ns=0.0,
        service_at_ns=alone.end_ns,
        service_ns=whole_ns,
        t_cpu_ns=of_stretches(np.array(means)),
        causes=causes,
        warnings=(_WHOLE,),
    )


def _all(causes: tuple[Cause, ...]) -> Stalled:
    return Stalled.of([cause.when for cause in causes])


def _median(run: RunDirectory) -> Estimate:
    """Return the median latency with its interval of order statistics."""
    found = next((one for one in run.summary.latency_ns.quantiles if one.p == "0.5"), None)
    if found is None or found.value is None:
        raise RunDirectoryError(f"{run.path}: its summary lacks the median latency")
    low = found.value if found.low is None else found.low
    high = found.value if found.high is None else found.high
    return Estimate(float(found.value), float(low), float(high))
