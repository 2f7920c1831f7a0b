"""Differences of which a plan says beforehand that its runs can show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tailtrim.cli.application import app

if TYPE_CHECKING:
    from pathlib import Path


def checked(plan: str | Path) -> str:
    told = CliRunner().invoke(app, ["run", str(plan), "--dry-run"])
    assert told.exit_code == 0, told.output
    return " ".join(told.stderr.split())


@pytest.mark.parametrize(
    ("repeat", "facts"),
    [
        (1, ("repeat: 1 is too few", "expected 4 or more")),
        (3, ("3 runs a value", "40 % or more", '"no difference" cannot be', "(repeat: 4)")),
        (8, ("8 runs a value", "17 % or more", "none beyond what is told")),
    ],
)
def test_a_plan_with_factors_says_what_it_can_show(
    tmp_path: Path, repeat: int, facts: tuple[str, ...]
) -> None:
    plan = tmp_path / "plan.yml"
    plan.write_text(
        "name: e\ndut: {preset: forward, batch: $batch}\nfactors: {batch: [1, 32]}\n"
        f"traffic: {{rate_pps: 1000, schedule: golden, duration_s: 5}}\nrepeat: {repeat}\n"
    )
    told = checked(plan)
    for fact in facts:
        assert fact in told


def test_the_examples_say_what_they_can_show() -> None:
    assert "5 runs a value: if they differ by 10 % among themselves, a diff" in checked(
        "containers"
    )
    kernels = checked("kernels")
    assert "3 boots a kernel and boot line" in kernels
    assert '"no difference" cannot be, of fewer than 4 (boots: 4)' in kernels


def test_a_plan_that_compares_nothing_says_nothing(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yml"
    plan.write_text("name: e\ndut: {preset: bridge}\ntraffic: {rate_pps: 1000, duration_s: 5}\n")
    assert "four of five" not in checked(plan)
