"""Causes that are known are named: a device that is disturbed on purpose, on a live testbed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailtrim.laboratory.selftest.attribution import AttributionScore, score
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from laboratory import Lab

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="recording who has the CPU needs root"),
    pytest.mark.skipif(
        not Path("/sys/kernel/tracing/instances").is_dir(),
        reason="no tracefs at /sys/kernel/tracing",
    ),
]

# Others run on a machine that tests: it takes large disturbances to be the cause of most.
DISTURBANCES = ["none", "stop:2ms,50ms", "thread:2ms,50ms"]


def scores(lab: Lab) -> dict[str, AttributionScore]:
    """Disturb a device in several ways, and score the explanations."""
    plan = lab.plan(
        dut={"preset": "forward", "disturb": "$disturb"},
        traffic={"rate_pps": 5_000, "duration_s": 3},
        loop={"disturb": DISTURBANCES},
        trace=True,
    )
    ended = lab.run("run", str(plan), "--out", "result")
    assert ended.returncode == 0, ended.stderr
    rows = {}
    for run in sorted((lab.folder / "result").glob("run-*")):
        what = json.loads((run / "loop.json").read_text())["dut"]["disturb"] or ""
        rows[what] = score(RunDirectory(run), what)
    return rows


@pytest.mark.fast
def test_what_is_done_is_what_is_named_and_nothing_else(lab: Lab) -> None:
    rows = scores(lab)
    for what in DISTURBANCES[1:]:
        row = rows[what]
        assert row.disturbances >= 20
        assert row.due > 50, row
        assert row.recall is not None, row
        assert row.recall >= 0.8, row
        assert row.precision is not None, row
        assert row.precision >= 0.8, row
    control = rows[""]
    assert not control.late
    assert control.late_undisturbed.get("device stopped", 0) == 0
    assert control.late_undisturbed.get("thread", 0) == 0


def test_what_recording_costs_is_told(lab: Lab) -> None:
    plan = lab.plan(trace="both")
    ended = lab.run("run", str(plan), "--out", "result")
    assert ended.returncode == 0, ended.stderr
    assert "Tracing adds " in ended.stdout
    assert "at p50" in ended.stdout
    plain, traced = sorted((lab.folder / "result").glob("run-*"))
    assert not (plain / "events.jsonl.zst").exists()
    assert {"events.jsonl.zst", "events.interrupts.csv", "trace.json", "explanation.json"} <= {
        path.name for path in traced.iterdir()
    }
    # Nobody sent the device's CPU an interrupt on our behalf while it was recorded.
    text = lab.run("explain", str(traced), "--json")
    causes = json.loads(text.stdout)["host"]["verdict"]["causes"]
    senders = {cause["sender"][0]["comm"] for cause in causes if cause["sender"]}
    assert "tt-trace" not in senders, senders
    assert json.loads((traced / "trace.json").read_text())["from_recorder"] == 0
