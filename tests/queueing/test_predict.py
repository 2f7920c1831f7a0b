"""Predictions from runs of simulated devices, whose truth is known, and the command."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from simulated_queues import ORIGIN_NS, World, left_run, simulated
from typer.testing import CliRunner, Result

from tailtrim.analysis.queueing import Compared, PredictedQuantile, highest_rate, predicted
from tailtrim.analysis.roundtrip import Series, write_run
from tailtrim.cli.application import app
from tailtrim.errors import RunDirectoryError
from tailtrim.publishing.report.capacity_prediction import PredictedCurve
from tailtrim.publishing.report.terminal.prediction_text import lines
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.analysis.queueing import Estimate, Prediction

# Long services, so that a replay has few packets and tests are fast.
WORLD = World("normal", mean_ns=40_000.0, tick_ns=60_000.0, thread_hz=30.0, seconds=4.0)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("traced") / "run"
    left_run(place, WORLD.at(0.4), np.random.default_rng(11))
    return place


def true_ns(world: World, p: str) -> float:
    long = replace(world, seconds=100.0)
    return float(np.quantile(simulated(long, np.random.default_rng(12)).latency_ns, float(p)))


def contains(found: Prediction, world: World, quantiles: tuple[str, ...]) -> None:
    (point,) = found.points
    told = {one.p: one for one in point.quantiles}
    for p in quantiles:
        # Stamps are whole nanoseconds.
        assert told[p].low_ns - 1 <= true_ns(world, p) <= told[p].high_ns + 1, p


def test_the_trace_tells_service_and_stalls_apart(traced: Path) -> None:
    found = predicted(traced, rates_pps=[WORLD.rate_pps])
    assert (found.basis, found.batch) == ("queued", 1)
    assert found.t_cpu_ns.low < WORLD.mean_ns < found.t_cpu_ns.high
    assert found.transport_ns == pytest.approx(WORLD.transport_ns, abs=200)
    assert found.r_max_pps.low < WORLD.r_max_pps < found.r_max_pps.high
    stolen = {one.cause: one.us_per_s for one in found.stolen}
    assert stolen["irq local_timer"].value == pytest.approx(15_000, rel=0.02)
    assert stolen["thread thief 77"].low < 3_000 < stolen["thread thief 77"].high


def test_latency_at_another_rate(traced: Path) -> None:
    world = WORLD.at(0.8)
    contains(predicted(traced, rates_pps=[world.rate_pps]), world, ("0.5", "0.9", "0.99"))


def test_without_the_tick(traced: Path) -> None:
    world = WORLD.at(0.7)
    found = predicted(traced, rates_pps=[world.rate_pps], without=["tick"])
    assert [one.cause for one in found.stolen if "timer" in one.cause] == []
    assert found.changes == ("without tick",)
    contains(found, replace(world, tick_hz=0.0), ("0.5", "0.9", "0.99"))


def test_on_a_faster_cpu(traced: Path) -> None:
    world = WORLD.at(0.7)
    found = predicted(traced, rates_pps=[world.rate_pps], faster=0.2)
    faster = replace(world, mean_ns=world.mean_ns / 1.2)
    assert found.r_max_pps.low < faster.r_max_pps < found.r_max_pps.high
    contains(found, faster, ("0.5", "0.9", "0.99"))


def test_exponential_service_as_its_closed_form_says(tmp_path: Path) -> None:
    world = World("exponential", 40_000.0, tick_hz=0.0, thread_hz=0.0, rate_pps=10_000, seconds=8)
    left_run(tmp_path / "run", world, np.random.default_rng(13))
    (point,) = predicted(tmp_path / "run", rates_pps=[17_500]).points
    for one in point.quantiles[:3]:
        expected_ns = -math.log(1 - float(one.p)) * 40_000 / 0.3 + world.transport_ns
        assert one.low_ns <= expected_ns <= one.high_ns


def test_batches_and_bursts_of_others(tmp_path: Path) -> None:
    # Of batches only means are known: services that differ would be told as more alike.
    world = World("constant", 40_000.0, tick_hz=0.0, burst=16, batch=16, rate_pps=10_000)
    left_run(tmp_path / "run", world, np.random.default_rng(14))
    found = predicted(tmp_path / "run", rates_pps=[10_000])
    # The first packet of each burst goes alone.
    assert (found.batch, found.burst, found.batch_least) == (15, 16, False)
    assert [one.position for one in found.positions] == list(range(1, 17))
    contains(found, world, ("0.5", "0.9"))
    fewer = predicted(tmp_path / "run", rates_pps=[10_000], batch=4)
    contains(fewer, replace(world, batch=4), ("0.5", "0.9"))
    longer = predicted(tmp_path / "run", rates_pps=[10_000], burst=24)
    contains(longer, replace(world, burst=24, batch=15), ("0.5", "0.9"))


def test_a_floor_gives_the_difference_of_medians(tmp_path: Path) -> None:
    quiet = World("constant", 20_000.0, thread_hz=0.0, tick_ns=30_000.0, rate_pps=9_970, seconds=8)
    left_run(tmp_path / "run", quiet, np.random.default_rng(15), traced=False)
    none = replace(quiet, mean_ns=1.0, tick_hz=0.0)
    left_run(tmp_path / "floor", none, np.random.default_rng(16), traced=False)
    found = predicted(tmp_path / "run", floor=tmp_path / "floor", rates_pps=[9_970])
    assert (found.basis, found.traced) == ("floor", False)
    assert found.t_cpu_ns.value == pytest.approx(20_000, rel=0.01)
    # The tick takes 7.5 ms of a second.
    (tick,) = (one for one in found.stolen if one.cause == "250.0 Hz")
    assert tick.us_per_s.value == pytest.approx(7_500, rel=0.25)


def test_a_spare_floor_is_not_used_where_packets_queue(traced: Path, tmp_path: Path) -> None:
    slow = replace(WORLD, mean_ns=90_000.0, rate_pps=2_000)
    left_run(tmp_path / "floor", slow, np.random.default_rng(19), traced=False)
    spare = RunDirectory(tmp_path / "floor")
    assert predicted(traced, spare=spare, rates_pps=[5_000]).basis == "queued"


def test_a_promise_is_held_up_to_a_rate_and_a_burst(tmp_path: Path) -> None:
    world = World("constant", 40_000.0, 4_000.0, tick_hz=0, thread_hz=0, burst=4, rate_pps=5_000)
    left_run(tmp_path / "run", world, np.random.default_rng(17))
    held = predicted(tmp_path / "run", rates_pps=[5_000], promise="p99 < 330us").promise
    assert held is not None
    # N packets take N times 40 µs, with 4 µs of transport, less the gaps of 0.7 µs.
    assert held.burst.value == held.burst.surely == 8
    assert held.rate.value is not None
    assert held.rate.value > 20_000


def test_a_promise_is_searched_where_the_highest_rate_has_no_upper_bound(
    traced: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the search divided by zero, and prediction.json had Infinity."""

    def unbounded(stolen: Estimate, t_cpu: Estimate) -> Estimate:
        return replace(highest_rate(stolen, t_cpu), high=math.inf)

    monkeypatch.setattr("tailtrim.analysis.queueing.prediction.highest_rate", unbounded)
    words = ("--rate", "5k,10k", "--assert", "p50 < 100us", "--out", tmp_path / "out")
    told = run("predict", traced, *words)
    assert told.exit_code == 0, told.output
    assert re.search(r"R_max +24\.\d kpkt/s \(\S+ to ∞\)", told.output)
    record = json.loads((tmp_path / "out" / "prediction.json").read_text())
    assert record["r_max_pps"]["high"] is None
    assert 10_000 < record["promise"]["rate"]["value"] < record["r_max_pps"]["value"]
    curve = PredictedCurve.of(record)
    assert curve is not None
    assert curve.r_max_pps.high == math.inf


