"""Ratios beside those of a record: losses are found, noise is passed over."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def gate() -> Iterator[Any]:
    """Import the script from its folder, which is outside of packages."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import gate  # noqa: PLC0415 - see above

        yield gate
    finally:
        sys.path.remove(str(BENCHMARKS))


def turns(gate: Any, middle: float, seed: int) -> list[list[float]]:
    """Return ratios as noisy as those of a quiet machine: 2 % in a turn, 2 % between turns."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    levels = [middle * dice.gauss(1, 0.02) for _ in range(gate.TURNS)]
    return [[level * dice.gauss(1, 0.02) for _ in range(gate.TIMES)] for level in levels]


def test_a_loss_beyond_the_margin_is_found_and_noise_is_none(gate: Any) -> None:
    was = {"a": turns(gate, 1.3, 1), "gone": [[1.0]]}
    told, worse = gate.table(was, {"a": turns(gate, 1.3, 2), "new": turns(gate, 2.0, 3)})
    assert not worse
    assert "| new | | 2.0" in told
    assert "no record" in told
    assert "| gone | 1.00 | | | not here |" in told
    told, worse = gate.table(was, {"a": turns(gate, 1.5, 4)})
    assert worse
    assert "**worse**" in told
    # A gain passes.
    assert not gate.table(was, {"a": turns(gate, 1.1, 5)})[1]
