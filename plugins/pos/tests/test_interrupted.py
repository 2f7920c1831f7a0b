"""Interrupted experiments: nothing is left but results, and --resume does the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pos_runs import PosRun

pytestmark = pytest.mark.lab

SCRIPT = """#!/bin/bash
set -e
pos allocations allocate a b
pos commands launch --infile setup.sh --name setup a
echo 'number: [1, 2, 3, 4]' | pos allocations set_variables a - --as-loop
{ pos commands launch --infile node.sh --loop --name m a; } &
{ pos commands launch --infile node.sh --loop --name m b; } &
wait
pos allocations free a
"""
SETUP = """#!/bin/bash
set -e
cat /proc/uptime >uptime.txt
pos_upload uptime.txt
"""
NODE = """#!/bin/bash
set -e
pos_sync
pos_get_run_number >number.txt
sleep 0.3
pos_upload -l number.txt
pos_sync
"""


@pytest.fixture
def four_runs(run_of: PosRun) -> PosRun:
    """Return an experiment of four runs."""
    folder = run_of.folders / "four"
    folder.mkdir()
    (folder / "experiment.sh").write_text(SCRIPT, "utf-8")
    (folder / "setup.sh").write_text(SETUP, "utf-8")
    (folder / "node.sh").write_text(NODE, "utf-8")
    return run_of


def finished(run: PosRun) -> list[int]:
    """Return the runs that both nodes finished, in order."""
    place = run.out / "pos.jsonl"
    lines = place.read_text("utf-8").splitlines() if place.exists() else []
    events = [json.loads(line) for line in lines]
    finishers: dict[int, set[str]] = {}
    for event in events:
        if event["event"] == "run" and event["status"] == "finished":
            finishers.setdefault(event["run"], set()).add(event["key"])
    return [number for number, keys in finishers.items() if len(keys) == 2]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_and_resume_does_the_rest(four_runs: PosRun, number: int) -> None:
    with subprocess.Popen(
        [*four_runs.command("four", "a", "b", "--out", str(four_runs.out))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=four_runs.environment,
    ) as process:
        try:
            until_s = time.monotonic() + 90
            while len(finished(four_runs)) < 2:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until_s
                time.sleep(0.02)
            spaces = _spaces(four_runs)
        except BaseException:
            # A test that has failed must not wait for what may never end.
            process.kill()
            raise
        os.kill(process.pid, number)
        try:
            process.communicate(timeout=30)
        finally:
            process.kill()
    until_s = time.monotonic() + 20
    while (left := four_runs.left()) or spaces & _spaces(four_runs, every=True):
        assert time.monotonic() < until_s, left
        time.sleep(0.05)
    while [*Path(tempfile.gettempdir()).glob("tailtrim-pos-*")]:
        assert time.monotonic() < until_s
        time.sleep(0.05)
    done = finished(four_runs)
    ended = four_runs.go("four", "a", "b", "--resume")
    assert ended.returncode == 0, ended.stderr
    assert sorted(finished(four_runs)) == [0, 1, 2, 3]
    for run in done:
        assert f"run {run} (" not in ended.stderr
    for node in ("a", "b"):
        for run in range(4):
            place = four_runs.results / "files" / node / f"number_run{run}.txt"
            assert place.read_text("utf-8") == f"{run}\n"
    # The first upload of the setup is kept, but not where evaluations look.
    (kept,) = four_runs.results.glob("interrupted/*/a/uptime.txt")
    assert kept.read_text("utf-8") != (four_runs.results / "files" / "a" / "uptime.txt").read_text(
        "utf-8"
    )
    # Both sessions wrote under the name of the first one.
    stamps = {path.name.partition("_m")[0] for path in four_runs.results.rglob("*_m_run?.status")}
    assert len(stamps) == 2


def _spaces(run: PosRun, *, every: bool = False) -> set[str]:
    """Return the network namespaces of the nodes' processes; with ``every``, those of all."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment = (place / "environ").read_bytes()
            space = str((place / "ns" / "net").readlink())
        except OSError:
            continue
        if every or run.mark.encode() in environment:
            found.add(space)
    return found - {str(Path("/proc/self/ns/net").readlink())}


def test_another_experiment_is_not_resumed(four_runs: PosRun) -> None:
    assert four_runs.go("four", "a", "b").returncode == 0
    again = four_runs.go("four", "a", "b")
    assert again.returncode == 2
    assert "holds an experiment already" in again.stderr
    other = four_runs.go("four", "a", "c", "--resume")
    assert other.returncode == 2
    assert "another experiment: arguments differs" in other.stderr
    same = four_runs.go("four", "a", "b", "--resume")
    assert same.returncode == 0
    assert "run 0 (" not in same.stderr
