"""The agent's verb that changes hosts, this host's settings, and a host made of files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Files of the kernel that this machine's plans may change: all of them are compared.
WATCHED = (
    "/proc/sys/kernel/*",
    "/proc/sys/vm/*",
    "/proc/sys/net/core/*",
    "/proc/sys/net/ipv4/tcp_fastopen",
    "/proc/irq/default_smp_affinity",
    "/proc/irq/*/smp_affinity*",
    "/sys/devices/virtual/workqueue/*cpumask*",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/kernel/mm/transparent_hugepage/*",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/*",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/rcu_normal",
    "/sys/module/pcie_aspm/parameters/policy",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_*",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
)
#: Files whose values change by themselves.
MOVING = (
    "random",
    "pages_collapsed",
    "full_scans",
    "ns_last_pid",
    "hung_task_detect_count",
    "stat_refresh",
    "scaling_cur_freq",
)


class Tune:
    """The verb on this host, with a journal of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.program = str(Path(sys.executable).with_name("tailtrim-agent"))
        self.state = folder / "state"

    def command(self, verb: str, *words: str) -> list[str]:
        state = [] if verb in {"plan", "export"} else ["--state", str(self.state)]
        return [self.program, "tune", verb, *state, *words]

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = self.command(verb, *words)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    def json(self, verb: str, *words: str) -> dict[str, Any]:
        ended = self.run(verb, *words, "--json")
        assert ended.returncode == 0, ended.stderr
        parsed: dict[str, Any] = json.loads(ended.stdout)
        return parsed

    def records(self) -> int:
        """Return how many steps the journal says were begun."""
        try:
            return (self.state / "journal").read_bytes().count(b'"record":"start"')
        except FileNotFoundError:
            return 0


def snapshot() -> dict[str, bytes | set[int]]:
    """Return everything that a plan for this host may change."""
    found: dict[str, bytes | set[int]] = {}
    for pattern in WATCHED:
        for path in Path("/").glob(pattern[1:]):
            if path.name not in MOVING and path.is_file():
                try:
                    found[str(path)] = path.read_bytes()
                except OSError:
                    continue
    return found | affinities()


def affinities() -> dict[str, bytes | set[int]]:
    """Return the CPUs of kernel threads that live on."""
    found: dict[str, bytes | set[int]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (process / "stat").read_text().rsplit(")", 1)
            # Workers and threads of interrupts come, go and move by themselves.
            if rest.split()[1] == "2" and "(kworker" not in name and "(irq/" not in name:
                found[f"thread {name})"] = os.sched_getaffinity(int(process.name))
        except OSError:
            continue
    return found


def write(root: Path, path: str, content: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def tree(folder: Path) -> Path:
    """Return a host with two CPUs, GRUB and cgroup2."""
    root = folder / "root"
    for path, content in {
        "proc/cmdline": "quiet\n",
        "sys/devices/system/cpu/online": "0-1\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu\n",
        "sys/fs/cgroup/cgroup.subtree_control": "\n",
        "proc/sys/vm/stat_interval": "1\n",
        "etc/default/grub": "\n",
        "etc/systemd/system.conf": "\n",
        "usr/sbin/update-grub": "\n",
    }.items():
        write(root, path, content)
    return root


def files(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }
