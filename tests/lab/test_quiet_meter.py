"""``tailtrim noise`` does not disturb the CPU that it measures."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from tailtrim.laboratory.nodes.agent import program

CPUS = sorted(os.sched_getaffinity(0))
CPU = CPUS[-1]
SECONDS = 3


def test_memory_given_back_while_noise_is_measured() -> None:
    if len(CPUS) < 2:
        pytest.skip("needs a CPU to measure and one to live on")
    where = ["--cpus", str(CPU), "--source", "tracefs"]
    command = [program(), "noise", *where, "--duration", f"{SECONDS}s", "--json"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    if "no_trace" in result:
        pytest.skip(f"senders of interrupts are unknown: {result['no_trace']}")
    # It gave memory back twenty times a second, with a TLB shootdown each time. Only the interrupt
    # that lets its thread begin is left, and perhaps one when it was displaced.
    assert result["trace"]["counts"]["from_recorder"] < SECONDS, result["trace"]
