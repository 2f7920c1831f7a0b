"""``tailtrim trim`` from its plan to its page; runs are of made-up packets."""

from __future__ import annotations

import json
import random
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from recorded_search import latencies
from simulated_worlds import World
from synthetic import run_of
from typer.testing import CliRunner, Result

from tailtrim.cli import application, trim
from tailtrim.laboratory.trim import testbed_workload
from tailtrim.laboratory.trim.trial import Trial
from tailtrim.results.experiments import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tailtrim.laboratory.experiment import Experiment

pytest.importorskip("pydoe", reason="needs tailtrim[trim]")

PLAN = """\
name: world
dut: {preset: forward, batch: $batch, mode: $polling}
traffic: {frame_bytes: 64, rate_pps: 1000, duration_s: 2}
trim:
  quantile: p99
  candidates:
    polling: {baseline: wait, changed: poll}
    batch: {baseline: 32, changed: 4}
"""
EFFECTS = {"polling": -0.9}


class _Nodes:
    untried = None


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return what starts the command on a plan, without a testbed."""
    world, rng = World({}, EFFECTS, {}, sigma=0.05), random.Random(3)  # noqa: S311 - noise

    def conduct(experiment: Experiment, *_: Any, runs: list[Any], within: _Nodes) -> None:
        del within
        (run,) = runs
        seen = world.run(Trial(run.number, frozenset(run.loop), "", 0), rng)
        made = run_of(tmp_path, latencies(seen, rng), name=f"{experiment.path.name}/{run.folder}")
        told = {"loop": run.loop, "repetition": 0, "dut": run.dut.model_dump(mode="json")}
        (made.path / "loop.json").write_text(json.dumps(told))
        experiment.add(Outcome(run.folder, run.label, floor=False))

    @contextmanager
    def nodes_of(*_: Any) -> Iterator[_Nodes]:
        yield _Nodes()

    monkeypatch.setattr(testbed_workload, "conduct", conduct)
    monkeypatch.setattr(testbed_workload, "nodes_of", nodes_of)
    monkeypatch.setattr(testbed_workload, "images_for", lambda *_: {})
    monkeypatch.setattr(trim, "_enter", lambda _: None)
    plan = tmp_path / "plan.yml"
    plan.write_text(PLAN)
    runner = CliRunner()
    return lambda *words: runner.invoke(
        application.app, ["trim", str(plan), "--out", str(tmp_path / "out"), *words]
    )


def test_a_search_ends_with_costs_and_a_page(invoke: Callable[..., Result], tmp_path: Path) -> None:
    done = invoke("--duration", "5min")

    assert done.exit_code == 0, done.output
    told = " ".join(done.stdout.split())
    assert re.search(r"Change +Verdict +p99 +Throughput +CPUs taken", done.stdout)
    assert re.search(r"polling +better +-\d\d\.\d % +\+0\.00 %", done.stdout)
    assert "batch: gains at most" in told
    assert "Power: not known" in told
    page = tmp_path / "out" / "report" / "report.html"
    assert f"Report:     {page}" in done.stdout
    assert "wait → poll" in page.read_text()
    assert (tmp_path / "out" / "report" / "figures" / "path.svg").is_file()


def test_json_has_all_numbers_and_nothing_else_is_printed(invoke: Callable[..., Result]) -> None:
    done = invoke("--duration", "5min", "--json")

    told = json.loads(done.stdout)
    assert told["kept"] == ["polling"]
    assert [one["name"] for one in told["path"]] == ["baseline", "+ polling"]
    assert told["costs"]["processors"] == {
        "taken": {},
        "polls_before": False,
        "polls_after": True,
    }


def test_a_dry_run_measures_nothing(invoke: Callable[..., Result], tmp_path: Path) -> None:
    done = invoke("--dry-run", "--duration", "5min")

    assert done.exit_code == 0, done.output
    assert "all but polling" in done.stdout
    assert not (tmp_path / "out").exists()
