"""Searches on a command: errors where it leaves nothing, or files that make no sense."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from tailtrim.errors import OutputError, PlanError
from tailtrim.laboratory.plan.command_plan import load_watched
from tailtrim.laboratory.trim.command_workload import CommandWorkload
from tailtrim.laboratory.trim.trial import Trial

TRIAL = Trial(0, frozenset(), "eliminate", 0)


def _failed(command: str, folder: Path) -> str:
    with closing(CommandWorkload(command, folder, "0.999", resume=False)) as watched:
        seen = watched.measure(TRIAL)
    assert seen.tail_ns is None
    assert seen.failed is not None
    return seen.failed


def test_a_command_that_fails_is_told_with_what_it_said_last(tmp_path: Path) -> None:
    failed = _failed("echo one; echo no route >&2; exit 7", tmp_path / "out")

    assert "ended with 7: no route" in failed
    assert (tmp_path / "out" / "run-000.log").read_text() == "one\nno route\n"


def test_a_command_that_leaves_nothing_is_told(tmp_path: Path) -> None:
    assert "no run directory at $RUN" in _failed("true", tmp_path / "out")


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM; "])
def test_what_a_command_has_started_ends_with_it(tmp_path: Path, stubborn: str) -> None:
    # One that ignored the signal went on during the next trial.
    started = f'sh -c "{stubborn}sleep 1000; :"'
    _failed(f"{started} & echo $! >{tmp_path}/pid", tmp_path / "out")

    process = Path("/proc") / (tmp_path / "pid").read_text().strip()
    until_s = time.monotonic() + 20
    while process.exists():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_a_folder_of_something_else_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")

    with pytest.raises(OutputError, match="is not empty"):
        CommandWorkload("true", tmp_path, "0.999", resume=False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: a\nduration_s: 1\ntrim: {}\n", "host is missing"),
        ("name: a\ntrim: {host: {name: a, profile: latency-kernel}}\n", "duration_s: is missing"),
        (
            "name: a\nduration_s: 1\ntrim: {candidates: {a: {baseline: 1, changed: 2}}}\n",
            "changes of this host",
        ),
    ],
)
def test_a_file_that_makes_no_sense_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "plan.yml"
    path.write_text(text)

    with pytest.raises(PlanError, match=told):
        load_watched(path)
