"""Measures ``tailtrim watch`` with many targets beside fping and irtt; needs root and tcpdump.

    python benchmarks/watch_load.py [--targets 1000] [--seconds 60] [--turns 3] [--out DIR]

Each sends ten probes a second to each target. Writes ``watch.csv`` and ``watch.md`` into
``runs/<date>-<machine>-watch/``. Peers that are not installed are skipped with the reason.

When a probe left is told by a capture at the other end of the cable, for all alike. Its lateness is
how much later it left than the schedule of its target: departures at a fixed interval, or for
``watch`` in steps of the golden ratio within it. Begin and interval of a schedule are fitted, so
that a program which keeps another interval than it was asked for is only late where it is not even.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import machine
import numpy as np
from ending import end_with
from roundtrip_peers import ANSWERS, FAR, FIRST

from roundtrip import RUNS, pair
from tailtrim.laboratory.nodes.agent import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.nodes.namespace import Namespace

    Stamps = np.ndarray[Any, np.dtype[np.int64]]

#: All addresses of it are the far host's.
TARGETS = "10.98.0.0/16"
INTERVAL_NS = 100_000_000
#: Everybody has started, and no handshake is under way.
SETTLED_S = 10.0
IRTT_PORT = 2112
ICMP, UDP = "icmp[icmptype] = icmp-echo", f"udp dst port {IRTT_PORT}"
#: Ethernet, IPv4 and eight bytes more, with the destination at byte 30.
KEPT_BYTES = 42
#: Probes of a target whose interval is fitted.
FEWEST = 5
#: Steps of the golden ratio, as the schedule has them.
GOLDEN = 0x9E37_79B9_7F4A_7C15
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one turn, or the reason why it is missing."""

    program: str
    turn: int
    what: str
    value: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its commands for targets, the filter of its probes, and its schedule."""

    name: str
    #: Its file, as it is installed.
    file: str
    probes: str
    golden: bool = False

    def commands(self, targets: list[str], seconds: float, folder: Path) -> list[list[str]]:
        """Return what is to be started, all at once."""
        listed = folder / "targets"
        match self.file:
            case "fping":
                listed.write_text("\n".join(targets) + "\n", "ascii")
                # Without a pause between two targets it can keep the period; a summary each minute.
                how = ["-l", "-q", "-Q", "60", "-p", "100", "-i", "0.01", "-t", "1000"]
                return [["fping", *how, "-f", str(listed)]]
            case "irtt":
                how = ["-i", "100ms", "-d", f"{seconds + 4 * SETTLED_S:g}s", "-Q", "--tstamp=none"]
                return [["irtt", "client", *how, f"{target}:{IRTT_PORT}"] for target in targets]
            case _:
                lines = [f"- {{address: {target}}}" for target in targets]
                defaults = "defaults: {protocol: icmp, rate: 10pps, timeout: 1s}"
                listed.write_text("\n".join([defaults, "targets:", *lines]) + "\n", "ascii")
                return [[program(), "watch", str(listed), "--out", str(folder / "minutes")]]


PROGRAMS = (
    Program("tailtrim watch", "tailtrim-agent", ICMP, golden=True),
    Program("fping", "fping", ICMP),
    Program("irtt, one client a target", "irtt", UDP),
)


@contextmanager
def started(
    node: Namespace, commands: list[list[str]], errors: int | IO[bytes] = subprocess.DEVNULL
) -> Iterator[list[int]]:
    """Have programs run meanwhile; yields their processes."""
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    processes = [
        subprocess.Popen(
            [*node.prefix, "sh", "-c", FIRST, "sh", *command],
            stderr=errors,
            start_new_session=True,
            **quiet,
        )
        for command in commands
    ]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def cpu_s(processes: list[int]) -> float:
    """Return the CPU time that processes have had."""
    spent = 0
    for pid in processes:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        fields = stat.rpartition(")")[2].split()
        spent += int(fields[11]) + int(fields[12])
    return spent / os.sysconf("SC_CLK_TCK")


def memory_mb(processes: list[int]) -> float:
    """Return the memory of processes; what several share counts once."""
    kb = 0
    for pid in processes:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        kb += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kb * 1024 / 1e6


def departures(capture: Path) -> dict[int, Stamps]:
    """Return when probes left, for each destination; all records have the same length."""
    raw = np.dtype([("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("sent", "<u4")])
    whole = np.dtype(
        [*raw.descr, ("before", "V30"), ("to", ">u4"), ("rest", f"V{KEPT_BYTES - 34}")]
    )
    records = np.fromfile(capture, whole, offset=24)
    if not (records["kept"] == KEPT_BYTES).all():
        raise SystemExit(f"error: {capture.name}: a record is shorter than {KEPT_BYTES} bytes")
    at_ns = records["s"].astype(np.int64) * 1_000_000_000 + records["ns"]
    order = np.argsort(records["to"], kind="stable")
    to, first = np.unique(records["to"][order], return_index=True)
    return dict(zip(to.tolist(), np.split(at_ns[order], first[1:]), strict=True))


def lateness_ns(left_ns: Stamps, inside: slice, *, golden: bool) -> Stamps:
    """Return how much later than the earliest some probes of a target left, beside its schedule."""
    number = np.arange(left_ns.size, dtype=np.uint64)
    within = np.zeros(left_ns.size)
    if golden:
        # The first 32 bits of the place are enough: 23 ps of a tenth of a second.
        place = (number * np.uint64(GOLDEN)) >> np.uint64(32)
        within = place.astype(float) / 2.0**32 * INTERVAL_NS
    rest = ((left_ns - left_ns[0]).astype(float) - within)[inside]
    x = number.astype(float)[inside]
    slope = np.polyfit(x, rest, 1)[0]
    late = np.rint(rest - slope * x).astype(np.int64)
    beyond: Stamps = late - late.min()
    return beyond


def measured(turn: int, one: Program, count: int, seconds: float) -> Iterator[Row]:
    """Measure a program: CPU time, memory, rate, and lateness of its probes."""
    if shutil.which(one.file) is None and one.file != "tailtrim-agent":
        yield Row(one.name, turn, "", None, f"skipped: {one.file} is not installed")
        return
    targets = [f"10.98.{number // 250}.{number % 250 + 1}" for number in range(count)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        near, far = stack.enter_context(pair())
        # As systemd sets it: sockets of ICMP that the kernel finds by their identifiers.
        near.run("sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647")
        far.run("ip", "route", "add", "local", TARGETS, "dev", "lo")
        near.run("ip", "route", "add", TARGETS, "via", FAR)
        if one.file == "irtt":
            server = ["irtt", "server", "-i", "0", "-b", f"0.0.0.0:{IRTT_PORT}", "--set-src-ip"]
            stack.enter_context(started(far, [server]))
            time.sleep(1)
        capture = folder / "probes.pcap"
        kept = ["-s", str(KEPT_BYTES), "-B", "65536", "--time-stamp-precision=nano", "-Z", "root"]
        tap = ["tcpdump", "-i", ANSWERS, "-n", *kept, "-w", str(capture), one.probes]
        with started(far, [tap]):
            time.sleep(1)
            commands = one.commands(targets, seconds, folder)
            errors = stack.enter_context((folder / "errors").open("w+b"))
            with started(near, commands, errors) as processes:
                time.sleep(SETTLED_S)
                before, began, since_ns = cpu_s(processes), time.monotonic(), time.time_ns()
                time.sleep(seconds)
                spent, took = cpu_s(processes) - before, time.monotonic() - began
                try:
                    memory = memory_mb(processes)
                except ProcessLookupError:
                    errors.seek(0)
                    words = errors.read().decode("ascii", "replace").strip().splitlines()
                    yield Row(one.name, turn, "", None, f"ended: {words[-1] if words else ''}")
                    return
        by_target = departures(capture)
    late, rates = [], []
    for left_ns in by_target.values():
        first, end = np.searchsorted(left_ns, [since_ns, since_ns + int(took * 1e9)])
        rates.append((end - first) / took)
        if end - first >= FEWEST:
            # Steps of the golden ratio are counted from the first probe.
            late.append(lateness_ns(left_ns, slice(first, end), golden=one.golden))
    if not late:
        yield Row(one.name, turn, "", None, f"fewer than {FEWEST} probes of a target left")
        return
    told = np.sort(np.concatenate(late))
    yield Row(one.name, turn, "CPU, %", 100 * spent / took)
    yield Row(one.name, turn, "memory, MB", memory)
    yield Row(one.name, turn, "targets", len(by_target))
    yield Row(one.name, turn, "probes/s of a target, least", float(min(rates)))
    for name, p in QUANTILES.items():
        rank = max(int(np.ceil(p * told.size)), 1) - 1
        yield Row(one.name, turn, f"lateness {name}, µs", float(told[rank]) / 1e3)


def write(place: Path, rows: list[Row], count: int) -> None:
    """Write the record."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "watch.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Row.__slots__)
        table.writerows(astuple(row) for row in rows)
    facts = machine.facts(
        Path(__file__).resolve().parent.parent, Path(program()), os.cpu_count() or 1
    )
    kept = ("processor", "memory", "kernel", "tailtrim-agent")
    names = [one.name for one in PROGRAMS]
    lines = [f"# {count:,} targets, ten probes a second each, beside peers", ""]
    lines += ["Medians of turns, extremes in brackets.", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {facts[key]} |" for key in kept]
    lines += ["", "| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for what in dict.fromkeys(row.what for row in rows if row.value is not None):
        cells = []
        for name in names:
            values = [
                r.value for r in rows if (r.program, r.what) == (name, what) and r.value is not None
            ]
            many = f" [{min(values):,.1f}, {max(values):,.1f}]" if len(values) > 1 else ""
            cells.append(f"{statistics.median(values):,.1f}{many}" if values else "")
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    notes = dict.fromkeys(f"* {row.program}: {row.note}" for row in rows if row.note)
    (place / "watch.md").write_text("\n".join([*lines, "", *notes]).rstrip() + "\n", "utf-8")


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description="Many targets beside peers.")
    parser.add_argument("--targets", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, metavar="DIR")
    arguments = parser.parse_args()
    if arguments.seconds < 1:
        parser.error(f"--seconds {arguments.seconds:g}: expected at least 1")
    name = f"{datetime.now(tz=UTC):%Y-%m-%d}-{machine.name(len(machine.cores()))}-watch"
    place = arguments.out or RUNS / name
    rows: list[Row] = []
    with ExitStack() as stack:
        stack.callback(write, place, rows, arguments.targets)
        for turn in range(arguments.turns):
            for one in PROGRAMS if turn % 2 == 0 else reversed(PROGRAMS):
                for row in measured(turn + 1, one, arguments.targets, arguments.seconds):
                    rows.append(row)
                    print(*astuple(row), file=sys.stderr)
    print((place / "watch.md").read_text("utf-8"))
    return 0


if __name__ == "__main__":
    there = os.geteuid() == 0 and shutil.which("tcpdump") is not None
    end_with(main, None if there else "namespaces and captures, expected root and tcpdump")
