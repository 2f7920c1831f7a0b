"""Changes of a host by the agent itself; the host is a folder of files."""

from __future__ import annotations

import shlex
import shutil
import socket
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.agent import program
from tailtrim.laboratory.plan.trimming import HostChanges
from tailtrim.laboratory.trim import host
from tailtrim.laboratory.trim.host import HostTuning

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "proc/cmdline": "quiet\n",
    "proc/version": "Linux version 6.12.0\n",
    "proc/sys/kernel/osrelease": "6.12.0\n",
    "proc/sys/kernel/timer_migration": "1\n",
    "proc/sys/vm/stat_interval": "1\n",
    "proc/sys/vm/swappiness": " 60 \n",
    "sys/devices/system/cpu/online": "0-1\n",
    "sys/devices/system/cpu/possible": "0-1\n",
    "sys/devices/system/cpu/present": "0-1\n",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0\n",
    "sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the files of a host to which the agent's changes go."""
    root = tmp_path / "root"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = tmp_path / "agent"
    agent, here = shlex.quote(program()), f"--root {shlex.quote(str(root))}"
    state = f"--state {shlex.quote(str(tmp_path / 'state'))}"
    script.write_text(
        f'#!/bin/sh\ncase $2 in plan|export) exec {agent} "$@" {here};; esac\n'
        f'exec {agent} "$@" {here} {state}\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr(host, "program", lambda: str(script))
    return root


def _texts(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text() for name in FILES}


def _tuning(killed: Path | None = None) -> HostTuning:
    asked = HostChanges(name=socket.gethostname(), profile="latency-kernel", isolate="1")
    return HostTuning(asked, killed)


def test_what_is_applied_is_reverted_byte_for_byte(root: Path) -> None:
    tuning = _tuning()
    groups = {one.name: one.group for one in tuning.candidates}
    assert groups["vm.stat_interval"] == "memory"

    refused = tuning.apply(frozenset({"vm.stat_interval", "vm.swappiness"}))

    assert refused is None
    changed = _texts(root)
    assert changed["proc/sys/vm/stat_interval"] != FILES["proc/sys/vm/stat_interval"]
    assert changed["proc/sys/vm/swappiness"] != FILES["proc/sys/vm/swappiness"]
    assert changed["proc/sys/kernel/timer_migration"] == "1\n"
    assert tuning.applied()
    tuning.revert()
    assert _texts(root) == FILES
    assert not tuning.applied()


def test_a_new_process_takes_back_what_a_killed_one_applied(root: Path) -> None:
    _tuning().apply(frozenset({"vm.stat_interval"}))

    _tuning().revert()

    assert _texts(root) == FILES


def test_what_a_killed_search_applied_is_a_candidate_again(root: Path, tmp_path: Path) -> None:
    # While it was applied, the host had it already, and the search was told to be of another plan.
    _tuning().apply(frozenset({"vm.stat_interval"}))
    (tmp_path / "trim.json").write_text('{"applied": ["vm.stat_interval"]}')

    again = _tuning(tmp_path)

    assert _texts(root) == FILES
    assert "vm.stat_interval" in {one.name for one in again.candidates}


def test_what_a_user_applied_after_a_search_was_killed_is_left_alone(
    root: Path, tmp_path: Path
) -> None:
    _tuning().apply(frozenset({"vm.swappiness"}))
    (tmp_path / "trim.json").write_text('{"applied": ["vm.stat_interval"]}')

    with pytest.raises(HostError, match=r"not of this search .*vm\.swappiness"):
        _tuning(tmp_path)
    assert _texts(root) != FILES


def test_a_change_that_takes_effect_later_is_told_and_not_tried(root: Path) -> None:
    assert root.is_dir()
    reasons = {one.name: one.reason for one in _tuning().impossible}

    assert "after a reboot" in reasons["boot.skew_tick"]


def test_what_is_kept_is_exported(root: Path, tmp_path: Path) -> None:
    assert root.is_dir()
    places = _tuning().export(frozenset({"vm.stat_interval"}), tmp_path / "export")

    for place in places:
        written = [path.read_text() for path in place.rglob("*") if path.is_file()]
        assert any("vm.stat_interval" in text for text in written)
        assert not any("timer_migration" in text for text in written)
        shutil.rmtree(place)
