"""The record of what meters measured in a run, ``energy.json``, to be written."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.energy.measured import SCHEMA
from tailtrim.analysis.energy.uncertainty import rectangular
from tailtrim.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.laboratory.energy.recorder import Recorder, Stretch
    from tailtrim.laboratory.energy.series import Series
    from tailtrim.laboratory.nodes.meters import Channel, Meter


def record(
    meters: Mapping[str, Meter], recorder: Recorder, packets_per_s: float, packets: int
) -> dict[str, Any]:
    """Return what ``energy.json`` holds.

    Args:
        meters: by the names of their nodes.
        recorder: what has read them.
        packets_per_s: rate at which packets were sent to the device.
        packets: how many were sent.

    """
    told = {}
    for name, (reader, series, failed) in recorder.meters.items():
        meter = meters[name]
        told[name] = {
            "kind": meter.kind,
            "meter": meter.place,
            "accuracy_percent": meter.accuracy_percent,
            "every_s": reader.every_s,
            "seldom": reader.why,
            "channels": [_channel(channel) for channel in reader.channels],
            "readings": len(series.readings),
            "failed": len(failed),
            "failures": list(dict.fromkeys(failed)),
            "states": {one.state: _state(meter, series, one) for one in recorder.stretches},
        }
    return {
        "schema": SCHEMA,
        "packets": packets,
        "packets_per_s": packets_per_s,
        "order": [one.state for one in recorder.stretches],
        "nodes": told,
    }


def _channel(channel: Channel) -> dict[str, Any]:
    unit = "J" if channel.counts else "W"
    return {
        "name": channel.name,
        "whole": channel.whole,
        f"resolution_{unit}": channel.resolution,
        "wraps_J": channel.wraps_j,
    }


def _state(meter: Meter, series: Series, stretch: Stretch) -> dict[str, Any]:
    duration_s = stretch.end_s - stretch.begin_s
    told: dict[str, Any] = {
        "began": stretch.began.isoformat(timespec="milliseconds"),
        "duration_s": round(max(duration_s, 0.0), 3),
    }
    try:
        joules = series.joules(stretch.begin_s, stretch.end_s)
    except RunError as error:
        return told | {"joules": None, "watts": None, "problem": str(error)}
    parts = list(zip(series.channels, joules, strict=True))
    whole = sum(energy for channel, energy in parts if channel.whole)
    watts = whole / duration_s
    return told | {
        "joules": whole,
        "watts": watts,
        "type_b_w": type_b_w(series.channels, watts, duration_s, meter.accuracy_percent),
        "channels": {channel.name: energy / duration_s for channel, energy in parts},
        "problem": None,
    }


def type_b_w(
    channels: Sequence[Channel], watts: float, duration_s: float, accuracy_percent: float | None
) -> float:
    """Return the standard uncertainty of a power that a meter measured for a time.

    The error of a step is not smaller in the mean of many readings: a steady power is always cut
    the same way. Energy counters have one at each end, of a step and of what is used between two
    updates.
    """
    variance = 0.0
    for channel in channels:
        if not channel.whole:
            continue
        if channel.counts:
            steps = channel.resolution + watts * channel.update_s
            variance += 2 * rectangular(steps / 2 / duration_s) ** 2
        else:
            variance += rectangular(channel.resolution / 2) ** 2
    if accuracy_percent is not None:
        variance += rectangular(watts * accuracy_percent / 100) ** 2
    return math.sqrt(variance)
