"""Power and energy of both sides: runs whose meters were read from files as a kernel lays them."""

from __future__ import annotations

import json
import re
import shutil
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sensor_tree
from pydantic import TypeAdapter
from typer.testing import CliRunner

from tailtrim.analysis.compare import Comparison, EnergyRow, compare
from tailtrim.analysis.energy import LOADED, READY
from tailtrim.analysis.roundtrip.write_run import Series, write_run
from tailtrim.cli.application import app
from tailtrim.laboratory.energy import Recorder
from tailtrim.laboratory.energy.record import record
from tailtrim.laboratory.nodes.meters import AnyMeter, Meter
from tailtrim.publishing.report.pages import comparison_page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_METER = {"kind": "hwmon", "chip": "power_meter", "sensor": "power1_average", "resolution_w": 0.1}
#: Differences of the blocks from their mean, in W.
_DRIFTS_W = (-0.3, 0.0, 0.3)
_RATE = 10_000.0


def side(  # noqa: PLR0913 - keyword-only
    place: Path,
    seed: int,
    *,
    loaded_w: float,
    ready_w: float = 42.0,
    blocks: Sequence[float] = _DRIFTS_W,
    slower: float = 1.0,
    metered: bool = True,
    **meter: Any,
) -> Path:
    """Leave runs of 10,000 packets with what a meter said of a node that takes so much."""
    random = np.random.default_rng(seed)
    for number, drift_w in enumerate(blocks):
        sent_ns = np.arange(10_000, dtype=np.int64) * 100_000
        latency_ns = (20_000 * slower * random.lognormal(0, 0.2, sent_ns.size)).astype(np.int64)
        run = place / f"run-{number:03d}"
        there = np.ones(sent_ns.size, dtype=bool)
        write_run(run, Series("simulated", sent_ns, there, latency_ns, 60))
        if metered:
            powers = {READY: ready_w + drift_w, LOADED: loaded_w + drift_w}
            told = metered_run(place / f"sys-{number}", powers, **meter)
            (run / "energy.json").write_text(json.dumps(told), encoding="utf-8")
    return place


def metered_run(root: Path, watts: dict[str, float], **meter: Any) -> dict[str, Any]:
    """Read a sensor while it tells so many watts in each state; return what a run records."""
    tree = sensor_tree.Tree(root)
    tree.sensor(0, "power_meter", "power1_average", 0)
    kind: Meter = TypeAdapter(AnyMeter).validate_python({**_METER, **meter})
    reader = kind.opened(tree.start)
    recorder = Recorder({"dut": reader})
    with recorder:
        for state, power in watts.items():
            tree.sensor(0, "power_meter", "power1_average", round(power * 1e6))
            recorder.read()
            with recorder.state(state, settle_s=0.0):
                time.sleep(0.02)
    return record({"dut": kind}, recorder, _RATE, 10_000)


def rows_of(found: Comparison) -> dict[str, EnergyRow]:
    return {row.what: row for row in found.energy.rows}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("energy") / "sleeps"
    return side(place, 1, loaded_w=45.0, slower=2.0)


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return side(tmp_path_factory.mktemp("energy") / "polls", 2, loaded_w=55.0)


def test_watts_and_joules_of_both_sides_differ(slow: Path, fast: Path) -> None:
    (found,) = compare(slow, fast)
    rows = rows_of(found)
    assert set(rows) == {"ready", "loaded", "above_ready", "whole"}
    loaded = rows["loaded"]
    assert loaded.a_value == pytest.approx(45)
    assert loaded.b_value == pytest.approx(55)
    assert loaded.difference == pytest.approx(10)
    assert loaded.low is not None
    assert loaded.high is not None
    # Three blocks a side with 0.3 W between them: type A is 0.17 W each, 0.24 W of the difference,
    # whose factor for two degrees of freedom is 4.53; steps of 0.1 W add little.
    assert loaded.high - loaded.low == pytest.approx(2 * 4.53 * 0.245, rel=0.1)
    assert loaded.verdict == "worse"
    ready = rows["ready"]
    assert ready.verdict == "no_difference"
    assert ready.low is not None
    assert ready.high is not None
    # The interval reaches so far from 42 W.
    assert ready.beyond == pytest.approx(max(-ready.low, ready.high) / 42, rel=0.01)
    assert ready.low < 0
    # Drift from block to block is not in the power above ready.
    assert rows["above_ready"].difference == pytest.approx(10 / _RATE)
    assert rows["above_ready"].verdict == "worse"
    assert rows["whole"].a_value == pytest.approx(45 / _RATE)


