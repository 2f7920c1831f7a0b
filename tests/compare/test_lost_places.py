"""Places of lost packets among those that arrived, in a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.analysis.compare.sources import LOST_NS, Repetition
from tailtrim.analysis.roundtrip import Series, write_run
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_START_NS = 1_795_258_777_000_000_000
# Packets of each second that has some.
_PER_S = 200


def test_losses_behind_a_silence_stay_in_their_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: after seconds without packets, all lost ones of a second came at one place."""
    number = np.arange(20 * _PER_S)
    second = np.where(number < 10 * _PER_S, 0, 20) + number // _PER_S
    sent_ns = _START_NS + second * 10**9 + number % _PER_S * (10**9 // _PER_S)
    answered = (second != 35) | (number % 2 == 0)
    took_ns = np.full(number.size, 10_000)
    write_run(tmp_path / "run", Series("paused", sent_ns, answered, took_ns, 66))
    monkeypatch.setattr("tailtrim._native.NativeRepetition", lambda table: table)
    table = Repetition("run", RunDirectory(tmp_path / "run")).native_sent
    (places,) = np.nonzero(table["latency_ns"].to_numpy() == LOST_NS)  # type: ignore[index]
    assert places.tolist() == list(range(15 * _PER_S, 16 * _PER_S, 2))
