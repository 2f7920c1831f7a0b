"""Output of ``tailtrim energy``: a row for each configuration, and µs gained for each watt."""

from __future__ import annotations

import pytest

from tailtrim.analysis.energy import LOADED, READY, Cost, MeteredNode, RunEnergy, State, costs
from tailtrim.laboratory.experiment.costs import ExperimentCosts
from tailtrim.publishing.report.energy_wording import lines


def measured(label: str, loaded_w: float) -> list[tuple[str, RunEnergy]]:
    """Return three blocks."""
    found = []
    for drift in (-0.2, 0.0, 0.2):
        states = {
            READY: State(42.0 + drift, 0.1, 10.0),
            LOADED: State(loaded_w + drift, 0.1, 10.0),
        }
        node = MeteredNode("dut", "gude outlet 1", 1.0, states)
        found.append((label, RunEnergy(10_000, (node,))))
    return found


def made(*found: tuple[str, float, float]) -> ExperimentCosts:
    """Return configurations by label, watts and p99.9 in µs."""
    runs = [run for label, watts, _ in found for run in measured(label, watts)]
    every: list[Cost] = costs(runs)
    return ExperimentCosts(tuple(every), {label: tail for label, _, tail in found})


def test_a_watt_more_buys_microseconds() -> None:
    (trade,) = made(("idle=haltpoll", 45.0, 80.0), ("idle=poll", 55.0, 30.0)).trades
    assert (trade.label, trade.baseline) == ("idle=poll", "idle=haltpoll")
    assert trade.watts.value == pytest.approx(10)
    assert trade.us_per_watt == pytest.approx(5)
    assert trade.p999_us == pytest.approx(-50)


def test_watts_that_are_not_resolved_have_no_price() -> None:
    (trade,) = made(("a", 45.0, 80.0), ("b", 45.1, 30.0)).trades
    assert trade.us_per_watt is None


def test_the_table_has_uncertainties_prices_and_what_was_refused() -> None:
    found = made(("poll", 55.0, 30.0), ("halt", 45.0, 80.0), ("ready only", 42.1, 80.0))
    text = "\n".join(lines(found))
    assert "55.0 ± 0.4" in text
    assert "1.30 ± 0.03 mJ" in text
    for line, facts in (
        ("halt against poll (dut): ", ("-10.0 ± 0.5 W", "+50.0 µs of p99.9", ": 5 µs of")),
        ("ready only (dut), above ready: ", ("0.1 W ± 0.28 W", "below what is")),
    ):
        (told,) = (one for one in text.splitlines() if one.startswith(line))
        for fact in facts:
            assert fact in told


def test_runs_that_do_not_count_are_told() -> None:
    found = ExperimentCosts(made(("a", 45.0, 80.0)).costs, {}, ("run-001: invalid: late",))
    assert list(lines(found))[-1] == "left out: run-001: invalid: late"
    assert found.as_json()["left_out"] == ["run-001: invalid: late"]
    assert found.as_json()["costs"][0]["p99.9_us"] is None
