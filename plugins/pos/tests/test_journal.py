"""The journal of an experiment: which runs are done, and what becomes of what others left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tailtrim.errors import OutputError
from tailtrim_pos.journal import JOURNAL, Journal

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = {"script": "experiment.sh", "arguments": ["a", "b"]}


def run(key: str, number: int, status: str = "finished") -> dict[str, Any]:
    peers = {"a/m/1": ["b/m/1"], "b/m/1": ["a/m/1"]}[key]
    event = {"event": "run", "allocation": 1, "key": key, "run": number, "loop": {}}
    return event | {"peers": peers, "status": status}


def test_a_run_is_complete_when_all_that_were_repeated_together_finished_it(tmp_path: Path) -> None:
    with Journal(tmp_path / "x", ABOUT, resume=False) as journal:
        journal.add(run("a/m/1", 0))
        assert not journal.complete("a/m/1", 0)
        journal.add(run("b/m/1", 0, "error"))
        assert not journal.complete("a/m/1", 0)
        journal.add(run("b/m/1", 0))
    again = Journal(tmp_path / "x", ABOUT, resume=True)
    assert again.complete("a/m/1", 0)
    assert again.complete("b/m/1", 0)
    assert not again.complete("a/m/1", 1)


def test_a_line_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    with Journal(tmp_path / "x", ABOUT, resume=False) as journal:
        journal.add(run("a/m/1", 0))
        journal.add(run("b/m/1", 0))
    place = tmp_path / "x" / JOURNAL
    place.write_text(place.read_text("utf-8")[:-5], "utf-8")
    again = Journal(tmp_path / "x", ABOUT, resume=True)
    assert not again.complete("a/m/1", 0)
    again.add(run("b/m/1", 0))
    assert again.complete("a/m/1", 0)


def test_only_what_the_same_run_of_the_same_command_left_is_set_aside(tmp_path: Path) -> None:
    left = {}
    with Journal(tmp_path / "x", ABOUT, resume=False) as journal:
        for key, number in (("a/m/1", 0), ("a/m/1", 1), ("b/m/1", 0)):
            left[key, number] = tmp_path / "x" / f"{key[0]}{number}.txt"
            left[key, number].touch()
            journal.left(key, number, left[key, number])
    again = Journal(tmp_path / "x", ABOUT, resume=True)
    again.set_aside("a/m/1", 0, tmp_path / "aside")
    assert [path.name for path in (tmp_path / "aside").iterdir()] == ["a0.txt"]
    assert not left["a/m/1", 0].exists()
    assert left["a/m/1", 1].exists()
    assert left["b/m/1", 0].exists()


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(OutputError, match="not an experiment of"):
        Journal(tmp_path, ABOUT, resume=False)


def test_two_processes_do_not_work_in_one_directory(tmp_path: Path) -> None:
    with (
        Journal(tmp_path / "x", ABOUT, resume=False) as first,
        pytest.raises(OutputError, match="another process is running"),
    ):
        Journal(tmp_path / "x", ABOUT, resume=True)
    # It is unlocked when the context ends, not when the memory is freed.
    assert Journal(tmp_path / "x", ABOUT, resume=True).runs == first.runs
