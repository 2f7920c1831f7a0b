"""Bands of predictions: as wide as the run that they are from and a further one vary together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from simulated_queues import World, left_run

from tailtrim.analysis.queueing import predicted
from tailtrim.analysis.queueing.replay import REPLAYS, band, widening

if TYPE_CHECKING:
    from pathlib import Path

_STRETCHES = 20


def test_a_run_that_is_much_longer_than_replays_is_known(tmp_path: Path) -> None:
    left_run(tmp_path / "run", World(seconds=0.5), np.random.default_rng(21))
    device = predicted(tmp_path / "run", rates_pps=[40_000]).device
    for times, expected in ((1, 1.549), (3, 1.190), (100, 1.007)):
        packets = round(device.packets.span_ns * 40_000 / 1e9 / times)
        assert widening(device, 40_000, most=packets) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("pieces", "wider"), [(20, 1.549), (60, 1.190)])
def test_bands_contain_a_further_run_as_often_as_they_say(pieces: int, wider: float) -> None:
    # Simulated replays of a run whose stretches are normal and whose quantile is their mean.
    random = np.random.default_rng(22)
    within = 0
    for run in random.normal(size=(1_000, pieces)):
        drawn = random.choice(run, (REPLAYS, _STRETCHES)).mean(axis=1)
        found = band(np.exp(drawn).tolist(), wider)
        within += found.low <= np.exp(random.normal(size=_STRETCHES).mean()) <= found.high
    # 95 %, and three standard errors; the smallest and the largest alone contain 82 and 90 %.
    assert 929 <= within <= 971
