"""Bounds of a device's latencies where the generator was late.

Let packets be due at times a, and be sent at a + l, with the lateness l. The device serves one
after the other and never rests while a packet waits. Then

* each packet leaves at most by the excess e later than if all had been punctual. The excess is at
  most the largest lateness before. It does not grow while packets are punctual, and is at most the
  latency of each of them, since no packet leaves before it is due: so e is at most the smallest
  latency since the last late packet.
* the latency of a packet under punctual load is at least the measured one less e, and at most the
  measured one plus l.

A packet is bad where its latency less the excess is not within the deadline, good where its latency
plus its lateness is, and unknown between: late packets, and punctual ones in the queue that these
made. Unknown packets count for neither side. That takes for granted that the device is as good
while the generator is late as otherwise.

Of a device that loses what overflows, packets that come late cost at most as many others: without
them it would have lost no more than with all of them punctual.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.nodes.clocks import BY_NIC
from tailtrim.results import DEPARTURES

if TYPE_CHECKING:
    from tailtrim.results import RunDirectory

Integers = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class LateSpan:
    """A time, of the clock of the stamps, in which packets were sent up to ``late_ns`` late."""

    from_ns: int
    to_ns: int
    late_ns: int


def late_spans(run: RunDirectory) -> list[LateSpan] | None:
    """Return when the generator of a run was late, in order; ``None`` where that is not known.

    Raises:
        RunDirectoryError: the log is damaged.

    """
    log = run.path / DEPARTURES
    # The log has the system's clock, a NIC stamps by its own.
    taps = run.capture().get("taps", {}).values()
    if not log.exists() or any(tap.get("stamps") == BY_NIC for tap in taps):
        return None
    try:
        with log.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines)
            if "late_ns" not in (rows.fieldnames or ()):
                return None
            found = [
                LateSpan(int(row["from_ns"]), int(row["to_ns"]), int(row["late_ns"]))
                for row in rows
                if row["kind"] == "late"
            ]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise RunDirectoryError(f"{log}: not a log of departures ({error})") from error
    return sorted(found, key=lambda one: one.from_ns)


def beyond(
    ingress_ns: Integers, latency_ns: Integers, spans: list[LateSpan], deadline_ns: int
) -> tuple[Flags, Flags]:
    """Return which packets miss a deadline, and for which packets that is unknown.

    Args:
        ingress_ns: when packets entered the device, in any order.
        latency_ns: their latencies.
        spans: when the generator was late, in order.
        deadline_ns: the first latency that is too long.

    """
    order = np.argsort(ingress_ns, kind="stable")
    ingress_ns, latency_ns = ingress_ns[order], latency_ns[order]
    excess_ns, late_ns = np.zeros_like(latency_ns), np.zeros_like(latency_ns)
    begins = np.searchsorted(ingress_ns, [one.from_ns for one in spans])
    ends = np.searchsorted(ingress_ns, [one.to_ns for one in spans], side="right")
    following = [*begins, ingress_ns.size][1:]
    carried_ns = 0
    for one, begin, end, after in zip(spans, begins, ends, following, strict=True):
        carried_ns = max(carried_ns, one.late_ns)
        excess_ns[begin:end], late_ns[begin:end] = carried_ns, one.late_ns
        if end < after:
            least_ns = np.minimum.accumulate(latency_ns[end:after])
            excess_ns[end:after] = np.minimum(least_ns, carried_ns)
            carried_ns = max(int(excess_ns[after - 1]), 0)
    bad = latency_ns - excess_ns >= deadline_ns
    good = latency_ns + late_ns < deadline_ns
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return bad[place], (~bad & ~good)[place]


def late_packets(spans: list[LateSpan], pps: float, *, beyond_ns: float) -> int:
    """Return how many packets were sent late at most, in spans with a lateness beyond a limit.

    Packets sent in a span were due from its beginning, less the lateness, to its end.
    """
    return sum(
        math.ceil(pps * (one.to_ns - one.from_ns + one.late_ns) / 1e9)
        for one in spans
        if one.late_ns > beyond_ns
    )
