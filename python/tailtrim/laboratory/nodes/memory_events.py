"""Disturbances of a program by its node's memory management: page faults, TLB shootdowns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.nodes.node import Node

# The line of the CPUs, that of TLB shootdowns, and the state of a process and all that it started.
# Without processes of its own: each takes a tenth of a second on an emulated CPU.
_READ = """
while read -r line; do
    case $line in CPU*|TLB:*) echo "$line" ;; esac
done </proc/interrupts
while [ $# -gt 0 ]; do
    process=$1; shift
    { read -r state <"/proc/$process/stat"; } 2>/dev/null && echo "$state"
    for list in /proc/"$process"/task/*/children; do
        children=
        { read -r children <"$list"; } 2>/dev/null
        set -- "$@" $children
    done
done
"""
# Of proc_pid_stat(5), behind the name: minflt, cminflt, majflt, cmajflt. A process that has ended
# is counted by the one that waited for it.
_FAULTS = slice(7, 11)


@dataclass(frozen=True, slots=True)
class Activity:
    """Counters since a program was started, and since its node booted.

    ``page_faults`` are those of the program with all that it started, minor and major;
    ``shootdowns`` the TLB shootdowns that some CPUs were interrupted for, ``None`` where the kernel
    counts none.
    """

    page_faults: int
    shootdowns: int | None


def activity(node: Node, process: int, cpus: Sequence[int]) -> Activity:
    """Read the counters of a program.

    Args:
        node: where it runs.
        process: the number of the program on its node.
        cpus: those on which it handles packets.

    Raises:
        RunError: the node cannot be reached.

    """
    lines = node.call("sh", "-c", _READ, "sh", str(process)).stdout.splitlines()
    states = [line.rpartition(")")[2].split() for line in lines if ")" in line]
    names = next((line.split() for line in lines if line.startswith("CPU")), [])
    counts = next((line.split()[1:] for line in lines if line.startswith("TLB:")), None)
    by_cpu = dict(zip(names, counts or (), strict=False))
    return Activity(
        page_faults=sum(int(count) for state in states for count in state[_FAULTS]),
        shootdowns=None if counts is None else sum(int(by_cpu.get(f"CPU{cpu}", 0)) for cpu in cpus),
    )
