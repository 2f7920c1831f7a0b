"""The power of a node now, for those who want to know that its meter works: :func:`watts`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tailtrim.nodes.meters.meter import EVERY_S

if TYPE_CHECKING:
    from tailtrim.nodes.meters.meter import Meter, Start


def watts(meter: Meter, start: Start) -> float:
    """Return the power of a node; where a meter counts energy, over a second.

    Args:
        meter: which one.
        start: starts a command on the node.

    Raises:
        HostError: the meter cannot be read.
        MissingPackageError: what asks it is not installed.

    """
    with meter.opened(start) as reader:
        whole = [number for number, channel in enumerate(reader.channels) if channel.whole]
        before, began_s = reader.read(), time.monotonic()
        if not any(reader.channels[number].counts for number in whole):
            return sum(before[number].power_w or 0.0 for number in whole)
        time.sleep(EVERY_S)
        after, took_s = reader.read(), time.monotonic() - began_s
        used_j = 0.0
        for number in whole:
            added_j = (after[number].energy_j or 0.0) - (before[number].energy_j or 0.0)
            used_j += added_j if added_j >= 0 else added_j + (reader.channels[number].wraps_j or 0)
        return used_j / took_s
