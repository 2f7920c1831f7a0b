"""Times commands from start to exit, in turns with ``python -c pass``; fails where one is too slow.

    python benchmarks/startup.py [--turns 20] [--record]

With ``--record`` it writes a record into ``runs/<date>-<machine>-startup/``.
"""

from __future__ import annotations

import argparse
import csv
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import machine

from tailtrim.cli.catalogue import BY_AGENT
from tailtrim.laboratory.nodes.agent import program

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "benchmarks" / "runs"
CAPTURES = [f"examples/testpmd/{side}.pcap.zst" for side in ("ingress", "egress")]
PYTHON = "python -c pass"
#: Commands of Python whose work needs most modules: their help does without.
HEAVY = ("compare", "run", "selftest")
#: Time limits: for help, often the first command of a session, and for an analysis, which scripts
#: run in loops.
SHORT_S, ANALYSIS_S = 0.15, 0.25


@dataclass(frozen=True, slots=True)
class Case:
    """A command and its time limit: in all, or more than Python alone in the same turn."""

    name: str
    command: list[str]
    bound_s: float | None
    beyond_python: bool = False


def cases() -> list[Case]:
    """Return what is timed."""
    ours = str(Path(sys.executable).with_name("tailtrim"))
    verbs = [Case(f"tailtrim {v} --help", [ours, v, "--help"], SHORT_S) for v in sorted(BY_AGENT)]
    analyze = ["analyze", *CAPTURES]
    return [
        Case(PYTHON, [sys.executable, "-c", "pass"], None),
        Case("tailtrim --version", [ours, "--version"], SHORT_S, beyond_python=True),
        Case("tailtrim --help", [ours, "--help"], SHORT_S),
        *verbs,
        Case("tailtrim analyze, 40,000 packets", [ours, *analyze], ANALYSIS_S),
        Case("the same, --json", [ours, *analyze, "--json"], ANALYSIS_S),
        Case("tailtrim-agent analyze, the same", [program(), *analyze], SHORT_S),
        *(Case(f"tailtrim {v} --help", [ours, v, "--help"], SHORT_S) for v in HEAVY),
    ]


@dataclass(frozen=True, slots=True)
class Taken:
    """Time of a command from start to exit: on the wall, and of processors."""

    wall_s: float
    cpu_s: float


def taken(command: list[str]) -> Taken:
    """Run a command, which must succeed."""
    before, begin_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    wall_s, after = time.perf_counter() - begin_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Taken(wall_s, cpu_s)


def measured(timed: list[Case], turns: int) -> dict[str, list[Taken]]:
    """Return the times of each case, every other turn backwards; a first turn does not count."""
    found: dict[str, list[Taken]] = {case.name: [] for case in timed}
    for turn in range(-1, turns):
        for case in timed[:: 1 if turn % 2 else -1]:
            one = taken(case.command)
            if turn >= 0:
                found[case.name].append(one)
    return found


def judged(timed: list[Case], found: dict[str, list[Taken]]) -> list[tuple[Case, float, bool]]:
    """Return for each case the median that its bound is for, and whether it is kept."""
    rows = []
    for case in timed:
        times = [one.wall_s for one in found[case.name]]
        if case.beyond_python:
            alone = [one.wall_s for one in found[PYTHON]]
            times = [one - other for one, other in zip(times, alone, strict=True)]
        middle = statistics.median(times)
        rows.append((case, middle, case.bound_s is None or middle <= case.bound_s))
    return rows


def table(rows: list[tuple[Case, float, bool]], found: dict[str, list[Taken]]) -> str:
    """Return the result for people."""
    head = "| command | median, s | range, s | processor, s | bound, s | |"
    lines = [head, "|---|--:|--:|--:|--:|---|"]
    for case, middle, kept in rows:
        times = [one.wall_s for one in found[case.name]]
        cpu_s = statistics.median(one.cpu_s for one in found[case.name])
        name = f"{case.name}, beyond {PYTHON}" if case.beyond_python else case.name
        bound = "" if case.bound_s is None else f"{case.bound_s:.2f}"
        verdict = "" if case.bound_s is None else "kept" if kept else "**exceeded**"
        span = f"{min(times):.3f}-{max(times):.3f}"
        lines.append(f"| {name} | {middle:.3f} | {span} | {cpu_s:.3f} | {bound} | {verdict} |")
    return "\n".join(lines) + "\n"


def keep(text: str, found: dict[str, list[Taken]], load: str) -> None:
    """Write the record."""
    name = machine.name(len(machine.cores()))
    place = RUNS / f"{datetime.now(tz=UTC):%Y-%m-%d}-{name}-startup"
    place.mkdir(exist_ok=True)
    facts = machine.facts(ROOT, Path(program()), len(machine.cores()))
    shown = {key: facts[key] for key in ("processor", "kernel", "python", "tailtrim-agent")}
    shown["load average at the start"] = load
    about = "".join(f"| {key} | {value} |\n" for key, value in shown.items())
    heading = (
        "# From start to exit\n\nIn turns; the range is that of whole times.\n\n| | |\n|---|---|\n"
    )
    (place / "startup.md").write_text(f"{heading}{about}\n{text}")
    with (place / "startup.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["command", "turn", "wall_s", "cpu_s"])
        for command, times in found.items():
            rows = ((one.wall_s, one.cpu_s) for one in times)
            writer.writerows([command, turn, *row] for turn, row in enumerate(rows))
    print(f"record: {place.relative_to(ROOT)}")


def main() -> int:
    """Time the commands; 1 if one takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    load = Path("/proc/loadavg").read_text().rsplit(maxsplit=2)[0]
    timed = cases()
    found = measured(timed, arguments.turns)
    rows = judged(timed, found)
    text = table(rows, found)
    print(text, end="")
    if arguments.record:
        keep(text, found, load)
    return 0 if all(kept for *_, kept in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
