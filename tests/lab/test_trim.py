"""Searches on a live testbed: however one ends, it is taken up where it was."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import guests
import pytest
from fetched import FETCHED
from test_ending import started, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from changed_host import Tune
    from laboratory import Lab

pytest.importorskip("pydoe", reason="needs tailtrim[trim]")


def _planned(lab: Lab) -> Path:
    changes = {
        "delay": {"baseline": "constant:2ms", "changed": "constant:20us"},
        "batch": {"baseline": 32, "changed": 16},
    }
    dut = {"preset": "forward", "delay": "$delay", "batch": "$batch"}
    return lab.plan(dut=dut, trim={"candidates": changes})


def _searching(
    lab: Lab, plan: Path, trials: int, end: signal.Signals, *words: str, within_s: float = 60
) -> list[dict[str, Any]]:
    """Search until there are so many trials, and end it; returns the trials."""
    record = lab.folder / "out" / "trim.json"
    command = ["/usr/bin/env", "--default-signal=INT,TERM", *lab.command("trim", str(plan))]
    with subprocess.Popen(
        [*command, "--out", "out", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=lab.environment | {"PYTHONFAULTHANDLER": "1"},
        cwd=lab.folder,
    ) as process:
        try:
            end_s = time.monotonic() + within_s
            while len(_trials(record)) < trials:
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
                assert time.monotonic() < end_s
                time.sleep(0.05)
            process.send_signal(end)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                # Where it is, thread by thread.
                process.send_signal(signal.SIGABRT)
                pytest.fail(process.communicate(timeout=10)[1])
        finally:
            process.kill()
    lab.until_ended(30)
    return _trials(record)


def _trials(record: Any) -> list[dict[str, Any]]:
    if not record.exists():
        return []
    trials: list[dict[str, Any]] = json.loads(record.read_text())["trials"]
    return trials


@pytest.mark.parametrize(
    "end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda end: str(end.name)
)
def test_a_search_that_ended_goes_on(lab: Lab, end: signal.Signals) -> None:
    plan = _planned(lab)
    before = _searching(lab, plan, 1, end)
    after = _searching(lab, plan, len(before) + 1, signal.SIGINT, "--resume")

    assert after[: len(before)] == before
    assert not list((lab.folder / "out").glob(".*"))


@pytest.fixture
def settings(host: Tune) -> Iterator[Callable[[], list[str]]]:
    """Return what reads the settings of this host that are changed; they are as before at the end.

    The fixture says whether this host may be changed, and compares all that may have been.
    """
    places = [Path("/proc/sys/vm/stat_interval"), Path("/proc/sys/kernel/timer_migration")]
    try:
        yield lambda: [path.read_text() for path in places]
    finally:
        # This host's own journal: a search has no other.
        subprocess.run([host.program, "tune", "revert"], check=True)


#: The changes of those settings.
HOST = {"profile": "latency-kernel", "only": ["MEM-006", "SCH-005"]}


@pytest.mark.alone
def test_a_killed_search_that_changed_this_host_is_taken_back(
    lab: Lab, settings: Callable[[], list[str]]
) -> None:
    before = settings()
    plan = lab.plan(trim={"host": HOST | {"name": socket.gethostname()}})
    with started(lab, "trim", str(plan), "--out", "out") as process:
        wait_until(lambda: settings() != before, process)
        process.kill()
    wait_until(lambda: not lab.left())
    killed = _trials(lab.folder / "out" / "trim.json")

    assert settings() != before
    after = _searching(lab, plan, len(killed) + 1, signal.SIGINT, "--resume")
    assert after[: len(killed)] == killed
    assert settings() == before


@pytest.mark.alone
def test_a_search_on_a_command_measures_what_it_leaves(
    lab: Lab, settings: Callable[[], list[str]]
) -> None:
    before = settings()
    plan = lab.folder / "plan.yml"
    trim = {"host": HOST | {"name": socket.gethostname()}}
    plan.write_text(json.dumps({"name": "watched", "duration_s": 1, "trim": trim}))
    command = f'{lab.program} ping -p icmp 127.0.0.1 -i 0.001 -c 300 --out "$RUN"'
    trials = _searching(lab, plan, 2, signal.SIGINT, "--watch", command)

    assert all(one["observation"]["tail_ns"] > 0 for one in trials)
    for one in trials:
        assert (lab.folder / "out" / one["run"] / "roundtrip.parquet").is_file()
    assert settings() == before


@pytest.mark.guests
def test_boot_lines_are_tried_over_reboots_and_one_that_does_not_boot_is_left_out(
    lab: Lab,
) -> None:
    guests.made()
    lab.environment["XDG_CACHE_HOME"] = str(FETCHED.parent)
    isolated, panics = "isolcpus=1", "rdinit=/none root=/dev/none"
    changes = {name: {"baseline": "", "changed": name} for name in ("isolated", "panics")}
    changes["isolated"]["changed"], changes["panics"]["changed"] = isolated, panics
    plan = lab.plan(
        dut={"preset": "router", "node": "vm"},
        boot={"kernel": guests.KERNEL, "cmdline": "quiet $isolated $panics"},
        vm={"accelerator": "tcg"},
        traffic={"rate_pps": 100, "duration_s": 1},
        trim={"candidates": changes},
    )
    trials = _searching(lab, plan, 4, signal.SIGINT, within_s=300)

    assert [one["phase"] for one in trials[:4]] == ["boot"] * 3 + ["eliminate"]
    by_changes = {tuple(one["changes"]): one for one in trials[:3]}
    assert set(by_changes) == {(), ("isolated",), ("panics",)}
    assert "Kernel panic - not syncing" in by_changes["panics",]["observation"]["untried"]
    assert "panics" not in trials[3]["changes"]
    for one in (by_changes[()], by_changes["isolated",], trials[3]):
        assert one["observation"]["untried"] is None
        seen = lab.result(one["run"], "nodes")["boot"]["boot_line"]["seen"]
        assert (isolated in seen.split()) == ("isolated" in one["changes"])
