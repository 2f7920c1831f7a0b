"""Result of a search on the page of its experiment and in a terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from trials import Simulated

from tailtrim.laboratory.capacity.record import Capacity
from tailtrim.laboratory.capacity.result import EndReason, GoalBound, GoalResult
from tailtrim.publishing.report import capacity_wording, write_experiment
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.capacity.runner import CapacitySearch


def test_the_page_has_the_bounds_and_the_curve(
    searching: Callable[..., CapacitySearch], tmp_path: Path
) -> None:
    searching(Simulated())
    write_experiment(recorded(tmp_path / "out"), tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text("utf-8")
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert "<h2>Capacity</h2>" in page
    for told in ("NDR (none lost)", "PDR (0.5 % lost)", "p99 &lt; 30ms (95 % confidence)"):
        assert told in page
    for fact in ("Dashed upright", "meets each goal"):
        assert fact in page
    figure = (tmp_path / "report" / "figures" / "sweep-rate.svg").read_text("utf-8")
    assert "NDR, PDR" in figure
    assert "p99 &lt; 30ms" in figure


BOUND = GoalBound(120_000, 3, 3, 6.0, verified=True)
FOUND = GoalResult(
    "NDR", BOUND, replace(BOUND, load=122_400, good_trials=0), 120_000.0, EndReason.WIDTH
)
SEARCH = {
    "unit": "packets/s",
    "smallest": 300,
    "largest": 300_000,
    "goals": [{"name": "NDR", "decided_by": "trials", "loss_ratio": 0.0}],
}


def notes(found: GoalResult) -> list[str]:
    return capacity_wording.notes(Capacity(SEARCH, (), (found,)))


def test_bounds_are_told_in_thousands() -> None:
    (row,) = capacity_wording.goals(Capacity(SEARCH, (), (FOUND,))).rows
    *bounds, trials = row.cells
    assert (row.name, *bounds) == ("NDR (none lost)", "120.0", "122.4", "120.0", "2.0 %")
    lower, upper = str(trials).split(", ")
    for told, good in ((lower, 3), (upper, 0)):
        assert told.startswith(f"{good} of 3 good")
        assert "6 s" in told


@pytest.mark.parametrize(
    ("found", "facts"),
    [
        (
            replace(FOUND, upper=None, ended=EndReason.GENERATOR, limit="the generator was late"),
            ("at least 120.0 kpkt/s", "not the device's", "(the generator was late)"),
        ),
        (
            replace(FOUND, upper=None, ended=EndReason.HIGHEST),
            ("at least 120.0 kpkt/s", "highest load", "plan"),
        ),
        (
            replace(FOUND, lower=None, ended=EndReason.LOWEST),
            ("not met", "lowest load", "0.3 kpkt/s"),
        ),
        (
            replace(FOUND, ended=EndReason.NOT_DECIDED, not_decided=(121_000,)),
            ("between the bounds", "not decided", "(121.0 kpkt/s)", "near", "clusters"),
        ),
        (
            replace(FOUND, upper=replace(BOUND, load=122_400, good_trials=0, cold=True)),
            ("upper bound", "at the start of each trial only", "cold device", "skip_s"),
        ),
        (
            replace(FOUND, lower=replace(BOUND, verified=None)),
            ("measured again", "lower bound 120.0 kpkt/s", "budget ended"),
        ),
    ],
)
def test_what_the_bounds_do_not_say_is_told(found: GoalResult, facts: tuple[str, ...]) -> None:
    told = notes(found)[0]
    assert told.startswith("NDR: ")
    for fact in facts:
        assert fact in told
