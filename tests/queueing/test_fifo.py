"""The queue with stalls, compared with one that goes from event to event, and with closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tailtrim.analysis.queueing import Stalled, departures


def served(
    arrivals: list[float], services: list[float], stalls: list[tuple[float, float]], batch: int
) -> list[float]:
    """Serve packets one step after the other."""
    found: list[float] = []
    now = -math.inf
    first = 0
    while first < len(arrivals):
        now = running(max(now, arrivals[first]), stalls)
        last = first
        while last < min(len(arrivals), first + batch) and arrivals[last] <= now:
            now_done = now
            last += 1
        for each in range(first, last):
            now_done = worked(now_done, services[each], stalls)
        found += [now_done] * (last - first)
        now, first = now_done, last
    return found


def running(at: float, stalls: list[tuple[float, float]]) -> float:
    return next((end for start, end in stalls if start <= at < end), at)


def worked(at: float, need: float, stalls: list[tuple[float, float]]) -> float:
    at = running(at, stalls)
    for start, end in stalls:
        if start >= at:
            if at + need <= start:
                break
            need -= start - at
            at = end
    return at + need


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_queue_that_goes_from_event_to_event(seed: int, batch: int) -> None:
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.exponential(10.0, 200))
    services = random.exponential(random.uniform(2, 9), 200)
    edges = np.sort(random.uniform(0, 2_000, 2 * int(random.integers(0, 20))))
    stalls = Stalled(edges[::2], edges[1::2])
    expected = served(
        arrivals.tolist(),
        services.tolist(),
        list(zip(*map(np.ndarray.tolist, stalls), strict=True)),
        batch,
    )
    assert departures(arrivals, services, stalls, batch=batch) == pytest.approx(expected)


def test_overlapping_stalls_are_one() -> None:
    stalls = Stalled.of(
        [
            (np.array([10.0, 50.0]), np.array([20.0, 60.0])),
            (np.array([15.0, 19.0]), np.array([30.0, 25.0])),
        ]
    )
    assert stalls.start_ns.tolist() == [10, 50]
    assert stalls.end_ns.tolist() == [30, 60]
    assert stalls.until(np.array([5.0, 15.0, 30.0, 55.0, 99.0])).tolist() == [0, 5, 20, 25, 30]
    assert Stalled.of([]).until(np.array([7.0])).tolist() == [0]


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_constant_service_waits_as_pollaczek_and_khinchine_say(load: float) -> None:
    arrivals = np.cumsum(np.random.default_rng(1).exponential(1 / load, 1_000_000))
    left = departures(arrivals, np.ones(arrivals.size), Stalled.of([]))
    wait = (left - arrivals).mean() - 1
    assert wait == pytest.approx(load / (2 * (1 - load)), rel=0.03)


def test_exponential_service_has_exponential_latency() -> None:
    random = np.random.default_rng(2)
    arrivals = np.cumsum(random.exponential(1 / 0.7, 1_000_000))
    latency = departures(arrivals, random.exponential(1, arrivals.size), Stalled.of([])) - arrivals
    for p in (0.5, 0.99, 0.999):
        assert np.quantile(latency, p) == pytest.approx(-math.log(1 - p) / 0.3, rel=0.05)