def test_a_watt_buys_microseconds_of_the_tail(slow: Path, fast: Path) -> None:
    (found,) = compare(slow, fast)
    (price,) = found.energy.prices
    tail = next(row for row in found.quantiles if row.p == "0.999")
    assert tail.verdict == "better"
    assert tail.a_ns is not None
    assert tail.b_ns is not None
    expected = (tail.a_ns - tail.b_ns) / 1e3 / 10
    assert price.us_per_watt == pytest.approx(expected)
    assert price.low is not None
    assert price.high is not None
    assert 0 < price.low < expected < price.high
    (back,) = compare(fast, slow)
    assert back.energy.prices[0].us_per_watt == pytest.approx(expected)


def test_what_is_below_the_resolution_has_no_price(slow: Path, tmp_path: Path) -> None:
    b = side(tmp_path / "b", 3, loaded_w=45.2)
    (found,) = compare(slow, b)
    loaded = rows_of(found)["loaded"]
    assert loaded.verdict == "no_difference"
    assert re.search(r"\d blocks a side", loaded.why or "")
    (price,) = found.energy.prices
    assert price.us_per_watt is None
    assert "below what is resolved" in (price.why or "")
    coarse = [
        side(tmp_path / f"coarse{watts}", seed, loaded_w=watts, blocks=(0.0, 0.0), resolution_w=4.0)
        for seed, watts in ((4, 45.0), (5, 46.0))
    ]
    (found,) = compare(*coarse)
    for fact in ("no number of blocks", "meters leave ± 3.3 W"):
        assert fact in (rows_of(found)["loaded"].why or "")


def test_nothing_is_traded_where_one_side_is_better_in_both(fast: Path, tmp_path: Path) -> None:
    worse = side(tmp_path / "worse", 6, loaded_w=65.0, slower=2.0)
    (found,) = compare(fast, worse)
    for fact in ("B takes more power", "slower"):
        assert fact in (found.energy.prices[0].why or "")
    (found,) = compare(worse, fast)
    for fact in ("B takes less power", "faster"):
        assert fact in (found.energy.prices[0].why or "")


def test_one_run_a_side_says_what_is_missing(slow: Path, fast: Path) -> None:
    (found,) = compare(slow / "run-000", fast / "run-000")
    loaded = rows_of(found)["loaded"]
    assert (loaded.difference, loaded.verdict) == (None, "not_decided")
    for told, name in zip((loaded.why or "").split("; "), "AB", strict=True):
        assert told.startswith(f"{name}: 1 block, expected 2")
        assert "repeat" in told
    assert found.energy.prices[0].us_per_watt is None


def test_a_side_without_a_meter_is_told(slow: Path, tmp_path: Path) -> None:
    without = side(tmp_path / "without", 7, loaded_w=0, metered=False)
    (found,) = compare(slow, without)
    assert found.energy.rows == ()
    (remark,) = found.energy.remarks
    assert remark.startswith("dut: B has no meter")
    (found,) = compare(without, without)
    assert found.energy.remarks == ()


def test_energy_is_on_the_terminal_in_json_and_on_the_page(slow: Path, fast: Path) -> None:
    called = CliRunner().invoke(app, ["compare", str(slow), str(fast)], env={"COLUMNS": "120"})
    assert called.exit_code == 0, called.output
    for fact in ("energy of dut:", "whole, mJ", "of p99.9 a watt"):
        assert fact in called.stdout
    called = CliRunner().invoke(app, ["compare", str(slow), str(fast), "--json"])
    (told,) = json.loads(called.stdout)["comparisons"]
    assert [row["what"] for row in told["energy"]["rows"]] == [
        "ready",
        "loaded",
        "above_ready",
        "whole",
    ]
    found = compare(slow, fast)
    page = comparison_page.render(found).decode()
    for fact in ("energy of dut:", "of p99.9 a watt"):
        assert fact in page
    table = found.to_arrow("energy").to_pydict()
    assert table["verdict"] == ["no_difference", "worse", "worse", "worse"]


def test_energy_that_was_not_recorded_as_such_is_refused(slow: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(slow, tmp_path / "broken")
    (broken / "run-001" / "energy.json").write_text('{"schema": "tailtrim.energy/2"}')
    called = CliRunner().invoke(app, ["compare", str(slow), str(broken)])
    assert called.exit_code == 2
    assert "the schema is 'tailtrim.energy/2'" in called.stderr
