"""Readings of a meter in order of time, and the energy of an interval: :class:`Series`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.meters import EVERY_S
from tailtrim.laboratory.nodes.meters.powercap import MOST_W

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tailtrim.laboratory.nodes.meters import Channel, Value

#: Readings that are further apart than so many intervals leave a hole: single lost answers do not.
_MOST_MISSED = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading: its time (monotonic clock of this host, and UTC), and a value for each channel."""

    at_s: float
    time: datetime
    values: Sequence[Value]


class Series:
    """The readings of one meter.

    Args:
        channels: quantities that it measures.
        every_s: how often it is read.

    """

    def __init__(self, channels: Sequence[Channel], every_s: float = EVERY_S) -> None:
        """Begin without readings."""
        self.channels, self._every_s = channels, every_s
        self.readings: list[Reading] = []

    def add(self, reading: Reading) -> None:
        """Take the next reading."""
        self.readings.append(reading)

    def joules(self, begin_s: float, end_s: float) -> list[float]:
        """Return the energy of each channel from one moment to another.

        Counters are read between readings by a straight line, power is integrated by trapezoids.

        Raises:
            RunError: readings around or within that time are missing, or a counter was reset.

        """
        within = self._around(begin_s, end_s)
        times = [one.at_s for one in within]
        found = []
        for number, channel in enumerate(self.channels):
            values = [one.values[number] for one in within]
            if channel.counts:
                counter = [value.energy_j or 0.0 for value in values]
                total = unwrapped(times, counter, channel)
                found.append(_at(times, total, end_s) - _at(times, total, begin_s))
            else:
                power = [value.power_w or 0.0 for value in values]
                found.append(_integrated(times, power, (begin_s, end_s)))
        return found

    def _around(self, begin_s: float, end_s: float) -> list[Reading]:
        """Return the readings from the last before the time to the first after it."""
        times = [one.at_s for one in self.readings]
        first, last = bisect_right(times, begin_s) - 1, bisect_left(times, end_s)
        if first < 0 or last >= len(times) or end_s <= begin_s:
            raise RunError("the meter was not read at its begin and end")
        within = self.readings[first : last + 1]
        longest_s = max(after.at_s - before.at_s for before, after in pairwise(within))
        if longest_s > _MOST_MISSED * self._every_s:
            raise RunError(f"the meter could not be read for {longest_s:.1f} s")
        return within


def unwrapped(times: Sequence[float], counter: Sequence[float], channel: Channel) -> list[float]:
    """Return an energy counter that does not begin again, from 0 on.

    Raises:
        RunError: it decreases, not by a wrap: it was reset.

    """
    total = [0.0]
    for (before_s, before), (after_s, after) in pairwise(zip(times, counter, strict=True)):
        step = after - before
        if step < 0:
            step += channel.wraps_j or 0.0
            if step < 0 or step > MOST_W * (after_s - before_s):
                told = f"{channel.name}: its counter fell from {before:,.3f} to {after:,.3f} J"
                raise RunError(f"{told} without a wrap: it was reset")
        total.append(total[-1] + step)
    return total


def _integrated(times: Sequence[float], power: Sequence[float], ends: tuple[float, float]) -> float:
    begin_s, end_s = ends
    inside = [(at, value) for at, value in zip(times, power, strict=True) if begin_s < at < end_s]
    points = [(begin_s, _at(times, power, begin_s)), *inside, (end_s, _at(times, power, end_s))]
    return sum(
        (after_s - before_s) * (before + after) / 2
        for (before_s, before), (after_s, after) in pairwise(points)
    )


def _at(times: Sequence[float], values: Sequence[float], at_s: float) -> float:
    """Return a value between readings, on a straight line."""
    place = min(max(bisect_right(times, at_s), 1), len(times) - 1)
    before_s, after_s = times[place - 1], times[place]
    share = (at_s - before_s) / (after_s - before_s)
    return values[place - 1] + share * (values[place] - values[place - 1])
