"""Kernels and boot lines are compared by their boots: from run directories with known levels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from typer.testing import CliRunner

from tailtrim.analysis.roundtrip import Series, write_run
from tailtrim.cli.application import app
from tailtrim.laboratory.plan import load
from tailtrim.publishing import factors

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
name: known
dut: {preset: router, node: $where}
boot: {kernel: $kernel, cmdline: $line}
boots: BOOTS
traffic: {rate_pps: 1000, duration_s: 2}
loop:
  where: [vm, bare]
  kernel: [bookworm/cloud, trixie/rt]
  line: [quiet, isolcpus=1]
floor: false
"""
#: Latency with the usual kernel, addition by the slower one, spread of boots, and latency of a
#: device without a guest.
USUAL_NS, SLOWER_NS, BOOT_NS, BARE_NS = 50_000, 25_000, 2_000, 2_000


def experiment(path: Path, boots: int) -> Path:
    """Leave runs whose kernel makes a difference, and whose boot line makes none."""
    (path / "plan.yml").write_text(PLAN.replace("BOOTS", str(boots)))
    plan, runs = load(path / "plan.yml")
    random = np.random.default_rng(1)
    levels: dict[Any, int] = {}
    outcomes = []
    for run in runs:
        level = BARE_NS
        if run.boot is not None:
            level = USUAL_NS + (SLOWER_NS if run.boot.kernel == "trixie/rt" else 0)
            level += levels.setdefault((run.boot, run.repetition), int(random.normal(0, BOOT_NS)))
        sent_ns = 1_700_000_000 * 10**9 + np.arange(400) * 1_000_000
        took_ns = level + random.integers(0, 500, sent_ns.size)
        write_run(
            path / run.folder, Series("known", sent_ns, np.ones(sent_ns.size, bool), took_ns, 66)
        )
        outcomes.append(
            {
                "run": run.folder,
                "label": run.label,
                "floor": False,
                "invalid": [],
                "failed": None,
                "skipped": None,
                "left_out": [],
            }
        )
    (path / "boots" / "boot-000").mkdir(parents=True)
    (path / "boots" / "boot-000" / "boot.json").write_text('{"accelerator": "tcg"}')
    record = {
        "schema": "tailtrim.experiment/1",
        "plan": plan.model_dump(mode="json"),
        "outcomes": outcomes,
        "host": {},
        "versions": {},
        "command": [],
    }
    (path / "experiment.json").write_text(json.dumps(record))
    return path


def test_a_slower_kernel_is_told_and_a_boot_line_without_effect_is_not(tmp_path: Path) -> None:
    found = factors.boots_of(experiment(tmp_path, 4))
    assert found.baseline == {"kernel": "bookworm/cloud", "boot line": "quiet"}
    verdicts = {case.name: case.median and case.median.verdict for case in found.cases}
    assert verdicts == {
        "baseline": None,
        "bookworm/cloud isolcpus=1": "no_difference",
        "trixie/rt isolcpus=1": "worse",
        "trixie/rt quiet": "worse",
        "bare": "better",
    }
    # Boots differ by more than packets: an interval over packets would be tens of ns wide.
    slower = next(case.median for case in found.cases if case.name == "trixie/rt quiet")
    assert slower is not None
    change, low, high = slower.change_ns
    assert low is not None
    assert high is not None
    assert low <= change <= high
    assert high - low > BOOT_NS


def test_two_boots_have_no_verdict(tmp_path: Path) -> None:
    found = factors.boots_of(experiment(tmp_path, 2))
    assert [case.runs for case in found.cases] == [2] * 5
    assert [case.median for case in found.cases] == [None] * 5
    told = [case.verdict.told(found.repeated) for case in found.cases if case.factor]
    assert told == ["not decided: needs 4 boots"] * 4


def test_three_boots_do_not_show_that_a_line_has_no_effect(tmp_path: Path) -> None:
    found = factors.boots_of(experiment(tmp_path, 3))
    told = {case.name: case.verdict for case in found.cases if case.factor}
    assert told["trixie/rt quiet"].verdict == "worse"
    assert told["bookworm/cloud isolcpus=1"].verdict == "not_decided"
    assert (told["bookworm/cloud isolcpus=1"].needed or 0) >= 4


def test_the_report_says_that_latencies_are_not_those_of_hardware(tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["report", "--pdf", str(experiment(tmp_path, 3))])
    assert ended.exit_code == 0, ended.stderr
    text = (tmp_path / "report" / "boots.md").read_text("utf-8")
    assert "Latencies, of an emulated CPU (tcg), not of hardware" in text
    assert "Baseline: kernel bookworm/cloud, boot line quiet" in text
    assert {path.name for path in (tmp_path / "report" / "figures").glob("boots*")} == {
        "boots.svg", "boots.pdf", "boots.csv",
    }  # fmt: skip
