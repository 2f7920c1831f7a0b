"""Measures the reflectors of two agents in turns, so that whatever else a machine does meets both.

    python benchmarks/reflector_turns.py BEFORE AFTER [--turns 3] [--out turns.csv]

Needs root, nft and bpftool. Prints medians, with extremes in brackets: replies a second, the time
of one run of the XDP program, and round trips from user to user.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import roundtrip_peers as peers

import roundtrip as rounds

if TYPE_CHECKING:
    from collections.abc import Iterator

MODES = {
    "XDP": ("--mode", "xdp"),
    "AF_XDP, polling": ("--mode", "af-xdp", "--busy-poll"),
    "AF_XDP": ("--mode", "af-xdp"),
    "sockets, polling": ("--mode", "socket", "--busy-poll"),
    "sockets": ("--mode", "socket"),
}
OFFERED_PPS = (100_000, 200_000, 300_000, 400_000, 600_000, 900_000)
TIMED_PPS = 150_000
#: Runs of a program from which its time is known.
ENOUGH = 10_000
STATS = "kernel.bpf_stats_enabled"
QUANTILES = {"min": 0.0, "p50": 0.5, "p99": 0.99}

#: Of what, in which unit.
Measured = tuple[str, float]


def measured(mode: str, agent: str) -> Iterator[Measured]:
    """Measure one mode of one agent."""
    fixed = ["--echo", str(peers.ECHO), "--rate", "0", "--interface", peers.ANSWERS]
    pinned = ["--address", peers.FAR, "--cpu", str(peers.REFLECTOR_CPU)]
    reflector = peers.Reflector(mode, [agent, "reflect", *fixed, *pinned, *MODES[mode]])
    with rounds.pair(steered=True) as (near, far), peers.answering(reflector, far):
        hook = "type filter hook prerouting priority raw;"
        drop = f"table ip replies {{\nchain come {{\n{hook}\n{rounds.REPLY} drop\n}}\n}}\n"
        near.run("nft", "-f", "-", given=drop)
        yield "replies/s", max(rounds.offer(near, rate)[1] for rate in OFFERED_PPS)
        subprocess.run(["sysctl", "-qw", f"{STATS}=1"], check=True)
        try:
            rounds.offer(near, TIMED_PPS)
        finally:
            subprocess.run(["sysctl", "-qw", f"{STATS}=0"], check=True)
        for program in json.loads(far.run("bpftool", "-j", "prog", "show")):
            if program["type"] == "xdp" and program.get("run_cnt", 0) > ENOUGH:
                yield "ns per run", program["run_time_ns"] / program["run_cnt"]
    client = peers.our_client("tailtrim", reflector, "application")
    with rounds.pair() as (near, far), peers.answering(reflector, far):
        trips, _ = peers.ask(client, near, peers.LATENCY_PPS, rounds.LATENCY_S)
        ascending = np.sort(trips[peers.USER])
        for name, p in QUANTILES.items():
            rank = min(int(p * ascending.size), ascending.size - 1)
            yield f"{name}, µs", float(ascending[rank]) / 1e3


def main() -> None:
    """Measure in turns, the order of the two changing from turn to turn."""
    parser = argparse.ArgumentParser(description="Reflectors of two agents in turns.")
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("turns.csv"))
    arguments = parser.parse_args()
    agents = [("before", arguments.before), ("after", arguments.after)]
    rows: list[tuple[str, str, str, int, float]] = []
    for turn in range(1, arguments.turns + 1):
        for mode in MODES:
            for name, agent in agents if turn % 2 else agents[::-1]:
                rows += [(mode, what, name, turn, value) for what, value in measured(mode, agent)]
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["mode", "what", "agent", "turn", "value"])
        table.writerows((*row[:4], f"{row[4]:.3f}") for row in rows)
    for mode, what in dict.fromkeys(row[:2] for row in rows):
        told = []
        for name, _ in agents:
            values = [row[4] for row in rows if row[:3] == (mode, what, name)]
            middle = statistics.median(values)
            told.append(f"{middle:,.1f} ({min(values):,.1f}-{max(values):,.1f})")
        print(f"| {mode} | {what} | {' | '.join(told)} |")


if __name__ == "__main__":
    main()
