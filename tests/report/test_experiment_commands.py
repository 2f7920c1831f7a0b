"""Commands that take an experiment: each of its runs."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from swept_experiment import RATES
from typer.testing import CliRunner, Result

from tailtrim.analysis.compare.sources import groups_of
from tailtrim.cli.application import app
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from pathlib import Path

RUNS = [f"run-{number:03d}" for number in range(2 * len(RATES))]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_report_makes_the_page_of_an_experiment_again(
    reported_experiment: Path, tmp_path: Path
) -> None:
    result = run("report", reported_experiment, "--out", tmp_path, "--assert", "p90 < 5us")
    assert result.exit_code == 1, result.output
    assert "rate=40000: failed: p90 < 5us" in result.stderr
    assert "wire" not in result.stderr
    assert "forward rate=40000" in (tmp_path / "report.html").read_text("utf-8")
    assert (tmp_path / "figures" / "sweep-rate.csv").exists()


def test_report_takes_experiments_beside_runs(reported_experiment: Path, tmp_path: Path) -> None:
    measured = shutil.copytree(reported_experiment / "run-001", tmp_path / "alone")
    result = run("report", measured, reported_experiment, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert all(name in page for name in ("alone", *RUNS))


def test_an_experiment_is_compared_by_its_record_as_by_its_place(reported_experiment: Path) -> None:
    by_record, by_place = groups_of(recorded(reported_experiment)), groups_of(reported_experiment)
    assert [one.name for one in by_record] == [one.name for one in by_place] != []


def test_convert_takes_an_experiment(reported_experiment: Path, tmp_path: Path) -> None:
    result = run("convert", reported_experiment, "--format", "hgrm", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert [place.name for place in sorted(tmp_path.iterdir())] == RUNS
    assert (tmp_path / "run-003" / "run-003.hgrm").exists()


def test_explain_takes_an_experiment(reported_experiment: Path) -> None:
    result = run("explain", reported_experiment)
    assert result.exit_code == 0, result.output
    heads = [line for line in result.stdout.splitlines() if line.startswith("run-")]
    assert heads[:2] == ["run-000 (wire rate=10000 (floor)):", "run-001 (forward rate=10000):"]
    told = [
        json.loads(line)
        for line in run("explain", reported_experiment, "--json").stdout.splitlines()
    ]
    assert [one["run"] for one in told] == RUNS
    assert {one["schema"] for one in told} == {"tailtrim.explanation/1"}


@pytest.mark.parametrize("command", [("explain",), ("convert", "--format", "csv"), ("report",)])
def test_an_experiment_without_a_complete_run_is_an_error(
    reported_experiment: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    record = json.loads((reported_experiment / "experiment.json").read_text("utf-8"))
    (tmp_path / "experiment.json").write_text(json.dumps(record))
    result = run(*command, tmp_path)
    assert result.exit_code == 2
    for fact in ("no run", "is complete"):
        assert fact in result.stderr
