"""Folders that go wrong: who did what is told, and nobody waits for ever."""

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
    assert "unknown node 'nobody', expected one of tartu, vilnius" in wrong.printed("member.stderr")
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
