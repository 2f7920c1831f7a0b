"""Folders that go wrong: the error is reported, and no node waits without end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pos_runs import PosRun


@pytest.fixture
def wrong(run_of: PosRun) -> PosRun:
    """Return the folder in which everything goes wrong, after its run."""
    run_of.go("wrong", "tartu", "vilnius")
    return run_of


def test_each_fault_is_told_by_name(wrong: PosRun) -> None:
    assert wrong.ended is not None
    told = wrong.ended.stderr
    assert wrong.ended.returncode == 4, told
    for fact in ("tartu: unknown image 'amiga-workbench'", "--image NAME"):
        assert fact in told
    facts = {
        "upload": ("no-such-file.pcap: No such file",),
        "member": ("unknown node 'absent'", "tartu, vilnius"),
        "waits": ("barrier 'together'", "tartu waited for vilnius", "command dies ended"),
        "dies": ("vilnius: ", "node has died"),
        "timeout": ("barrier 'never'", "within 1 s", "vilnius is missing", "no command"),
    }
    for name, expected in facts.items():
        for fact in expected:
            assert fact in wrong.printed(f"{name}.stderr")
        assert wrong.printed(f"{name}.status") == "error"
        assert f"error: {'vilnius' if name == 'dies' else 'tartu'}: {name}: " in told
    assert wrong.left() == []


def test_a_command_beyond_its_deadline_is_ended_and_says_for_whom_it_waited(run_of: PosRun) -> None:
    script = run_of.folders / "wrong" / "experiment.sh"
    script.write_text(
        "#!/bin/bash\nset -e\npos allocations allocate a b\n"
        "pos commands launch --name late a -- pos_sync -t t\n",
        "utf-8",
    )
    ended = run_of.go("wrong", "a", "b", "--deadline", "2s")
    assert ended.returncode == 4
    for fact in ("deadline of 2 s", "a waits 2 s", "barrier 't'", "b is missing", "no command"):
        assert fact in run_of.printed("late.stderr")
    assert run_of.left() == []


UPLOADING = """#!/bin/bash
echo kept >/root/kept
pos_upload /root/kept
mkdir /root/folder && cd /root/folder && echo it >file
pos_upload --recursive --force .
cd ..
pos_upload --recursive --force /
"""


def test_an_upload_of_dot_replaces_nothing_else(run_of: PosRun) -> None:
    folder = run_of.folders / "wrong"
    (folder / "node.sh").write_text(UPLOADING, "utf-8")
    (folder / "experiment.sh").write_text(
        "#!/bin/bash\npos allocations allocate a\n"
        "pos commands launch --name node --infile node.sh a\n",
        "utf-8",
    )
    ended = run_of.go("wrong", "a")
    assert ended.returncode == 4, ended.stderr
    assert "folder of all results" in run_of.printed("node.stderr")
    uploaded = {path.name for path in run_of.results.rglob("*") if path.is_file()}
    assert {"kept", "file"} <= uploaded
    assert [path.parent.name for path in run_of.results.rglob("file")] == ["folder"]


FAILING = """#!/bin/bash
pos_sync
[ "$(pos_get_variable hostname)$(pos_get_variable -l n)" != b2 ] || exit 1
pos_sync
pos_upload -l /etc/hostname
"""


def test_a_run_that_fails_on_one_node_does_not_block_the_others(run_of: PosRun) -> None:
    folder = run_of.folders / "wrong"
    (folder / "node.sh").write_text(FAILING, "utf-8")
    (folder / "experiment.sh").write_text(
        "#!/bin/bash\npos allocations allocate a b\n"
        "echo 'n: [1, 2, 3]' | pos allocations set_variables a - --as-loop\n"
        "for node in a b; do pos commands launch -n --infile node.sh --loop $node; done\n",
        "utf-8",
    )
    ended = run_of.go("wrong", "a", "b")
    assert ended.returncode == 4, ended.stderr
    assert re.search(r"run 1 \(n=2\): failed: .*b/node/1 after", ended.stderr)
    assert "run 2 (n=3): finished" in ended.stderr
    assert "error: run-1: node on" in ended.stderr
    printed = run_of.printed("node_run1.stderr", node="a")
    assert "a waited for b: " in printed or "b does not come: " in printed
    for fact in ("barrier of all nodes", "run 1 ended (error)"):
        assert fact in printed
    for node in ("a", "b"):
        for run in (0, 2):
            assert run_of.printed(f"node_run{run}.status", node=node) == "finished"
    assert run_of.left() == []


def test_a_command_that_waits_when_the_script_has_ended_is_told_and_ended(run_of: PosRun) -> None:
    script = run_of.folders / "wrong" / "experiment.sh"
    script.write_text(
        "#!/bin/bash\npos allocations allocate a b\n"
        "pos commands launch -n --name alone a -- pos_sync\n",
        "utf-8",
    )
    ended = run_of.go("wrong", "a", "b")
    assert ended.returncode == 4
    assert "waiting for alone on a" in ended.stderr
    printed = run_of.printed("alone.stderr")
    for fact in ("barrier of all nodes: b ", "no command", "script has ended"):
        assert fact in printed
    assert run_of.left() == []
