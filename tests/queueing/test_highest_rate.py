"""R_max and its interval: published inputs, and how often it holds."""

from __future__ import annotations

import numpy as np
import pytest

from tailtrim.analysis.queueing import Estimate, highest_rate
from tailtrim.analysis.queueing.estimate import STRETCHES, difference, exact, of_stretches, total


@pytest.mark.parametrize(
    ("stolen_us", "t_cpu_us", "kpps", "printed"),
    [
        # Tables IV and V of "5G QoS: Impact of Security Functions on Latency"; it cuts digits off.
        (2949.9, 11.4, 87.46, 87.4),
        (8891.6, 12.6, 78.66, 78.7),
        (2949.9, 14.3, 69.72, 69.7),
        (8891.6, 15.1, 65.64, 65.6),
    ],
)
def test_published_inputs_give_the_published_rates(
    stolen_us: float, t_cpu_us: float, kpps: float, printed: float
) -> None:
    found = highest_rate(exact(stolen_us * 1e3), exact(t_cpu_us * 1e3))
    assert round(found.value / 1e3, 2) == kpps
    assert abs(found.value / 1e3 - printed) < 0.1
    assert found.low == pytest.approx(found.value) == pytest.approx(found.high)


def test_intervals_of_both_widen_it() -> None:
    t_cpu = Estimate(10_000, 9_900, 10_200)
    alone = highest_rate(exact(0), t_cpu)
    assert alone.low == pytest.approx(1e9 / 10_200)
    assert alone.high == pytest.approx(1e9 / 9_900)
    both = highest_rate(Estimate(1e8, 0.5e8, 1.5e8), t_cpu)
    assert both.low / both.value < alone.low / alone.value
    assert both.high / both.value > alone.high / alone.value


def test_sides_stay_apart() -> None:
    found = difference(Estimate(10, 7, 11), Estimate(4, 0, 4.5))
    assert found.value == 6
    assert found.low == pytest.approx(6 - np.hypot(3, 0.5))
    assert found.high == pytest.approx(6 + np.hypot(1, 4))
    assert total([]).value == 0


def test_few_stretches_have_a_wide_interval() -> None:
    """Regression: the mean of a few stretches had the narrow interval of twenty."""
    found = of_stretches(np.array([1.0, 2.0, 3.0]))
    assert [found.low, found.high] == pytest.approx([-0.484, 4.484], abs=5e-4)
    assert of_stretches(np.array([2.0])) == exact(2.0)


def test_no_time_left_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no time is left for packets \(1\.00 s of each"):
        highest_rate(exact(1e9), exact(10_000))


def test_intervals_hold_as_often_as_they_say() -> None:
    random = np.random.default_rng(3)
    held = 0
    for _ in range(2_000):
        stolen = of_stretches(random.normal(5e7, 2e7, STRETCHES))
        t_cpu = of_stretches(random.normal(10_000, 400, STRETCHES))
        found = highest_rate(stolen, t_cpu)
        held += found.low <= (1e9 - 5e7) / 10_000 <= found.high
    # 95 %, and five standard deviations of a binomial law of 2,000.
    assert abs(held / 2_000 - 0.95) < 0.025
