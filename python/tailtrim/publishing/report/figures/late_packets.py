"""Figures of a run whose late packets are explained: by cause over time, and without causes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.cause_wording import labels
from tailtrim.publishing.report.figures import percentiles
from tailtrim.publishing.report.figures.distributions import measured
from tailtrim.publishing.report.figures.figure import Axis, Bars, Figure, Line, Panel
from tailtrim.publishing.report.figures.looks import DARK, LIGHT, MARKERS, Look, shaded
from tailtrim.publishing.report.figures.timelines import time_axis
from tailtrim.publishing.report.inputs.run_tables import ReportedRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.explain.host_events import HostEvents
    from tailtrim.analysis.explain.host_explanation import (
        HostCause,
        HostExplanation,
        Key,
        LatePacket,
    )
    from tailtrim.publishing.report.inputs.run_tables import Integers

# Places among the names of a figure, and so the looks; the costliest causes are 1, 2, …
OTHER, QUEUE, UNKNOWN = 0, 5, 6
MOST_CAUSES = 4
# They differ as much as looks can.
OTHER_LOOK = Look("#8A6D00", "#F0D264", "v")
QUEUE_LOOK = Look("#16191D", "#E8EAED", "P")
_UNKNOWN_LOOK = Look("#858B92", "#A9AFB6", "X")
_MOST = 3
# Without a cause of less the curve is the same.
_LEAST_PPM = 10_000
# Between fewer quantiles a line would be a guess.
_DENSE = 8
_MOST_PACKETS = 5_000
# To the ns in a run of a quarter of an hour: the page zooms to a single interrupt.
_DIGITS = 12
_LANE_LETTERS = 18


@dataclass(frozen=True, slots=True)
class ExplainedRun:
    """A run, why its packets were late, and what the trace holds if it was kept.

    ``looks`` are those of :attr:`causes` and of the spare places behind them, see :func:`alike`.
    """

    run: ReportedRun
    explanation: HostExplanation
    events: HostEvents | None
    looks: tuple[Look, ...] = ()

    @property
    def number(self) -> int:
        """The run's place among those of the report, from 1."""
        return self.run.index + 1

    @property
    def causes(self) -> tuple[HostCause, ...]:
        """The costliest causes, which have looks of their own."""
        costly = [cause for cause in self.explanation.verdict.causes if cause.excess_ns > 0]
        return tuple(costly[:MOST_CAUSES])

    @property
    def labels(self) -> list[str]:
        """Names of :attr:`causes`."""
        return labels(self.explanation.verdict.causes)[: len(self.causes)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the looks."""
        spare = [""] * (MOST_CAUSES - len(self.causes))
        return ("other causes", *self.labels, *spare, "queueing behind packets", "unknown")


def alike(runs: Sequence[ExplainedRun]) -> list[ExplainedRun]:
    """Give each cause one look in the figures of all runs; the costliest over all comes first."""
    cost_ns: Counter[Key] = Counter()
    for run in runs:
        cost_ns.update({cause.key: cause.excess_ns for cause in run.causes})
    looks = {
        key: _look(place, len(cost_ns)) for place, (key, _) in enumerate(cost_ns.most_common())
    }
    spare = (OTHER_LOOK,) * MOST_CAUSES
    return [
        replace(run, looks=(*(looks[cause.key] for cause in run.causes), *spare)[:MOST_CAUSES])
        for run in runs
    ]


def _look(place: int, count: int) -> Look:
    """Return the look of one of so many causes: beyond a few, shades of the same colours."""
    hue, shade = place % MOST_CAUSES, place // MOST_CAUSES
    shades = -(-count // MOST_CAUSES)
    return Look(*shaded((LIGHT[hue], DARK[hue]), shade, shades), MARKERS[hue + 1])


def late_packets(explained: ExplainedRun, most_events: int) -> Figure | None:
    """Return the figure of late packets over time, with at most so many events."""
    verdict, first = explained.explanation.verdict, explained.run.summary.ingress_tap.first_ns
    if not verdict.late or first is None:
        return None
    late = sorted(verdict.late, key=lambda packet: -packet.latency_ns)[:_MOST_PACKETS]
    at = np.array([packet.arrival_ns for packet in late], dtype=np.int64) - first
    span_s = (explained.run.summary.ingress_tap.last_ns or 0) - first
    last_s = max(span_s, int(at.max())) / units.SECOND
    x = replace(time_axis(last_s), digits=_DIGITS)
    panels = [_packets(explained, late, at, x)]
    told = ""
    if explained.events is not None:
        lanes, left_out = _lanes(explained, explained.events, first, x, most_events)
        panels += lanes
        told = _told(explained, left_out, any_lane=bool(lanes))
    return Figure(
        key=f"late-{explained.number}",
        title="Late packets by cause, and what ran on the CPU",
        caption=_caption(explained, len(late)) + told,
        panels=tuple(panels),
        names=explained.names,
        looks=(OTHER_LOOK, *explained.looks, QUEUE_LOOK, _UNKNOWN_LOOK),
    )


def dominant(late: LatePacket, causes: int) -> int:
    """Return the look of what cost a packet most, where so many causes have one."""
    parts = [(part_ns, -place) for place, part_ns in late.causes]
    most_ns, place = max(parts, default=(0, 0))
    if late.queue_ns >= max(most_ns, late.unknown_ns, 1):
        return QUEUE
    if late.unknown_ns >= most_ns:
        return UNKNOWN
    return 1 - place if -place < causes else OTHER


def lane_name(text: str) -> str:
    """Return a label short enough for an axis; the legend has the whole one."""
    return text if len(text) <= _LANE_LETTERS else f"{text[: _LANE_LETTERS - 1]}…"


def _packets(explained: ExplainedRun, late: list[LatePacket], at: Integers, x: Axis) -> Panel:
    latency = np.array([packet.latency_ns for packet in late], dtype=np.int64)
    look = np.array([dominant(packet, len(explained.causes)) for packet in late])
    y = Axis.of_times("Latency", int(latency.min()), int(latency.max()))
    order = np.argsort(at, kind="stable")
    lines = []
    for one in np.unique(look).tolist():
        mine = order[look[order] == one]
        lines.append(Line(one, at[mine] / units.SECOND, latency[mine] / y.unit_ns, draw="points"))
    return Panel(x, y, tuple(lines))


def _lanes(
    explained: ExplainedRun, events: HostEvents, first_ns: int, x: Axis, most: int
) -> tuple[list[Panel], int]:
    """Return the panel of events, if there are any, and how many it leaves out."""
    window = round(x.low * units.SECOND) + first_ns, round(x.high * units.SECOND) + first_ns
    events = events.within(*window)
    if not events.start_ns.size:
        return [], 0
    lane, names = _sorted_into_lanes(explained, events)
    chosen = longest(events.end_ns - events.start_ns, lane, most)
    bars = []
    for place in range(len(names)):
        mine = chosen[lane[chosen] == place]
        bars.append(
            Bars(
                place + 1 if place < len(explained.causes) else OTHER,
                len(names) - 1 - place,
                (events.start_ns[mine] - first_ns) / units.SECOND,
                (events.end_ns[mine] - first_ns) / units.SECOND,
            )
        )
    used = sorted({bar.lane for bar in bars if bar.start.size})
    y = Axis.of_lanes(tuple(lane_name(names[len(names) - 1 - lane]) for lane in used))
    shown = tuple(replace(bar, lane=used.index(bar.lane)) for bar in bars if bar.start.size)
    return [Panel(x, y, (), bars=shown)], int(events.start_ns.size - chosen.size)


def _sorted_into_lanes(explained: ExplainedRun, events: HostEvents) -> tuple[Integers, list[str]]:
    """Return the lane of each event, from the top, and the lanes' names."""
    causes = len(explained.causes)
    names = [*explained.labels, "device away", "holes", "others"]
    lane = events.places([cause.key for cause in explained.causes])
    serving = explained.explanation.verdict.serving
    away = [
        kind == "thread" and name == serving and detail in {"asleep", "stopped", "throttled"}
        for kind, name, detail in events.keys
    ]
    rest = [
        causes if gone else causes + 1 if kind == "hole" else causes + 2
        for gone, (kind, _, _) in zip(away, events.keys, strict=True)
    ]
    others = lane == causes
    lane[others] = np.array(rest, dtype=np.int64)[events.key[others]]
    return lane, names


def longest(long_ns: Integers, lane: Integers, most: int) -> Integers:
    """Choose at most so many events, the longest of each lane; what one leaves others get."""
    sizes = {one: int((lane == one).sum()) for one in np.unique(lane).tolist()}
    left, chosen = most, []
    for done, (one, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        fair = min(size, left // (len(sizes) - done))
        mine = np.flatnonzero(lane == one)
        chosen.append(mine[np.argsort(-long_ns[mine], kind="stable")[:fair]])
        left -= fair
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)


def _caption(explained: ExplainedRun, shown: int) -> str:
    verdict = explained.explanation.verdict
    packets = f"The {units.count(shown)} packets from {units.time(verdict.late_from_ns)} on"
    if shown < len(verdict.late):
        packets = f"The worst {units.count(shown)} of {units.count(len(verdict.late))} late packets"
    return f"{packets}, by the time they came in. Colour and marker: the largest cause of each."


def _told(explained: ExplainedRun, left_out: int, *, any_lane: bool) -> str:
    cpu = explained.explanation.cpu
    if not any_lane:
        return f" Nothing else ran on CPU {cpu} meanwhile."
    text = f" Below: what else ran on CPU {cpu}, a lane for each of the costliest causes."
    if left_out:
        text += f" {units.count(left_out)} events are left out, the shortest of each lane."
    return text


def without_causes(explained: ExplainedRun) -> Figure | None:
    """Latency by percentile of a run, and what the quantiles were without each of its causes."""
    run = explained.run
    causes = [cause for cause in explained.causes[:_MOST] if cause.share_ppm >= _LEAST_PPM]
    # The looks are those of the causes in the other figures; the first one is the run's here.
    alone = ReportedRun(OTHER, run.name, run.directory)
    if not measured([alone]) or not causes:
        return None
    panel = percentiles.panel([alone])
    samples = run.summary.samples
    at = np.array([percentiles.reciprocal(p) for p in explained.explanation.quantiles])
    known = np.argsort(at)[: int((at <= samples).sum())]
    lines = tuple(
        Line(
            look,
            at[known],
            np.array(cause.without_ns, dtype=float)[known] / panel.y.unit_ns,
            draw="line" if known.size >= _DENSE else "points",
            part="without",
        )
        for look, cause in enumerate(causes, start=1)
        if cause.without_ns
    )
    return Figure(
        key=f"without-{explained.number}",
        title="Latency by percentile, without the costliest causes",
        caption=(
            "The tail of this run, with its confidence interval, and what its quantiles were"
            " without each of the costliest causes: busy periods replayed with all of its stalls"
            " removed, the queue behind them included."
        ),
        panels=(replace(panel, lines=panel.lines + lines),),
        looks=(QUEUE_LOOK, *explained.looks[: len(causes)]),
        names=(run.name, *(f"without {label}" for label in explained.labels[: len(causes)])),
    )
