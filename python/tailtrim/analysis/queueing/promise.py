"""The highest rate and the largest burst at which a device would hold a promise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.analysis.queueing.replay import MOST, Change, Load, band, replay, widening
from tailtrim.analysis.slo import objectives

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.analysis.queueing.estimate import Estimate
    from tailtrim.analysis.queueing.model import QueueModel
    from tailtrim.analysis.slo import Objective

#: A quantile is predicted where a replay has so many packets above it.
ABOVE = 10
# The largest burst that is tried, and the precision of rates.
_MOST_BURST, _PRECISION = 4096, 0.01
# The highest rate that is tried, as a multiple of R_max, whose interval may have no upper bound.
_MOST_RATE = 2
# Replays for a promise have so many packets above its quantile, if there are that many.
_SEARCHED = 100


@dataclass(frozen=True, slots=True)
class Most:
    """The most that holds a promise; with the upper edge of the band, and with the lower one.

    ``None``: not even the least that was tried. ``beyond`` says that the most that was tried holds
    it.
    """

    value: float | None
    surely: float | None
    perhaps: float | None
    beyond: bool


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise, the highest rate that holds it, and at ``rate_pps`` the largest burst."""

    text: str
    rate: Most
    burst: Most
    rate_pps: float


def promised(
    device: QueueModel, text: str, change: Change, *, most_pps: Estimate, burst: int | None
) -> Promise:
    """Search what holds a promise: rates up to ``most_pps``, bursts at the run's own rate.

    Rates end at the upper bound of ``most_pps``, at most at twice its value.

    Raises:
        ValueError: the promise is not about a quantile or the mean, or needs more packets.

    """
    asked = objectives(text)
    for objective in asked:
        _check(objective)
    packets = max((_needed(objective) for objective in asked), default=0)
    packets = min(max(packets, MOST // 10), MOST)

    @cache
    def edges(rate_pps: float, burst: int | None) -> tuple[bool, bool, bool]:
        """Whether all limits are kept by the value, and by both edges of the band."""
        found = _latencies(device, Load(rate_pps, burst), change, packets, asked)
        limits = np.array([float(objective.limit) for objective in asked])
        wider = widening(device, rate_pps, most=packets)
        bands = np.array([band(values, wider) for values in zip(*found, strict=True)])
        value, low, high = ((edge < limits).all() for edge in bands.T)
        return bool(value), bool(high), bool(low)

    highest_pps = min(most_pps.high, _MOST_RATE * most_pps.value)

    def fastest(edge: int) -> tuple[float | None, bool]:
        return _highest(lambda pps: edges(pps, burst)[edge], highest_pps)

    def largest(edge: int) -> tuple[float | None, bool]:
        return _largest(lambda number: edges(device.packets.rate_pps, number)[edge])

    return Promise(text, _most(fastest), _most(largest), device.packets.rate_pps)


def _most(search: Callable[[int], tuple[float | None, bool]]) -> Most:
    (value, beyond), (surely, _), (perhaps, _) = (search(edge) for edge in range(3))
    return Most(value, surely, perhaps, beyond)


def _check(objective: Objective) -> None:
    if objective.what not in ("quantile", "mean") or objective.adjusted:
        raise ValueError(
            f"{str(objective)!r}: the queue of the model loses nothing and has no largest latency,"
            " expected a limit of a quantile or the mean, such as 'p99.9 < 200us'"
        )
    if _needed(objective, ABOVE) > MOST:
        raise ValueError(
            f"{str(objective)!r}: the quantile needs {_needed(objective, ABOVE):,} packets, a"
            f" replay has {MOST:,}"
        )


def _needed(objective: Objective, above: int = _SEARCHED) -> int:
    return round(above / (1 - float(objective.p))) if objective.p else 0


def _latencies(
    device: QueueModel, load: Load, change: Change, packets: int, asked: list[Objective]
) -> list[list[float]]:
    return [
        [
            float(latency_ns.mean())
            if objective.p is None
            else float(np.quantile(latency_ns, float(objective.p), method="inverted_cdf"))
            for objective in asked
        ]
        for latency_ns in replay(device, load, change, most=packets)
    ]


def _highest(holds: Callable[[float], bool], most: float) -> tuple[float | None, bool]:
    """Return the highest rate that holds, to 1 %, by halving; and whether ``most`` does."""
    if holds(most):
        return most, True
    low, high = 0.0, most
    while high - low > _PRECISION * most:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low or None, False


def _largest(holds: Callable[[int], bool]) -> tuple[float | None, bool]:
    """Return the largest burst that holds, by doubling and halving."""
    if not holds(1):
        return None, False
    low = 1
    while low < _MOST_BURST and holds(2 * low):
        low *= 2
    if low >= _MOST_BURST:
        return low, True
    high = 2 * low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, False
