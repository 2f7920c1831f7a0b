"""Folders that go wrong: what went wrong is told, and no node waits without end."""

from __future__ import annotations

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
    image = "tartu: unknown image 'amiga-workbench': expected one of host (--image NAME has"
    assert image in told
    assert "no-such-file.pcap: No such file or directory" in wrong.printed("upload.stderr")
    assert "unknown node 'absent', expected one of tartu, vilnius" in wrong.printed("member.stderr")
    waited = wrong.printed("waits.stderr")
    assert "barrier 'together': tartu waited for vilnius: its command dies ended" in waited
    assert "vilnius: the node has died" in wrong.printed("dies.stderr")
    late = wrong.printed("timeout.stderr")
    assert "barrier 'never': not all arrived within 1 s: vilnius is missing: no command" in late
    for name in ("upload", "member", "waits", "dies", "timeout"):
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
    told = "deadline of 2 s passed: a waits 2 s at barrier 't': b is missing: no command runs there"
    assert told in run_of.printed("late.stderr")
    assert run_of.left() == []


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
    assert "run 1 (n=2): failed: b/node/1 after" in ended.stderr.replace("a/node/1, ", "")
    assert "run 2 (n=3): finished" in ended.stderr
    assert "error: run-1: node on" in ended.stderr
    told = "barrier of all nodes: a waited for b: its run 1 ended (error)"
    known = "barrier of all nodes: b does not come: its run 1 ended (error)"
    printed = run_of.printed("node_run1.stderr", node="a")
    assert told in printed or known in printed
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
    assert "the script has ended, waiting for alone on a" in ended.stderr
    printed = run_of.printed("alone.stderr")
    assert "b" in printed
    assert "no command runs there, and the script has ended" in printed
    assert run_of.left() == []
