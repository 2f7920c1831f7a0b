"""Compares what tailtrim costs beside its peers with the record of this processor.

    make bench-gate                       # some minutes; nothing else should run
    python benchmarks/gate.py --record    # takes what it measures as the record

A turn runs each pair of programs three times, one after the other; a ratio is of two runs that
follow one another. The ratios of all turns are compared with those of the record, ``gate.json``, by
the test of ``tailtrim compare``, a turn as a repetition. The exit code is 1 if one is worse by more
than a margin. Of a processor without a record, nothing can be said: that is told, with exit code 0.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import machine
import pyarrow as pa
from captures import BUILT_BY, Case, generate, pinned, warm
from ending import end_with
from programs import naive_match
from session import ROOT

from tailtrim import _native
from tailtrim.laboratory.nodes.agent import program

RECORD = Path(__file__).with_name("gate.json")
SYNTHESIZE = ROOT / "target" / "release" / "examples" / "synthesize"
#: Allowance for the machine itself: its clock may be 3 % faster on another day, and programs of a
#: ratio do not gain alike.
MARGIN = 0.05
CONFIDENCE = "0.99"
#: Ratios of a turn, and turns: three are worth two independent ones, and the median of fewer than
#: 20 of these has no interval.
TIMES, TURNS = 3, 10
MILLION = 1_000_000

#: Ratios of each turn, by pair of programs.
Turns = dict[str, list[list[float]]]


@dataclass(frozen=True, slots=True)
class Beside:
    """A program of ours and the one that it is timed beside."""

    ours: list[str]
    other: list[str]

    def ratio(self) -> float:
        """Run both; return how much longer ours takes."""
        return taken_s(self.ours) / taken_s(self.other)


def taken_s(command: list[str]) -> float:
    """Run a command, which must succeed; return the time from start to exit."""
    begin_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - begin_s


def pairs(folder: Path, count: int) -> dict[str, Beside]:
    """Return what is timed, on captures with so many pairs of packets, made in a folder."""
    captures = generate(SYNTHESIZE, Case(60, count, "file"), folder)
    names = list(map(str, captures))
    compressed = [f"{name}.zst" for name in names]
    cores = machine.cores()
    ours = str(Path(sys.executable).with_name("tailtrim"))
    python = [sys.executable, "-c", "pass"]

    def analyze(cores: list[int], captures: list[str]) -> list[str]:
        options = ["--skip", "0", "--jobs", str(len(cores))]
        return [*pinned(cores), program(), "analyze", *options, *captures]

    one = analyze(cores[-1:], names)
    run, example = folder / "run", ROOT / "examples" / "testpmd"
    sides = [str(example / f"{side}.pcap.zst") for side in ("ingress", "egress")]
    taken_s([ours, "analyze", *sides, "--out", str(run)])
    found = {
        "tailtrim --version, beside python -c pass": Beside([ours, "--version"], python),
        "report of 40,000 packets, beside python -c pass": Beside(
            [ours, "report", str(run), "--out", str(folder / "report")], python
        ),
    }
    if (naive := naive_match(folder)) is not None:
        beside = Beside(one, [*pinned(cores[-1:]), str(naive), *names])
        found["analyze on one core, beside lean C"] = beside
    if len(cores) > 1:
        found["analyze on two cores, beside one"] = Beside(analyze(cores[-2:], names), one)
    if (zstd := shutil.which("zstd")) is not None:
        taken_s([zstd, "-q", *names])
        unpacked = [*pinned(cores[-2:]), zstd, "-q", "-dc", *compressed]
        found["analyze of zstd, beside zstd -dc"] = Beside(
            analyze(cores[-2:], compressed), unpacked
        )
    warm(captures)
    return found


def measured(count: int, turns: int) -> Turns:
    """Measure the ratios; a first turn does not count."""
    with tempfile.TemporaryDirectory(prefix="tailtrim-gate-") as folder:
        timed = pairs(Path(folder), count)
        found: Turns = {name: [] for name in timed}
        for turn in range(-1, turns):
            for name, beside in timed.items():
                ratios = [beside.ratio() for _ in range(1 if turn < 0 else TIMES)]
                if turn >= 0:
                    found[name].append(ratios)
    return found


def verdict(was: list[list[float]], now: list[list[float]]) -> tuple[str, str]:
    """Compare ratios; return the verdict and the change with its interval."""

    def side(turns: list[list[float]]) -> list[_native.NativeRepetition]:
        millionths = [[round(ratio * MILLION) for ratio in turn] for turn in turns]
        columns = [pa.array(turn, pa.int64()) for turn in millionths]
        return [_native.NativeRepetition(pa.table({"latency_ns": column})) for column in columns]

    text = _native.compare_runs(
        side(was),
        side(now),
        quantiles=["0.5"],
        curve=[],
        confidence=CONFIDENCE,
        margin=MARGIN,
        seed=1,
    )
    (row,) = json.loads(text)["quantiles"]
    if row["low"] is None or row["high"] is None:
        return row["verdict"], ""
    change, low, high = (100 * (row[name] - 1) for name in ("ratio", "low", "high"))
    return row["verdict"], f"{change:+.1f} % ({low:+.1f} to {high:+.1f})"


def table(was: Turns, now: Turns) -> tuple[str, bool]:
    """Return the result for people, and whether a ratio is worse."""
    lines = ["| | record | now | change, 99 % | |", "|---|--:|--:|--:|---|"]
    worse = False

    def middle(turns: list[list[float]]) -> float:
        return statistics.median(ratio for turn in turns for ratio in turn)

    for name, turns in now.items():
        if name not in was:
            lines.append(f"| {name} | | {middle(turns):.2f} | | no record |")
            continue
        found, change = verdict(was[name], turns)
        worse |= found == "worse"
        word = f"**{found}**" if found == "worse" else found.replace("_", " ")
        old = middle(was[name])
        lines.append(f"| {name} | {old:.2f} | {middle(turns):.2f} | {change} | {word} |")
    lines += [f"| {name} | {middle(was[name]):.2f} | | | not here |" for name in was.keys() - now]
    return "\n".join(lines), worse


def main() -> int:
    """Measure; compare with the record, or write it."""
    parser = argparse.ArgumentParser(description="Ratios beside those of a record.")
    parser.add_argument("--record", action="store_true", help="write the record")
    parser.add_argument("--pairs", type=int, default=3 * MILLION)
    parser.add_argument("--turns", type=int, default=TURNS)
    arguments = parser.parse_args()
    records: dict[str, Turns] = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    processor = f"{machine.processor()}, {len(machine.cores())} cores"
    load = os.getloadavg()[0]
    now = measured(arguments.pairs, arguments.turns)
    text, worse = table(records.get(processor, {}), now)
    print(f"{processor}, load {load:.1f} at the start\n\n{text}")
    if arguments.record:
        rounded = {
            name: [[round(ratio, 4) for ratio in turn] for turn in turns]
            for name, turns in now.items()
        }
        records[processor] = rounded
        RECORD.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
        return 0
    if processor not in records:
        print("\nno record of this processor, so nothing is compared: gate.py --record writes one")
    return int(worse)


if __name__ == "__main__":
    end_with(
        main, None if SYNTHESIZE.is_file() else f"{SYNTHESIZE.name}, expected from: {BUILT_BY}"
    )
