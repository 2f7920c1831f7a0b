"""State of the machine around a test that failed: a test of time fails where others have the CPUs.

Each number comes from Linux's ``/proc``, so that a starved or stolen CPU is not taken for a defect.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOWN = 8
#: Fields of ``/proc/stat``'s first line, in jiffies.
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """CPU time so far: of all CPUs by kind, and of each process."""

    at_s: float
    jiffies: dict[str, int]
    processes: dict[int, tuple[str, int]]

    @classmethod
    def taken(cls) -> Snapshot:
        """Return that of now."""
        words = Path("/proc/stat").read_text("utf-8").split("\n", 1)[0].split()[1:]
        jiffies = dict(zip(FIELDS, map(int, words), strict=False))
        return cls(time.monotonic(), jiffies, dict(_processes()))

    def until(self, end: Snapshot) -> str:
        """Return what had the CPUs between this and a later one, as lines."""
        spent = {name: end.jiffies[name] - self.jiffies[name] for name in FIELDS}
        total = max(sum(spent.values()), 1)
        shares = ", ".join(
            f"{name} {100 * part / total:.0f} %" for name, part in spent.items() if part
        )
        each = [
            (jiffies - self.processes.get(pid, ("", 0))[1], pid, name)
            for pid, (name, jiffies) in end.processes.items()
        ]
        second = os.sysconf("SC_CLK_TCK")
        most = [
            f"{jiffies / second:8.1f} s  {pid} {name}" for jiffies, pid, name in sorted(each)[::-1]
        ]
        pressure = [
            f"{path.name}: {path.read_text('utf-8').splitlines()[0]}"
            for path in sorted(Path("/proc/pressure").glob("*"))
        ]
        memory = Path("/proc/meminfo").read_text("utf-8").splitlines()[2]
        lines = [f"{end.at_s - self.at_s:.1f} s: {shares}", memory, *pressure]
        return "\n".join([*lines, "CPU time of processes that still run:", *most[:SHOWN]])


def _processes() -> Iterator[tuple[int, tuple[str, int]]]:
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text("utf-8", "replace")
            words = (path / "cmdline").read_text("utf-8", "replace").split("\0")
        except OSError:
            continue
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()
        command = " ".join(words)[:100] or name
        yield int(path.name), (command, int(fields[11]) + int(fields[12]))
