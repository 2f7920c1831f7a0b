"""The command line on a live testbed, and a search for anything that it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import yaml

MARK = "TAILTRIM_LAB_TEST"


class Lab:
    """The command line as a user types it, with processes that can be found again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.environment = os.environ | {MARK: self.mark, "NO_COLOR": "1"}
        self.program = str(Path(sys.executable).with_name("tailtrim"))
        self.agent = str(Path(sys.executable).with_name("tailtrim-agent"))

    def plan(self, **plan: Any) -> Path:
        path = self.folder / "plan.yml"
        usual = {
            "name": "lab",
            "dut": {"preset": "forward"},
            "traffic": {"rate_pps": 5_000, "flows": 4, "duration_s": 0.5},
            "skip_s": 0,
            "floor": False,
            # The machine that tests is not the one that measures.
            "limits": {"lateness_p99_us": 1e6, "sent_share": 0.5},
        }
        path.write_text(yaml.safe_dump(usual | plan), encoding="utf-8")
        return path

    def command(self, *words: str) -> list[str]:
        return [self.program, *words]

    def run(self, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env=self.environment,
            cwd=self.folder,
        )

    def until(self, log: Path, word: str) -> None:
        """Wait until a program has written a word."""
        end = time.monotonic() + 20
        while word not in log.read_text():
            assert time.monotonic() < end, f"{word!r} never came: {log.read_text()}"
            time.sleep(0.05)

    def left(self) -> list[str]:
        """Return what still runs of all that was started."""
        return list(self._running().values())

    def until_ended(self, within_s: float = 10) -> None:
        """Wait until nothing runs any more of all that was started."""
        until_s = time.monotonic() + within_s
        while left := self.left():
            assert time.monotonic() < until_s, left
            time.sleep(0.02)

    def find(self, verb: str) -> int | None:
        """Return the agent that runs a verb, in its namespace."""
        start = f"{self.agent} {verb} "
        found = (pid for pid, command in self._running().items() if command.startswith(start))
        return next(found, None)

    def pid(self, program: str) -> int:
        """Return the process of a program that was started."""
        return next(pid for pid, line in self._running().items() if line.startswith(program))

    def path_without(self, program: str) -> str:
        """Return a PATH on which all programs are but one."""
        folder = self.folder / "bin"
        folder.mkdir()
        for known in self.environment["PATH"].split(os.pathsep):
            for path in Path(known).glob("*"):
                if path.name != program and not (folder / path.name).exists():
                    (folder / path.name).symlink_to(path)
        return str(folder)

    def _running(self) -> dict[int, str]:
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes()
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if f"{MARK}={self.mark}".encode() in environment:
                text = command.replace(b"\0", b" ").decode(errors="replace")
                found[int(process.name)] = text
        return found

    def result(self, run: str, name: str) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(
            (self.folder / "out" / run / f"{name}.json").read_text()
        )
        return parsed


def all_counted(summary: dict[str, Any]) -> bool:
    """Return whether each packet has one outcome, and some passed.

    How many pass is not the same where other tests have the CPUs: queues of the kernel overflow.
    """
    for side in ("ingress", "egress"):
        outcomes = dict(summary[side])
        if outcomes.pop("packets") != sum(outcomes.values()):
            return False
    return passed(summary) > 0


def passed(summary: dict[str, Any]) -> int:
    """Return how many packets passed: with a latency, or behind a stall of the generator."""
    return int(summary["samples"] + summary["ingress"]["stalled"])
