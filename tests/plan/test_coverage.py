"""Clocks that a plan's packets would not cover."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tailtrim.laboratory.plan import load
from tailtrim.laboratory.plan.coverage import notes

if TYPE_CHECKING:
    from pathlib import Path


def noted(folder: Path, traffic: str) -> list[str]:
    plan = folder / "plan.yml"
    plan.write_text(f"name: e\ndut: {{preset: bridge}}\ntraffic: {{{traffic}}}\n", encoding="utf-8")
    return notes(load(plan)[1])


def test_a_constant_rate_that_keeps_to_the_tick_is_told_once(tmp_path: Path) -> None:
    (note,) = noted(tmp_path, "rate_pps: 10000, duration_s: 20")
    for fact in ("cbr", "10,000 packets/s", "20 s", "(16 % of", "16 % of 250 Hz", "golden"):
        assert fact in note


@pytest.mark.parametrize(
    "traffic",
    [
        "rate_pps: 10000, duration_s: 20, schedule: golden",
        "rate_pps: 10000, duration_s: 20, schedule: poisson",
        "rate_pps: 200000, duration_s: 20",
        # Within 300 s, clocks that are 0.3 ppm apart have moved by 90 µs.
        "rate_pps: 10000, duration_s: 300",
        "schedule: 'replay:none.pcap'",
    ],
)
def test_schedules_that_cover_all_clocks_are_not_told(tmp_path: Path, traffic: str) -> None:
    assert noted(tmp_path, traffic) == []
