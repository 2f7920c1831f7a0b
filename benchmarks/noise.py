"""Measures how quiet a CPU is with ``tailtrim noise`` and with its peers, in turns; needs root.

    python benchmarks/noise.py [--seconds 3] [--turns 4] [--cpu N]

Writes ``noise.md`` and ``noise.csv`` into ``runs/<date>-<machine>-noise/``. README.md in this
folder says how to read them. Programs that are not installed are skipped with the reason.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import machine

from tailtrim.errors import TailtrimError
from tailtrim.laboratory.nodes.agent import program

RUNS = Path(__file__).resolve().parent / "runs"
OURS = "tailtrim noise"
TRACED = "tailtrim noise, tracing"
ASLEEP = "tailtrim noise, --default-system"
#: Ours is called noisier if the median of the turns' ratios is above it.
NOISIER = 1.25
#: As ``tailtrim noise --fifo``.
PRIORITY = "50"
INTERVAL_US = 1_000
#: Gaps from here up are counted. oslat distinguishes times by whole µs; below 2 µs the host of a
#: virtual machine has hundreds of gaps in one second and none in the next.
THRESHOLD = "2us"
#: Numbers that are compared: lower is quieter.
COMPARED = ("p50", "p99", "at least 2 µs", "at least 10 µs", "at least 100 µs")


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one run of one program."""

    case: str
    program: str
    turn: int
    what: str
    value: float | None
    unit: str


class Programs:
    """The programs, all for the same CPU and the same time."""

    def __init__(self, agent: str, cpu: int, seconds: int) -> None:
        """Take the agent, the CPU and how long to measure."""
        self.agent = agent
        self.cpu = str(cpu)
        self.other = str(next((core for core in machine.cores() if core != cpu), cpu))
        self.seconds = str(seconds)

    def ours(self, *options: str) -> list[str]:
        """Return the command of ours."""
        fixed = ["--duration", self.seconds, "--json"]
        return [self.agent, "noise", "--cpus", self.cpu, *fixed, *options]

    def oslat(self, *options: str) -> list[str]:
        """Return that of oslat, without its file."""
        where = ["--cpu-list", self.cpu, "--cpu-main-thread", self.other]
        return ["oslat", *where, "--duration", self.seconds, "--bucket-size", "1024", *options]

    def cyclictest(self) -> list[str]:
        """Return that of cyclictest, without its file."""
        where = ["--threads=1", f"--affinity={self.cpu}", f"--mainaffinity={self.other}"]
        how = [f"--priority={PRIORITY}", "--mlockall", f"--interval={INTERVAL_US}"]
        kept = ["--histogram=5000", "--quiet"]
        return ["cyclictest", *where, *how, f"--duration={self.seconds}", *kept]

    def polling(self) -> dict[str, list[str]]:
        """Return loops beside whatever else runs."""
        poll = ["--threshold", THRESHOLD]
        return {
            OURS: self.ours(*poll, "--no-trace"),
            TRACED: self.ours(*poll),
            "oslat": self.oslat(),
        }

    def polling_first(self) -> dict[str, list[str]]:
        """Return loops that go before whatever else runs."""
        poll = ["--threshold", THRESHOLD, "--fifo"]
        return {
            OURS: self.ours(*poll, "--no-trace"),
            TRACED: self.ours(*poll),
            "oslat": self.oslat("--rtprio", PRIORITY),
        }

    def timers(self) -> dict[str, list[str]]:
        """Return those that wait for timers."""
        timer = ["--mode", "timer", "--interval", f"{INTERVAL_US}us", "--fifo"]
        return {
            OURS: self.ours(*timer, "--no-trace"),
            ASLEEP: self.ours(*timer, "--no-trace", "--default-system"),
            "cyclictest": self.cyclictest(),
        }

    def run(self, command: list[str], folder: Path) -> dict[str, Any]:
        """Run one and wait for it."""
        return self.result(self.start(command, folder), command, folder)

    def start(self, command: list[str], folder: Path) -> subprocess.Popen[str]:
        """Start one; a peer writes its file into the folder."""
        own = command[0] == self.agent
        output = [] if own else [f"--json={folder / command[0]}.json"]
        pipe = subprocess.PIPE if own else subprocess.DEVNULL
        return subprocess.Popen([*command, *output], stdout=pipe, stderr=subprocess.PIPE, text=True)

    def result(
        self, process: subprocess.Popen[str], command: list[str], folder: Path
    ) -> dict[str, Any]:
        """Wait for it and give its result."""
        output, errors = process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, output, errors)
        if command[0] != self.agent:
            # The peers' files are read by what this is about.
            read = [self.agent, "noise", "--read", str(folder / f"{command[0]}.json")]
            read += ["--threshold", THRESHOLD, "--json"]
            output = subprocess.run(read, check=True, capture_output=True, text=True).stdout
        last: dict[str, Any] = json.loads(output.splitlines()[-1])
        return last


