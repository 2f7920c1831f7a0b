"""``tailtrim noise`` and oslat on the same CPU: both find the same gaps.

Which is noisier is a matter for ``benchmarks/noise.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import tools

from tailtrim.laboratory.doctor.installed import OSLAT
from tailtrim.laboratory.nodes.agent import program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.packages

CPUS = sorted(os.sched_getaffinity(0))
CPU = CPUS[-1]
SECONDS = 2
#: Of both tools, above what a distribution starts; normal threads are then no noise.
PRIORITY = 50
#: The disturbance: so long, so often.
BURST_MS = 2
PERIOD_MS = 20
#: A burst more or less at the ends, a fair server's 50 ms, a host that takes the CPU.
TOLERANCE = 0.3
#: Below, a virtual machine's host has hundreds of gaps in one second and none in the next.
THRESHOLD = ("--threshold", "2us")
MS_NS = 1_000_000

BURSTS = f"""
import os, sys, time
os.sched_setaffinity(0, [{CPU}])
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param({PRIORITY + 20}))
print("ready", flush=True)
due = time.monotonic()
while os.getppid() == {{parent}}:
    due += {PERIOD_MS} / 1000
    time.sleep(max(0.0, due - time.monotonic()))
    end = time.monotonic() + {BURST_MS} / 1000
    while time.monotonic() < end:
        pass
"""


@pytest.fixture(autouse=True)
def _able() -> None:
    tools.need(OSLAT)
    if len(CPUS) < 2:
        pytest.skip("needs a CPU to measure and one to live on")
    tried = subprocess.run(
        ["/usr/bin/env", "chrt", "--fifo", "1", "true"], check=False, capture_output=True, text=True
    )
    if tried.returncode:
        pytest.skip(f"no real-time priority here: {tried.stderr.strip()}")


@contextmanager
def bursts() -> Iterator[None]:
    """Take the CPU for a known time, again and again."""
    code = BURSTS.format(parent=os.getpid())
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.kill()


def ours(*options: str) -> dict[str, Any]:
    """Measure with ours; without a trace, as oslat has none."""
    fixed = ["--cpus", str(CPU), "--duration", str(SECONDS), "--fifo", "--no-trace", "--json"]
    return _told([program(), "noise", *fixed, *options])


def theirs(folder: Path) -> dict[str, Any]:
    """Measure with oslat."""
    file = folder / "oslat.json"
    where = ["--cpu-list", str(CPU), "--cpu-main-thread", str(CPUS[0]), "--rtprio", str(PRIORITY)]
    how = ["--duration", str(SECONDS), "--bucket-size", "1024", f"--json={file}"]
    subprocess.run(["/usr/bin/env", "oslat", *where, *how], check=True, capture_output=True)
    return _told([program(), "noise", "--read", str(file), *THRESHOLD, "--json"])


def _told(command: list[str]) -> dict[str, Any]:
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return result


def rate(result: dict[str, Any], ns: int) -> float:
    """Return how many gaps a second were at least so long."""
    counts = {step["ns"]: step["gaps"] for step in result["cpus"][0]["at_least"]}
    return float(counts[ns]) / float(result["seconds"])


def test_known_bursts_are_found_by_both(tmp_path: Path) -> None:
    known = 1_000 / PERIOD_MS
    quiet = rate(ours(), MS_NS)
    with bursts():
        found = {"tailtrim": rate(ours(), MS_NS), "oslat": rate(theirs(tmp_path), MS_NS)}
    for tool, seen in found.items():
        assert known * (1 - TOLERANCE) <= seen <= known * (1 + TOLERANCE) + quiet, (
            tool,
            found,
            quiet,
        )
    # Not by chance: they are not there without.
    assert quiet < known / 2, quiet


def test_bursts_are_as_long_as_they_are() -> None:
    with bursts():
        of_cpu = ours("--threshold", "1ms")["cpus"][0]
    assert BURST_MS * MS_NS * 0.95 <= of_cpu["p50_ns"] <= BURST_MS * MS_NS * 1.5, of_cpu
