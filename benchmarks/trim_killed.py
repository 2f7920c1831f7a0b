"""Check of a host after `tailtrim trim` was killed at a random moment (kill -9).

    python benchmarks/trim_killed.py --kills 20      # as root, on a host without changes of tune

Each search tries two changes of this host (vm.stat_interval, kernel.timer_migration). Every other
killed search is gone on with to its end (`trim --resume`), the others are taken back alone
(`tune revert`). Then every value, interface, mount, control group and file in /tmp is compared with
what was there before, and no process may be left. Prints a line for each kill, and how many were
right; exit code 1 if not all were.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

_MARK = "TAILTRIM_KILLED"
_PLAN = """\
name: killed
dut: {{preset: forward}}
traffic: {{rate_pps: 2000, flows: 4, duration_s: 0.3}}
skip_s: 0
floor: false
limits: {{lateness_p99_us: 1000000, sent_share: 0.5}}
trim:
  host: {{name: {host}, profile: latency-kernel, only: [vm.stat_interval, kernel.timer_migration]}}
"""
#: 74 s is what the fewest trials of two changes are taken to last.
_BUDGET = "80s"
#: Exit codes of a search that went to its end: something is kept, nothing is.
_ENDED = {0, 1}
#: s: how long all that a killed search had started may take to end.
_GONE_S = 30.0
_VALUES = ("/proc/sys/kernel/*", "/proc/sys/vm/*", "/proc/sys/net/core/*")
#: These change by themselves.
_MOVING = ("random", "ns_last_pid", "hung_task_detect_count", "stat_refresh", "tainted")
_PROGRAMS = Path(sys.executable).parent


class World(NamedTuple):
    """Settings and objects of this host that a search might leave changed, or behind."""

    values: dict[str, bytes]
    interfaces: set[str]
    mounts: set[str]
    groups: set[str]
    files: set[str]

    @classmethod
    def seen(cls) -> World:
        """Look at this host."""
        values = {}
        for path in (path for pattern in _VALUES for path in Path("/").glob(pattern[1:])):
            if path.name not in _MOVING and path.is_file() and os.access(path, os.R_OK):
                values[str(path)] = path.read_bytes()
        mounts = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
        return cls(
            values,
            {path.name for path in Path("/sys/class/net").iterdir()},
            {line.split()[4] for line in mounts},
            {folder for folder, _, _ in os.walk("/sys/fs/cgroup")},
            {path.name for path in Path(tempfile.gettempdir()).glob("tailtrim-*")},
        )

    def difference(self, after: World) -> list[str]:
        """Say what is different afterwards."""
        told = [name for name, value in self.values.items() if after.values.get(name) != value]
        for before, now in zip(self[1:], after[1:], strict=True):
            told += [f"{one} (new)" for one in sorted(now - before)]
        return told


def main() -> None:
    """Kill, take up or take back, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--within-s", type=float, default=30.0, help="latest moment of a kill")
    asked = parser.parse_args()
    if _applied():
        sys.exit("changes of tailtrim tune are applied: tailtrim tune revert")
    right = 0
    for number in range(asked.first, asked.first + asked.kills):
        # So that each kill can be done again.
        chance = random.Random(number)  # noqa: S311
        found = None
        while found is None:
            moment = chance.uniform(0.0, asked.within_s)
            with tempfile.TemporaryDirectory(prefix="killed-") as folder:
                found = _killed(Path(folder), moment, resume=number % 2 == 0)
        told, wrong = found
        right += not wrong
        said = "; ".join(wrong) or "as before"
        print(f"{number:3}  killed after {moment:5.2f} s, {told}: {said}", flush=True)
    print(f"{right} of {asked.kills} as before")
    sys.exit(right < asked.kills)


def _killed(folder: Path, moment_s: float, *, resume: bool) -> tuple[str, list[str]] | None:
    """Kill one search; return where it was and how it went on, and what is wrong.

    ``None`` if it had ended by itself: then it is killed at another moment.
    """
    before, mark = World.seen(), uuid.uuid4().hex
    (folder / "plan.yml").write_text(_PLAN.format(host=socket.gethostname()), "utf-8")
    search = ["trim", "plan.yml", "--out", "out", "--duration", _BUDGET]
    environment = os.environ | {_MARK: mark}
    with subprocess.Popen(
        [str(_PROGRAMS / "tailtrim"), *search],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(moment_s)
        process.send_signal(signal.SIGKILL)
        code = process.wait()
    if code in _ENDED:
        _agent("revert")
        return None
    wrong = [] if code == -signal.SIGKILL else [f"it had ended by itself with {code}"]
    wrong += [f"left running: {one}" for one in _left(mark)]
    record = _record(folder)
    told = f"{len(record.get('trials', []))} trials, {'' if _applied() else 'not '}changed"
    if resume:
        again = ["--resume"] if record else []
        ended = subprocess.run(
            [str(_PROGRAMS / "tailtrim"), *search, *again],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        result = _record(folder).get("result")
        if ended.returncode not in _ENDED or result is None:
            wrong.append(f"resume ended with {ended.returncode}: {ended.stderr.strip()[-200:]}")
        kept = result["kept"] if result else []
        told += f", resumed: {result['trials'] if result else 0} trials, kept {kept or 'nothing'}"
        if _applied() != bool(kept):
            wrong.append("what is applied is not what is kept")
        wrong += [f"left running after resume: {one}" for one in _left(mark)]
    _agent("revert")
    if _applied():
        wrong.append("not reverted")
    return told, wrong + before.difference(World.seen())


def _record(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / "out" / "trim.json").read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found


def _left(mark: str) -> list[str]:
    """Return what still runs when all had the time to end."""
    until_s = time.monotonic() + _GONE_S
    while (left := _running(mark)) and time.monotonic() < until_s:
        time.sleep(0.1)
    return left


def _running(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{_MARK}={mark}".encode() in (process / "environ").read_bytes():
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                found.append(command.decode(errors="replace"))
        except OSError:
            continue
    return found


def _applied() -> bool:
    return bool(json.loads(_agent("status", "--json"))["applied"])


def _agent(*words: str) -> str:
    command = [str(_PROGRAMS / "tailtrim-agent"), "tune", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