def main() -> int:
    """Measure everything and write the record."""
    parser = argparse.ArgumentParser(description="tailtrim noise beside oslat and cyclictest.")
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--cpu", type=int, default=max(machine.cores()))
    parser.add_argument("--agent", default=None, metavar="FILE", help="another build")
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="DIR")
    arguments = parser.parse_args()
    programs = Programs(arguments.agent or program(), arguments.cpu, arguments.seconds)
    cases = {
        "gaps, normal priority": programs.polling(),
        "gaps, SCHED_FIFO": programs.polling_first(),
        "timers": programs.timers(),
    }
    missing = [name for name in ("oslat", "cyclictest") if shutil.which(name) is None]
    for name in missing:
        print(f"skipped: {name} is not installed (Debian: rt-tests)", file=sys.stderr)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for turn in range(1, arguments.turns + 1):
            for case, commands in cases.items():
                here = {n: c for n, c in commands.items() if c[0] not in missing}
                rows += in_turn(programs, case, here, turn, folder)
            if "cyclictest" not in missing:
                rows += together(programs, turn, folder)
    core_count = len(machine.cores())
    place = arguments.runs / f"{datetime.now(tz=UTC):%Y-%m-%d}-{machine.name(core_count)}-noise"
    agent = Path(programs.agent)
    facts = machine.facts(Path(__file__).resolve().parent.parent, agent, core_count)
    write(place, rows, cases, facts, agent)
    print((place / "noise.md").read_text())
    return 0


def in_turn(
    programs: Programs, case: str, commands: dict[str, list[str]], turn: int, folder: Path
) -> list[Row]:
    """Run the programs one after the other; every other turn backwards."""
    order = list(commands.items())
    if turn % 2 == 0:
        order.reverse()
    rows: list[Row] = []
    for name, command in order:
        result = programs.run(command, folder)
        rows += numbers(case, name, turn, result, int(programs.seconds))
        print(f"{turn}: {case}: {name}: p50 {rows[-len(COMPARED)].value}", file=sys.stderr)
    return rows


def together(programs: Programs, turn: int, folder: Path) -> list[Row]:
    """Run the two programs that sleep most of the time at the same time on one CPU.

    Two polling loops cannot be compared so: each would be the other's gap.
    """
    commands = programs.timers()
    # Other programs that keep the CPU awake do so for all.
    del commands[ASLEEP]
    started = {name: programs.start(command, folder) for name, command in commands.items()}
    rows = []
    for name, process in started.items():
        result = programs.result(process, commands[name], folder)
        rows += numbers("timers, at the same time", name, turn, result, int(programs.seconds))
    return rows


def numbers(case: str, name: str, turn: int, result: dict[str, Any], seconds: float) -> list[Row]:
    """Take what is compared, and what is not but tells something."""
    of_cpu = result["cpus"][0]
    seconds = result.get("seconds") or seconds

    def row(what: str, value: float | None, unit: str) -> Row:
        return Row(case, name, turn, what, value, unit)

    def micros(key: str) -> float | None:
        return None if of_cpu[key] is None else of_cpu[key] / 1_000

    rows = [
        row("gaps", of_cpu["gaps"] / seconds, "a second"),
        row("max", micros("longest_ns"), "µs"),
    ]
    interrupts = of_cpu.get("counters", {}).get("interrupts", {})
    ticks = [count for vector, count in interrupts.items() if vector.startswith("LOC_")]
    if ticks:
        rows.append(row("timer interrupts", ticks[0] / seconds, "a second"))
    causes = [cause for cause in of_cpu.get("causes", ()) if cause["name"] == "local_timer"]
    if causes:
        found = sum(cause["gaps"] for cause in causes)
        rows.append(row("gaps by the timer interrupt", found / seconds, "a second"))
    steps = {step["ns"]: step["gaps"] for step in of_cpu["at_least"]}
    rows += [row("p50", micros("p50_ns"), "µs"), row("p99", micros("p99_ns"), "µs")]
    for us in (2, 10, 100):
        count = steps.get(us * 1_000)
        rate = None if count is None else count / seconds
        rows.append(row(f"at least {us} µs", rate, "a second"))
    return rows


