"""Record of the meters of a run: ``energy.json``, made and read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.energy.uncertainty import rectangular
from tailtrim.errors import RunDirectoryError, RunError
from tailtrim.rundir import ENERGY
from tailtrim.rundir.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tailtrim.energy.recorder import Recorder, Stretch
    from tailtrim.energy.series import Series
    from tailtrim.nodes.meters import Channel, Meter

SCHEMA = "tailtrim.energy/1"
#: The states of a device: it is not started; it waits for packets; packets pass it.
IDLE, READY, LOADED = "idle", "ready", "loaded"


@dataclass(frozen=True, slots=True)
class State:
    """A state in a run: its power, and its uncertainty by the meter's resolution and accuracy.

    ``watts`` is ``None`` where it is not known; ``problem`` says why.
    """

    watts: float | None
    type_b_w: float
    duration_s: float
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurement of a node's meter in a run."""

    node: str
    meter: str
    accuracy_percent: float | None
    states: dict[str, State]


def record(
    meters: Mapping[str, Meter], recorder: Recorder, packets_per_s: float, packets: int
) -> dict[str, Any]:
    """Return what ``energy.json`` holds.

    Args:
        meters: by the names of their nodes.
        recorder: the recorder that has read them.
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


@dataclass(frozen=True, slots=True)
class RunEnergy:
    """Content of ``energy.json``: the load, and the measurement of each meter."""

    packets_per_s: float
    nodes: tuple[Measured, ...]


def read(run: Path) -> RunEnergy | None:
    """Read the file of a run directory; ``None`` where no meter was read.

    Raises:
        RunDirectoryError: the file is not what was written.

    """
    place = run / ENERGY
    if not place.is_file():
        return None
    try:
        raw = parsed(place.read_text("utf-8"))
        if raw["schema"] != SCHEMA:
            found = raw["schema"]
            raise RunDirectoryError(f"{place}: the schema is {found!r}, expected {SCHEMA!r}")
        nodes = tuple(_read_node(str(name), told) for name, told in raw["nodes"].items())
        return RunEnergy(float(raw["packets_per_s"]), nodes)
    except OSError as error:
        raise RunDirectoryError(f"{place}: cannot be read: {error.strerror}") from error
    except (ArithmeticError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunDirectoryError(f"{place}: not what meters measured ({error})") from error


def _read_node(name: str, told: dict[str, Any]) -> Measured:
    states = {
        state: State(
            watts=None if one["watts"] is None else float(one["watts"]),
            type_b_w=float(one.get("type_b_w") or 0.0),
            duration_s=float(one["duration_s"]),
            problem=one.get("problem"),
        )
        for state, one in told["states"].items()
    }
    accuracy = told["accuracy_percent"]
    return Measured(
        node=name,
        meter=str(told["meter"]),
        accuracy_percent=None if accuracy is None else float(accuracy),
        states=states,
    )
