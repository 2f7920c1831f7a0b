"""Steps and drifts of a series."""

from __future__ import annotations

import numpy as np
import pytest

from tailtrim.analysis.change_points import SHORTEST, Drift, Step, changes, pettitt, unchanged

#: Series of each test: a share among them has a standard error of 3.5 % at most.
_SERIES = 200


def _series(count: int, r: float, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return series about 100 with a standard deviation of 5, whose neighbours correlate by r."""
    random = np.random.default_rng(seed)
    values = np.empty((_SERIES, count))
    values[:, 0] = random.normal(size=_SERIES)
    noise = random.normal(size=(_SERIES, count)) * np.sqrt(1 - r**2)
    for at in range(1, count):
        values[:, at] = r * values[:, at - 1] + noise[:, at]
    return 100 + 5 * values


@pytest.mark.parametrize(("r", "most"), [(0.0, 0.04), (0.5, 0.06), (0.9, 0.12)])
def test_what_does_not_change_is_seldom_told_to(r: float, most: float) -> None:
    assert sum(bool(changes(one)) for one in _series(120, r, seed=11)) <= most * _SERIES


@pytest.mark.parametrize("r", [0.0, 0.5])
def test_a_step_is_found_where_it_is(r: float) -> None:
    found = [changes(one) for one in _series(240, r, seed=12) + 12 * (np.arange(240) >= 80)]
    at = [[one.at for one in told if isinstance(one, Step)] for told in found]
    assert sum(any(abs(place - 80) <= 5 for place in places) for places in at) > 0.8 * _SERIES
    assert sum(len(told) == 1 for told in found) > 0.85 * _SERIES


def test_a_drift_is_one_and_not_many_steps() -> None:
    for one in _series(240, 0.3, seed=13) + 0.2 * np.arange(240):
        (drift, *others) = changes(one)
        assert isinstance(drift, Drift)
        assert drift.slope == pytest.approx(0.2, rel=0.35)
        assert len(others) <= 1


@pytest.mark.parametrize("r", [0.0, 0.5])
def test_what_a_series_says_that_it_would_show_is_shown(r: float) -> None:
    """A step as large as that, in other noise of the same kind."""
    told = [unchanged(one) for one in _series(120, r, seed=20)[:60]]
    beyond = [one.beyond for one in told if one.beyond is not None]
    assert len(beyond) >= 50
    other = _series(120, r, seed=21)
    half = np.arange(120) >= 60
    shown = [bool(changes(one * (1 + by) ** half)) for by, one in zip(beyond, other, strict=False)]
    assert sum(shown) > 0.7 * len(shown)


def test_a_series_that_hides_a_quarter_is_not_decided() -> None:
    random = np.random.default_rng(22)
    verdict = unchanged(random.lognormal(0, 1, size=30))
    assert (verdict.verdict, verdict.beyond) == ("not_decided", None)
    assert (verdict.needed or 0) > 30
    assert unchanged([1.0] * 5).needed == SHORTEST


def test_a_step_without_noise_is_found() -> None:
    assert changes([5000.0] * 60 + [5500.0] * 60) == [Step(60, 5000.0, 5500.0, 500.0)]


@pytest.mark.parametrize("slope", [10.0, 0.1, 1 / 3])
@pytest.mark.parametrize("count", [120, 4_000])
def test_a_drift_without_noise_is_found(slope: float, count: int) -> None:
    (drift,) = changes([100 + slope * at for at in range(count)])
    assert isinstance(drift, Drift)
    assert (drift.begin, drift.end) == (0, count - 1)
    assert drift.slope == pytest.approx(slope)


def test_a_step_is_found_in_values_that_are_mostly_equal() -> None:
    random = np.random.default_rng(16)
    noise = random.normal(0, 0.5, size=(_SERIES, 90))
    levels = np.where(np.arange(90) < 45, 100.0, 110.0)
    for one in 4 * np.round((levels + noise) / 4):
        assert [told.at for told in changes(one) if isinstance(told, Step)] == [45]


def test_a_drift_is_so_much_from_place_to_place_also_over_a_gap() -> None:
    random = np.random.default_rng(17)
    series = 1_000 + 5.0 * np.arange(200) + random.normal(0, 5, size=200)
    series[40:120] = np.nan
    (drift,) = changes(series)
    assert isinstance(drift, Drift)
    assert (drift.begin, drift.end) == (0, 199)
    assert drift.slope == pytest.approx(5.0, rel=0.05)


def test_medians_beside_a_drift_are_those_of_the_values() -> None:
    random = np.random.default_rng(18)
    series = 5_000 + 5.0 * np.arange(120) + random.normal(0, 5, size=120)
    series[20:] -= 100
    drift, step = sorted(changes(series), key=lambda one: isinstance(one, Step))
    assert isinstance(drift, Drift)
    assert isinstance(step, Step)
    assert abs(step.at - 20) <= 1
    assert step.before == np.median(series[: step.at])
    assert step.after == np.median(series[step.at :])
    assert step.by == pytest.approx(-100, rel=0.2)


def test_places_are_those_of_the_series_with_its_gaps() -> None:
    (series, *_) = _series(100, 0.0, seed=14)
    series[50:] += 40
    series[::7] = np.nan
    (step,) = changes(series)
    assert isinstance(step, Step)
    assert step.at in {50, 51}
    assert step.before == pytest.approx(100, abs=3)
    assert step.after == pytest.approx(140, abs=3)


@pytest.mark.parametrize("values", [[], [1.0], [5.0] * 1_000, [1.0, 9.0] * (SHORTEST // 2 - 1)])
def test_short_and_constant_series_have_no_changes(values: list[float]) -> None:
    assert changes(values) == []


def test_the_statistic_is_that_of_all_pairs() -> None:
    random = np.random.default_rng(15)
    for _ in range(50):
        values = random.integers(0, 5, size=random.integers(2, 40)).astype(float)
        sums = [
            abs(sum(np.sign(one - other) for one in values[:at] for other in values[at:]))
            for at in range(1, len(values))
        ]
        at, largest = pettitt(values)
        assert largest == max(sums)
        assert sums[at - 1] == largest
