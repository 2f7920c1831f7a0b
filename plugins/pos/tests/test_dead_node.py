"""Nodes that die in a run: they are booted again with what they had, and the run is repeated."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pos_runs import PosRun

pytestmark = pytest.mark.lab

SCRIPT = """#!/bin/bash
set -e
pos allocations allocate a b
echo 'n: [1, 2, 3]' | pos allocations set_variables a - --as-loop
pos nodes reset a b
pos nodes copy b given.txt
for node in a b; do { pos commands launch --infile setup.sh --name setup $node; } & done
wait
echo 'late: 1' | pos allocations set_variables b -
for node in a b; do { pos commands launch --infile node.sh --loop --name m $node; } & done
wait
"""
SETUP = """#!/bin/bash
set -e
pos_sync
pos_get_variable late >late.txt 2>&1 || :
pos_upload late.txt
"""
NODE = """#!/bin/bash
set -e
pos_run -l sleeper -- sleep 60
pos_sync
if [ "$(pos_get_variable hostname)$(pos_get_variable -l n)" = b2 ] && {condition}; then
    pos_set_variable died yes
    kill -KILL -1
    sleep 0.1
    exit 3
fi
pos_sync
pos_kill -l sleeper
cp late.txt told.txt
if [ "$(pos_get_variable hostname)" = b ]; then cat given.txt >>told.txt; fi
pos_upload -l told.txt
"""
ONCE, ALWAYS = "! pos_get_variable -r died 2>/dev/null", "true"


def dying(run: PosRun, condition: str) -> PosRun:
    folder = run.folders / "dying"
    folder.mkdir()
    (folder / "experiment.sh").write_text(SCRIPT, "utf-8")
    (folder / "setup.sh").write_text(SETUP, "utf-8")
    (folder / "node.sh").write_text(NODE.replace("{condition}", condition), "utf-8")
    (folder / "given.txt").write_text("given\n", "utf-8")
    run.go("dying", "a", "b")
    return run


def statuses(run: PosRun) -> list[list[str]]:
    """Return what became of the runs, by node."""
    places = [sorted((run.results / "scripts" / node).glob("*_m_run?.status")) for node in "ab"]
    return [[place.read_text("utf-8") for place in of_node] for of_node in places]


@pytest.fixture
def once(run_of: PosRun) -> PosRun:
    """Return an experiment in whose second run node b died once."""
    return dying(run_of, ONCE)


def test_a_run_with_a_node_that_died_is_repeated_once(once: PosRun) -> None:
    assert once.ended is not None
    assert once.ended.returncode == 0, once.ended.stderr
    assert "(repeated: b: " in once.ended.stderr
    assert statuses(once) == [["finished"] * 3] * 2
    lines = (once.out / "pos.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    (repeated,) = (event for event in events if event["event"] == "repeated")
    assert repeated["run"] == 1
    assert re.match("b: .*node .*died", repeated["why"])
    assert once.left() == []


def test_a_node_that_is_booted_again_has_what_the_script_gave_it(once: PosRun) -> None:
    for run in range(3):
        told = once.results / "files" / "b" / f"told_run{run}.txt"
        # A variable that was set after the setup is not seen by the one that is repeated either.
        assert told.read_text("utf-8") == "variable late unknown\ngiven\n"
    # Files of the first attempt are not where evaluations look.
    assert list(once.results.glob("interrupted/*/b/*_m_run1.stderr"))
    assert len(list(once.results.glob("scripts/b/*_m_run1.stderr"))) == 1


def test_a_node_that_dies_twice_leaves_its_run_failed_and_the_others_go_on(run_of: PosRun) -> None:
    ended = dying(run_of, ALWAYS).ended
    assert ended is not None
    assert ended.returncode == 4, ended.stderr
    assert "run 1 (n=2): failed: " in ended.stderr
    assert "run 2 (n=3): finished" in ended.stderr
    assert statuses(run_of) == [["finished", "error", "finished"]] * 2
    assert run_of.left() == []
