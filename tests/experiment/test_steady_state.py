"""When a window of a warm-up is steady, and when it is not."""

from __future__ import annotations

import numpy as np
import pytest

from tailtrim.laboratory.experiment.steady_state import PARTS, Window, changes

#: Windows that are simulated. The share that is found in them has a standard error of 1 %.
_WINDOWS = 1_000
_STEADY = np.full(PARTS * 100, 5_000)


def found(shift: float, seed: int) -> float:
    """Return in how many windows a change is found whose first half is so many sigmas higher."""
    random = np.random.default_rng(seed)
    windows = 100 + random.normal(size=(_WINDOWS, PARTS)) * 5
    windows[:, : PARTS // 2] += shift * 5
    return sum(changes(window.tolist()) for window in windows) / _WINDOWS


def test_a_steady_window_is_seldom_refused() -> None:
    assert found(0, seed=1) <= 0.05


def test_a_step_is_found() -> None:
    assert found(2, seed=2) > 0.85
    assert found(4, seed=3) == 1


@pytest.mark.parametrize("level", ["p50", "p99"])
def test_latencies_that_fall_are_told(level: str) -> None:
    latencies = np.tile(np.arange(100), PARTS) + 5_000
    part = latencies.reshape(PARTS, 100)[:9]
    part[:, 97:] *= 10 if level == "p99" else 1
    part[:, :97] *= 2 if level == "p50" else 1
    assert f"latency ({level})" in Window(latencies, None, None).unsteady()


def test_one_late_packet_is_no_change() -> None:
    latencies = _STEADY.copy()
    latencies[150] = 9_000_000
    assert Window(latencies, None, None).unsteady() == []


@pytest.mark.parametrize(
    ("counts", "steady"),
    [
        ([0] * 20, True),
        # It goes on as it began: that is what the device does.
        ([3, 4] * 10, True),
        ([0, 0, 0, 0, 1] * 4, True),
        ([9, 8, 8, 7, 7, 6, 6, 5, 4, 3, 3, 2, 2, 1, 1, 1, 0, 1, 0, 0], False),
        # So few that a test cannot tell.
        ([2] + [0] * 19, False),
        # Start-up, and later a page fault of a program that does nothing.
        ([900, 800, 700] + [0] * 12 + [1] + [0] * 4, False),
        # A busy machine reads seldom: from ten readings the test finds nothing.
        ([900, 800, 700, 0, 0], False),
        ([900, 800, 700, 900, 800], True),
        ([45_006], False),
        ([0], True),
        ([], True),
    ],
)
def test_counts_that_stop_or_go_on_are_steady(counts: list[int], steady: bool) -> None:
    told = Window(_STEADY, counts, counts).unsteady()
    assert told == ([] if steady else ["page faults", "TLB shootdowns"])


def test_without_packets_nothing_is_known() -> None:
    assert Window(_STEADY[: PARTS - 1], None, None).unsteady() == ["too few packets passed"]