def test_a_pause_is_no_part_of_the_cpu_time(tmp_path: Path) -> None:
    """Regression: a stretch of the run without packets made t_CPU NaN."""
    calm = World("constant", 5_000.0, 100.0, thread_hz=0, rate_pps=5_000, seconds=2)
    left_run(tmp_path / "run", calm, np.random.default_rng(18))
    sample = tmp_path / "run" / "sample.parquet"
    table = pq.read_table(sample)
    at_ns = table["ingress_ns"].to_numpy() - ORIGIN_NS
    pq.write_table(table.filter((at_ns < 500_000_000) | (at_ns > 800_000_000)), sample)
    found = predicted(tmp_path / "run", rates_pps=[5_000])
    assert found.basis == "latency"
    assert found.t_cpu_ns.value == pytest.approx(calm.mean_ns + calm.transport_ns, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"without": ["gremlins"]},
            r"no cause is called 'gremlins'; the run has: 'irq local_timer",
        ),
        ({"burst": 0}, r"burst 0: expected 1 or more"),
        ({"faster": -1.0}, r"faster -1: expected more than -1"),
        ({"rates_pps": [0.0]}, r"rates: expected more than 0"),
        ({"rates_pps": [10.0], "promise": "loss < 1e-4"}, r"'loss < 1e-4': the queue of the model"),
        ({"rates_pps": [10.0], "promise": "p99.9999 < 1ms"}, r"needs 10,000,000 packets"),
    ],
)
def test_options_that_make_no_sense(traced: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predicted(traced, **options)  # type: ignore[arg-type]


def test_a_run_without_trace_and_floor_says_what_is_needed(tmp_path: Path) -> None:
    calm = World("constant", 1_000.0, tick_hz=0, thread_hz=0, rate_pps=5_000, seconds=2)
    left_run(tmp_path / "run", calm, np.random.default_rng(18), traced=False)
    told = run("predict", tmp_path / "run")
    assert told.exit_code == 2
    assert "unknown: the run has no trace, and" in told.stderr
    assert "hint: --floor RUN names a run of a forwarder that does nothing" in told.stderr
    left_run(
        tmp_path / "floor", replace(calm, mean_ns=1.0), np.random.default_rng(18), traced=False
    )
    spare = RunDirectory(tmp_path / "floor")
    assert predicted(tmp_path / "run", spare=spare, rates_pps=[5_000]).basis == "floor"


def test_a_floor_that_is_slower_is_an_error(traced: Path, tmp_path: Path) -> None:
    slow = replace(WORLD, mean_ns=90_000.0, rate_pps=2_000)
    left_run(tmp_path / "floor", slow, np.random.default_rng(19), traced=False)
    with pytest.raises(RunDirectoryError, match=r"floor's median latency, .* is not below"):
        predicted(traced, floor=tmp_path / "floor")


def test_an_overloaded_rate_has_no_percentiles(traced: Path) -> None:
    (point,) = predicted(traced, rates_pps=[1.5 * WORLD.r_max_pps]).points
    assert (point.state, point.quantiles) == ("overload", ())


def test_the_command_compares_and_leaves_files(traced: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    left_run(other, replace(WORLD.at(0.6), seconds=2.0), np.random.default_rng(20), traced=False)
    told = run("predict", traced, other, "--rate", "5k,10k", "--out", tmp_path / "out")
    assert told.exit_code == 0, told.output
    assert "R_max       24." in told.output
    assert "predicted" in told.output
    record = json.loads((tmp_path / "out" / "prediction.json").read_text())
    assert record["schema"] == "tailtrim.prediction/1"
    assert [point["rate_pps"] for point in record["points"]] == [5_000, 10_000]
    assert {row["run"] for row in record["compared"]} == {"other"}
    assert record["found_pps"][1] is None
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {
        ".json",
        ".svg",
        ".csv",
    }


def test_a_what_if_is_not_told_as_found_by_runs_that_were_as_it_was(
    traced: Path, tmp_path: Path
) -> None:
    other, out = tmp_path / "other", tmp_path / "out"
    left_run(other, replace(WORLD.at(0.6), seconds=16.0), np.random.default_rng(20), traced=False)
    words = ("predict", traced, other, "--rate", "5k,10k", "--faster", "20%", "--out", out)
    told = run(*words).output
    assert "measured as it was" in told
    assert "found" not in told
    figure = (out / "predicted.svg").read_text()
    assert "on a CPU 20 % faster" in figure
    # Also what was measured and could not be predicted has its place in the legend.
    assert "99.9 %" in figure


@pytest.mark.parametrize(
    ("option", "error"),
    [
        (("--rate", "fast"), 'rate "fast": expected'),
        (("--rate", "0"), 'rate "0": expected'),
        (("--rate", "1Gbit/s"), "rate '1Gbit/s': expected packets per second"),
        (("--faster", "-100%"), "--faster '-100%': expected"),
    ],
)
def test_a_wrong_option_is_named(traced: Path, option: tuple[str, str], error: str) -> None:
    told = run("predict", traced, *option)
    assert told.exit_code == 2
    assert f"error: {error}" in told.stderr


def test_a_model_that_misses_its_own_run_predicts_nothing(tmp_path: Path) -> None:
    """One packet in 30 is held for 3 ms elsewhere, which no queue of one CPU has."""
    random = np.random.default_rng(11)
    world = WORLD.at(0.4)
    seen = simulated(world, random)
    came = np.rint(seen.arrival_ns).astype(np.int64) + ORIGIN_NS
    took = np.rint(seen.latency_ns).astype(np.int64)
    took[random.random(took.size) < 1 / 30] += 3_000_000
    write_run(tmp_path / "held", Series("held", came, np.ones(came.size, bool), took, 60))
    told = run("predict", tmp_path / "held")
    assert (told.exit_code, told.stdout) == (5, "")
    assert re.search(
        r"held: not predicted, .* 9\.9 kpkt/s: p90 predicted \S+ to \S+ µs, measured", told.stderr
    )
    assert re.search(
        r"p99 predicted \S+ to \S+ µs, measured 3,\d+\.\d to 3,\d+\.\d µs", told.stderr
    )


def test_a_row_that_misses_what_was_measured_is_marked(traced: Path) -> None:
    hit = PredictedQuantile("0.99", 50_000.0, 40_000.0, 60_000.0)
    rows = [
        Compared("other", rate, 0.0, "0.99", took, took, took, hit)
        for rate, took in ((9_000.0, 50_000), (9_900.0, 500_000))
    ]
    found = replace(predicted(traced), compared=tuple(rows))
    marked = [line for line in lines(found) if line.endswith("missed")]
    assert len(marked) == 1
    assert marked[0].startswith("   9.9")
    # Of a device with changes, the rows are of another one.
    changed = replace(found, changes=("without tick",))
    assert not [line for line in lines(changed) if line.endswith("missed")]


def test_a_model_that_other_runs_refute_predicts_nothing(traced: Path, tmp_path: Path) -> None:
    slower = replace(WORLD.at(0.4), mean_ns=70_000.0, seconds=2.0)
    left_run(tmp_path / "other", slower, np.random.default_rng(2), traced=False)
    told = run("predict", traced, tmp_path / "other")
    assert (told.exit_code, told.stdout) == (5, "")
    assert "error: other: not predicted" in told.stderr
    # A change is not refuted by runs without it.
    assert run("predict", traced, tmp_path / "other", "--without", "tick").exit_code == 0
