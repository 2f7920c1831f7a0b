"""Runs by minute on a live testbed: the files kept of them, and the output meanwhile.

Generator and device poll before all others: where they do that for a minute, other tests starve.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tailtrim.results.minutes import counted, minutes

if TYPE_CHECKING:
    from collections.abc import Callable

    from laboratory import Lab


def test_a_run_by_minute_keeps_minutes_and_the_surroundings_of_its_worst_packets(lab: Lab) -> None:
    plan = lab.plan(by_minute=True, traffic={"rate_pps": 2_000, "duration_s": 3})
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    folder = lab.folder / "out" / "run-000"
    summary = lab.result("run-000", "summary")
    assert summary["ingress"]["packets"] == 6_000
    assert sum(one.samples for one in minutes(folder)) == summary["samples"]
    (one, *_) = counted(folder)
    assert one.end_ns - one.begin_ns > 10**9
    around = lab.result("run-000", "capture")["around"]
    assert around[0]["latency_ns"] == summary["latency_ns"]["max"]
    assert {path.name for path in (folder / "around").iterdir()} == {
        f"{one['ingress_ns']}-{tap}.pcap.zst" for one in around for tap in ("ingress", "egress")
    }
    assert not (folder / "sample.parquet").exists()
    assert not list(folder.glob("*.pcap*"))
    assert "Over time" in (lab.folder / "out" / "report" / "report.html").read_text()
    assert lab.left() == []


@pytest.mark.alone
def test_the_worst_packets_of_a_traced_run_by_minute_are_explained(lab: Lab) -> None:
    """By what had the device's CPUs around them: a thread takes the CPU for 5 ms at a time."""
    dut = {"preset": "forward", "disturb": "thread:5ms,500ms"}
    traffic = {"rate_pps": 2_000, "duration_s": 8}
    # A trace that began half a second before a packet has not all of its surroundings.
    plan = lab.plan(by_minute=True, trace=True, dut=dut, traffic=traffic, skip_s=1)
    ended = lab.run("run", str(plan), "--out", "out")
    assert ended.returncode == 0, ended.stderr
    folder = lab.folder / "out" / "run-000"
    around = lab.result("run-000", "capture")["around"]
    assert len(around) >= 3
    for one in around:
        assert one["trace"]["complete"]
        assert one["trace"]["events"] > 0
        assert (folder / "around" / f"{one['ingress_ns']}-events.jsonl.zst").exists()
    worst = lab.result("run-000", "worst")["packets"]
    assert [one["ingress_ns"] for one in worst] == [one["ingress_ns"] for one in around]
    named = 0
    for one in worst:
        verdict = one["host"]["verdict"]
        (late,) = verdict["late"]
        assert late["latency_ns"] == one["latency_ns"]
        place, ns = max(late["causes"], key=lambda cause: cause[1])
        named += verdict["causes"][place]["kind"] == "thread" and ns > late["excess_ns"] / 2
    # Others than this thread may delay packets of a busy machine.
    assert named >= len(worst) / 2
    told = lab.run("explain", "out")
    assert told.returncode == 0, told.stderr
    assert "tt-disturb" in told.stdout
    assert told.stdout.count(" UTC: ") == len(worst)
    report = (lab.folder / "out" / "report" / "report.html").read_text()
    assert "The worst packets, and the causes of their delay" in report
    assert not list(folder.glob("events.jsonl.zst"))
    assert lab.left() == []


def test_a_run_by_minute_shows_the_tail_of_each_second(lab: Lab) -> None:
    plan = lab.plan(by_minute=True, traffic={"rate_pps": 2_000, "duration_s": 5})
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        lab.command("run", str(plan), "--out", "out"),
        stderr=theirs,
        env=lab.environment | {"TERM": "xterm", "COLUMNS": "200"},
        cwd=lab.folder,
    ) as process:
        os.close(theirs)
        shown = b""
        # Reading fails once the command has closed the terminal.
        with suppress(OSError):
            while part := os.read(ours, 1 << 16):
                shown += part
        os.close(ours)
    assert process.returncode == 0
    tail = ", ".join(rf"{name} [\d.,]+" for name in ("p50", "p99", "p99.9", "max"))
    pattern = rf"measuring, [\d,]+ packets, 0 lost; last second {tail} (µs|ms)"
    assert re.search(pattern, shown.decode()), shown.decode()[-2_000:]


@pytest.mark.alone
def test_minutes_of_a_killed_run_are_kept_when_it_goes_on(lab: Lab) -> None:
    plan = lab.plan(by_minute=True, traffic={"rate_pps": 1_000, "duration_s": 300})
    out = lab.folder / "out"

    def started(*more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            lab.command("run", str(plan), "--out", "out", *more),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=lab.environment,
            cwd=lab.folder,
        )

    def until(there: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
        # A minute takes one, and is over a little later.
        until_s = time.monotonic() + 120
        while not there():
            assert time.monotonic() < until_s
            assert process.poll() is None
            time.sleep(0.1)

    with started() as process:
        until(lambda: list(out.rglob("minute.jsonl")), process)
        time.sleep(3)
        process.kill()
    lab.until_ended()
    kept = out / "failed" / "run-000"
    with started("--resume") as process:
        until((kept / "minute.jsonl").exists, process)
        process.terminate()
    # The taps end with the process that started them, so they told of the last minute, too.
    assert sum(one.samples for one in minutes(kept)) > 1_000
    assert (kept / "minute.hlog").stat().st_size > 0


@pytest.mark.alone
def test_counters_that_end_too_early_are_told_at_once(lab: Lab) -> None:
    """Not after the hours of the run."""
    plan = lab.plan(by_minute=True, traffic={"rate_pps": 1_000, "duration_s": 600})
    with subprocess.Popen(
        lab.command("run", str(plan), "--out", "out"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=lab.environment,
        cwd=lab.folder,
        text=True,
    ) as process:
        try:
            until_s = time.monotonic() + 60
            while (pid := lab.find("counters")) is None or lab.find("generate") is None:
                assert time.monotonic() < until_s
                time.sleep(0.1)
            os.kill(pid, signal.SIGKILL)
            _, told = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 4
    assert "tailtrim-agent counters: ended with -9" in told
