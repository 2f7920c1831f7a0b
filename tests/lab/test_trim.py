"""Searches on a live testbed: however one ends, it is taken up where it was."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from laboratory import Lab

pytest.importorskip("pydoe", reason="needs tailtrim[trim]")


def _searching(lab: Lab, trials: int, end: signal.Signals, *words: str) -> list[dict[str, Any]]:
    """Search until there are so many trials, and end it; returns the trials."""
    plan = lab.plan(
        dut={"preset": "forward", "delay": "$delay", "batch": "$batch"},
        trim={
            "candidates": {
                "delay": {"baseline": "constant:2ms", "changed": "constant:20us"},
                "batch": {"baseline": 32, "changed": 16},
            }
        },
    )
    record = lab.folder / "out" / "trim.json"
    command = ["/usr/bin/env", "--default-signal=INT,TERM", *lab.command("trim", str(plan))]
    with subprocess.Popen(
        [*command, "--out", "out", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=lab.environment,
        cwd=lab.folder,
    ) as process:
        try:
            end_s = time.monotonic() + 60
            while len(_trials(record)) < trials:
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
                assert time.monotonic() < end_s
                time.sleep(0.05)
            process.send_signal(end)
            process.wait(30)
        finally:
            process.kill()
    until_s = time.monotonic() + 30
    while lab.left():
        assert time.monotonic() < until_s
        time.sleep(0.05)
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
    before = _searching(lab, 1, end)
    after = _searching(lab, len(before) + 1, signal.SIGINT, "--resume")

    assert after[: len(before)] == before
    assert not list((lab.folder / "out").glob(".*"))