def write(
    place: Path,
    rows: list[Row],
    cases: dict[str, dict[str, list[str]]],
    facts: dict[str, str],
    agent: Path,
) -> None:
    """Write the record."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "noise.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["case", "program", "turn", "what", "value", "unit"])
        for row in rows:
            value = "" if row.value is None else f"{row.value:.3f}"
            table.writerow([row.case, row.program, row.turn, row.what, value, row.unit])
    kept = ("processor", "memory", "kernel", "load average at the start", "tailtrim-agent")
    lines = ["# tailtrim noise beside oslat and cyclictest", ""]
    lines += ["Medians, extremes in brackets. Alone on the machine.", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {facts[key]} |" for key in kept]
    for case in dict.fromkeys(row.case for row in rows):
        lines += ["", f"## {case}", ""]
        lines += table_of([row for row in rows if row.case == case])
        lines += ["", *verdicts([row for row in rows if row.case == case])]
    lines += ["", "## Commands", ""]
    lines += [
        f"* {case}, {name}: `{machine.neutral(' '.join(command), {agent.parent: ''})}`"
        for case, commands in cases.items()
        for name, command in commands.items()
    ]
    (place / "noise.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def table_of(rows: list[Row]) -> list[str]:
    """Return a table of all programs."""
    names = list(dict.fromkeys(row.program for row in rows))
    whats = dict.fromkeys((row.what, row.unit) for row in rows)
    lines = [f"| | {' | '.join(sorted(names))} | |", "|---" + "|--:" * len(names) + "|---|"]
    for what, unit in whats:
        cells = []
        for name in sorted(names):
            same = [row for row in rows if (row.what, row.program) == (what, name)]
            values = [row.value for row in same if row.value is not None]
            middle = f"{statistics.median(values):,.1f}" if values else ""
            spread = f" ({min(values):,.1f}-{max(values):,.1f})" if len(values) > 1 else ""
            cells.append(middle + spread)
        lines.append(f"| {what} | {' | '.join(cells)} | {unit} |")
    return lines


def verdicts(rows: list[Row]) -> list[str]:
    """Say whether ours is noisier, by ratios within turns."""
    peers = [name for name in dict.fromkeys(row.program for row in rows) if "tailtrim" not in name]
    found = []
    for peer in peers:
        for name in (OURS, TRACED):
            told = []
            noisier = []
            for what in COMPARED:
                ratios = turn_ratios(rows, what, name, peer)
                if not ratios:
                    continue
                middle = statistics.median(ratios)
                told.append(f"{what} {middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
                # One direction in most turns: random differences go both ways.
                ahead = sum(ratio > 1 for ratio in ratios)
                if middle > NOISIER and ahead * 4 >= len(ratios) * 3:
                    noisier.append(what)
            if told:
                end = f"noisier in {', '.join(noisier)}" if noisier else "not noisier"
                found.append(f"* {name} / {peer}, turn by turn: {'; '.join(told)}: {end}.")
    return found


def turn_ratios(rows: list[Row], what: str, ours: str, peer: str) -> list[float]:
    """Return ours over the peer's, of turns in which both are known and the peer's is not 0."""
    values = {
        (row.program, row.turn): row.value
        for row in rows
        if row.what == what and row.value is not None
    }
    ratios = []
    for turn in sorted({row.turn for row in rows}):
        own, other = values.get((ours, turn)), values.get((peer, turn))
        if own is not None and other:
            ratios.append(own / other)
    return ratios


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        reason = (error.stderr or "").strip() or f"status {error.returncode}"
        print(f"error: {error.cmd[0]}: {reason}", file=sys.stderr)
        sys.exit(1)
    except TailtrimError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
