"""One late packet: from when the device became busy until it left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report import cause_wording
from tailtrim.publishing.report.figures.figure import Axis, Bars, Figure, Line, Panel
from tailtrim.publishing.report.figures.late_packets import (
    MOST_CAUSES,
    OTHER,
    OTHER_LOOK,
    QUEUE_LOOK,
    lane_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.explain.host_events import HostEvents
    from tailtrim.analysis.explain.host_explanation import Key, LatePacket
    from tailtrim.publishing.report.figures.late_packets import ExplainedRun
    from tailtrim.publishing.report.inputs.run_tables import Floats, Integers, ReportedRun

# Looks: the packet itself, then the run's costliest causes, then all others.
_PACKET, _ELSE = OTHER, MOST_CAUSES + 1
_MOST_LANES = 7
_MOST_BARS = 300
# Most points of the line of the queue: as many as an axis has dots.
_MOST_STEPS = 1_500
# Margin on either side of the axis, as a share of what it shows.
_MARGIN = 0.03
_PARTS = 4


def packets(explained: ExplainedRun, most: int) -> Iterator[Figure]:
    """Yield a figure for each of the worst packets, no two of one busy period."""
    verdict = explained.explanation.verdict
    came_ns, left_ns = explained.run.samples
    busy_ns = _busy_since(explained.run, verdict.service.base_ns - verdict.service.service_ns)
    seen: set[int] = set()
    for late in sorted(verdict.late, key=lambda late: (-late.latency_ns, late.arrival_ns)):
        # By departure the samples are in order.
        out_ns = late.arrival_ns + late.latency_ns
        low, high = np.searchsorted(left_ns, [out_ns, out_ns + 1])
        same = low + np.flatnonzero(came_ns[low:high] == late.arrival_ns)
        if not same.size or (since_ns := int(busy_ns[same[0]])) in seen:
            continue
        seen.add(since_ns)
        yield _figure(explained, late, since_ns, len(seen))
        if len(seen) == most:
            return


def _busy_since(run: ReportedRun, transport_ns: int) -> Integers:
    """Return since when the device was busy as each packet left.

    A busy period begins where a packet came after the one ahead had been served.
    """
    came_ns, left_ns = run.samples
    begins = np.ones(came_ns.size, dtype=bool)
    begins[1:] = came_ns[1:] >= left_ns[:-1] - transport_ns
    first = np.maximum.accumulate(np.where(begins, np.arange(came_ns.size), 0))
    return np.minimum(came_ns[first], came_ns)


def _figure(explained: ExplainedRun, late: LatePacket, since_ns: int, number: int) -> Figure:
    left_ns = late.arrival_ns + late.latency_ns
    span_ns = max(left_ns - since_ns, 1)
    x = Axis.of_times("Time since the device became busy", 0, span_ns)
    margin = _MARGIN * span_ns / x.unit_ns
    x = replace(x, scale="linear", low=-margin, high=span_ns / x.unit_ns + margin, digits=10)
    queue = _queue(explained.run, since_ns, x)
    lanes, names, left_out = _lanes(explained, late, since_ns, x)
    at_s = (late.arrival_ns - (explained.run.summary.ingress_tap.first_ns or 0)) / units.SECOND
    return Figure(
        key=f"packet-{explained.number}-{number}",
        title=f"A packet that took {units.time(late.latency_ns)}",
        caption=_caption(explained, late, at_s, left_out),
        panels=(queue, lanes),
        names=names,
        looks=(QUEUE_LOOK, *explained.looks, OTHER_LOOK),
    )


def _queue(run: ReportedRun, since_ns: int, x: Axis) -> Panel:
    """Return how many packets were inside: taps stamped them in, and not yet out."""
    came, left = run.samples
    low_ns, high_ns = (since_ns + round(edge * x.unit_ns) for edge in (x.low, x.high))
    # By departure they are in order, by arrival too but for packets that overtook others.
    within = (left >= low_ns) & (came <= high_ns)
    inside_at_once = int(((came < low_ns) & within).sum())
    at = np.concatenate([came[within], left[within]])
    step = np.repeat([1, -1], int(within.sum()))
    seen = (at >= low_ns) & (at <= high_ns)
    at, step = at[seen], step[seen]
    order = np.lexsort((-step, at))
    count = inside_at_once + np.cumsum(step[order])
    at_x: Floats = (np.append(low_ns, at[order]) - since_ns) / x.unit_ns
    count = np.append(inside_at_once, count).astype(float)
    keep = _thinned(at_x, count)
    at_x, count = np.append(at_x[keep], x.high), np.append(count[keep], count[-1])
    y = Axis.of_counts("Packets inside", int(count.max()), unit="packets inside")
    return Panel(x, y, (Line(_PACKET, at_x, count),))


def _thinned(x: Floats, count: Floats) -> Integers:
    """Keep the largest count of each of so many parts, and both ends."""
    if x.size <= _MOST_STEPS:
        return np.arange(x.size)
    part = np.floor((x - x[0]) / (x[-1] - x[0]) * (_MOST_STEPS - 1)).astype(np.int64)
    order = np.lexsort((-count, part))
    first = np.ones(order.size, dtype=bool)
    first[1:] = part[order][1:] != part[order][:-1]
    return np.unique(np.concatenate([[0, x.size - 1], order[first]]))


def _lanes(
    explained: ExplainedRun, late: LatePacket, since_ns: int, x: Axis
) -> tuple[Panel, tuple[str, ...], int]:
    names = ["this packet", *explained.names[1:_ELSE], "other causes"]
    came = (late.arrival_ns - since_ns) / x.unit_ns
    passage = np.array([came]), np.array([came + late.latency_ns / x.unit_ns])
    rows: list[tuple[str, int, Floats, Floats]] = [("this packet", _PACKET, *passage)]
    left_out = 0
    if explained.events is not None:
        low_ns, high_ns = (since_ns + round(edge * x.unit_ns) for edge in (x.low, x.high))
        events = explained.events.within(low_ns, high_ns)
        costliest = [cause.key for cause in explained.causes]
        for key, mine in _costliest_first(events, low_ns, high_ns, costliest)[: _MOST_LANES - 1]:
            shown = mine[np.argsort(events.start_ns[mine] - events.end_ns[mine])[:_MOST_BARS]]
            shown = np.sort(shown)
            left_out -= shown.size
            rows.append(
                (
                    _name(explained, key),
                    1 + costliest.index(key) if key in costliest else _ELSE,
                    (events.start_ns[shown] - since_ns) / x.unit_ns,
                    (events.end_ns[shown] - since_ns) / x.unit_ns,
                )
            )
        left_out += events.start_ns.size
    top = len(rows) - 1
    bars = tuple(
        Bars(look, top - place, np.maximum(start, x.low), np.minimum(end, x.high))
        for place, (_, look, start, end) in enumerate(rows)
    )
    y = Axis.of_lanes(tuple(lane_name(name) for name, *_ in reversed(rows)))
    return Panel(x, y, (), bars=bars), tuple(names), left_out


def _costliest_first(
    events: HostEvents, low_ns: int, high_ns: int, costliest: list[Key]
) -> list[tuple[Key, Integers]]:
    """Return who took the CPU in the window, the run's costliest causes first, then by time."""
    long_ns = np.minimum(events.end_ns, high_ns) - np.maximum(events.start_ns, low_ns)
    groups = [
        (events.keys[key], np.flatnonzero(events.key == key)) for key in np.unique(events.key)
    ]
    return sorted(
        groups,
        key=lambda group: (
            costliest.index(group[0]) if group[0] in costliest else len(costliest),
            -int(long_ns[group[1]].sum()),
        ),
    )


def _name(explained: ExplainedRun, key: Key) -> str:
    verdict = explained.explanation.verdict
    for name, cause in zip(cause_wording.labels(verdict.causes), verdict.causes, strict=True):
        if cause.key == key:
            return name
    return cause_wording.named(key)


def _caption(explained: ExplainedRun, late: LatePacket, at_s: float, left_out: int) -> str:
    verdict = explained.explanation.verdict
    parts = [part for part in late.parts(cause_wording.labels(verdict.causes)) if part[0] > 0]
    told = [f"{units.time(part_ns)} {name}" for part_ns, name in parts[:_PARTS]]
    rest_ns = sum(part_ns for part_ns, _ in parts[_PARTS:])
    if rest_ns:
        told.append(f"{units.time(rest_ns)} others")
    text = (
        f"It came in at {at_s:.6f} s. Of its excess of {units.time(late.excess_ns)}:"
        f" {', '.join(told) or 'nothing'}. Above: packets between the taps. Below: what ran on the"
        " CPU; a bar reaches from its start to its end, with what interrupted it."
    )
    if left_out:
        text += f" {units.count(left_out)} events are left out."
    return text
