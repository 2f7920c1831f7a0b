"""The Python API, the layout of 2020, and boot parameters that this host does not apply."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pos_runs import PosRun


def test_a_script_that_imports_poslib_runs(run_of: PosRun) -> None:
    words = ("ada", "bob", "--image", "no-such*", "--layout", "2020", "--order", "random")
    ended = run_of.go("python", *words, script="experiment.py")
    told = ended.stdout + ended.stderr
    # An image that the option allows is not refused; the runs are not to be trusted all the same.
    assert ended.returncode == 0, told
    for fact in ("warning: ada: boot parameters not", "isolcpus=1 nohz_full=1"):
        assert fact in ended.stderr
    folder = run_of.results
    assert (folder / "ada" / "result_run2.txt").read_text("utf-8") == "hello 3\n"
    assert run_of.printed("run_run2.stdout") == repr(b"hello 3\n")
    assert json.loads((folder / "config" / "ada.json").read_text("utf-8")) == {"greeting": "hello"}
    assert run_of.json("run_run0.loop") == {"cores": 1}
    lines = (run_of.out / "pos.jsonl").read_text("utf-8").splitlines()
    order = [event["run"] for event in map(json.loads, lines) if event["event"] == "run"]
    assert sorted(order) == [0, 1, 2]
    assert order != [0, 1, 2]
    assert run_of.left() == []


def test_what_the_controller_refuses_is_an_error_of_the_api(run_of: PosRun) -> None:
    ended = run_of.go("python", "ada", "bob", script="experiment.py")
    assert "refused: ada: " in ended.stdout, ended.stderr
    assert "image 'no-such-image'" in ended.stdout
    assert ended.returncode == 0, ended.stderr
