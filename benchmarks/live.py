"""Times the generator and the taps beside their peers on one veth pair, in one run; needs root.

    python benchmarks/live.py [--seconds 2] [--turns 3]

Writes ``live.md`` and ``live.csv`` into ``runs/<date>-<machine>-live/``. README.md beside this file
says how to read them. What is not installed is skipped with the reason.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import machine

import tailtrim
from tailtrim.agent import Agent, program
from tailtrim.errors import TailtrimError
from tailtrim.testbed import Testbed
from tailtrim.testbed.local import MACS, SEND, TAP_IN
from tailtrim.testbed.node import Node

RUNS = Path(__file__).resolve().parent / "runs"
PACED_PPS = 100_000
#: Offered to the taps by two senders, one after the other, until frames are lost.
RATES_PPS = tuple(range(300_000, 1_200_000, 50_000))
#: Of each of these: longer than a buffer of 128 MB lasts.
CAPTURE_S = 2.0


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    what: str
    program: str
    turn: int
    value: float
    unit: str
    note: str = ""


def main() -> int:
    """Measure everything and write the record."""
    parser = argparse.ArgumentParser(description="Generator and taps beside their peers.")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="DIR")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for turn in range(1, arguments.turns + 1):
            for sender, start in senders(folder).items():
                for paced in (False, True):
                    rows += sending(sender, start, turn, arguments.seconds, folder, paced=paced)
            for tap, start_tap in taps(folder).items():
                rows.append(capturing(tap, start_tap, turn, arguments.seconds))
    place = (
        arguments.runs
        / f"{datetime.now(tz=UTC):%Y-%m-%d}-{machine.name(len(machine.cores()))}-live"
    )
    write(place, rows)
    print((place / "live.md").read_text())
    return 0


Start = Callable[[Node, float | None, float], "list[str] | str"]


def senders(folder: Path) -> dict[str, Start]:
    """Return the generators: each gives its command for a node, a rate (None: any), a time."""
    frame = "{ 0x02,0,0,0,0,4, 0x02,0,0,0,0,1, 0x08,0, 0x45,0,0,46,0,0,0x40,0,64,17,0,0,"
    frame += "198,18,0,1,198,19,0,1, 0x27,0x10,0x4e,0x20,0,26,0,0, fill(0,18) }"
    (folder / "frame.cfg").write_text(frame)

    def ours(_: Node, rate: float | None, seconds: float) -> list[str] | str:
        asked = "20Mpps" if rate is None else f"{rate:.0f}"
        stop = f"{2_000_000 * seconds:.0f}" if rate is None else f"{seconds}s"
        load = ["--rate", asked, "--stop-after", stop, "--dst-mac", MACS["l1"]]
        return [program(), "generate", "--port", SEND, *load, "--cpu", "1"]

    def trafgen(_: Node, rate: float | None, seconds: float) -> list[str] | str:
        if shutil.which("trafgen") is None:
            return "trafgen is not installed"
        count = int(seconds * (1_500_000 if rate is None else rate))
        pace = [] if rate is None else ["--gap", f"{1e9 / rate:.0f}ns"]
        options = ["--num", str(count), "--cpus", "1", "--no-sock-mem", *pace]
        return ["trafgen", "--dev", SEND, "--conf", str(folder / "frame.cfg"), *options]

    def tcpreplay(_: Node, rate: float | None, seconds: float) -> list[str] | str:
        if shutil.which("tcpreplay") is None:
            return "tcpreplay is not installed"
        capture = folder / "frames.pcap"
        if not capture.exists():
            write_frames(capture)
        count = int(seconds * (1_500_000 if rate is None else rate))
        pace = ["--topspeed"] if rate is None else [f"--pps={rate:.0f}"]
        loops = ["--loop", "0", "--limit", str(count), "--preload-pcap"]
        return ["tcpreplay", "-i", SEND, *pace, *loops, str(capture)]

    return {"tailtrim-agent": ours, "trafgen": trafgen, "tcpreplay": tcpreplay}


def write_frames(path: Path) -> None:
    """Write a thousand frames of 60 bytes."""
    header = bytes.fromhex("4d3cb2a1 0200 0400 00000000 00000000 00000400 01000000")
    frame = bytes.fromhex("020000000004 020000000001 0800") + bytes.fromhex(
        "4500002e00004000401100 00c6120001c6130001 27104e20001a0000".replace(" ", "")
    )
    frame = frame.ljust(60, b"\0")
    length = len(frame).to_bytes(4, "little")
    path.write_bytes(header + (bytes(8) + length + length + frame) * 1_000)


def sending(  # noqa: PLR0913 - what is measured, and how
    name: str, start: Start, turn: int, seconds: float, folder: Path, *, paced: bool
) -> list[Row]:
    """Measure how many packets a second arrive, or how evenly they do at a rate."""
    what = f"gaps at {PACED_PPS:,} packets/s" if paced else "packets/s"
    with Testbed() as testbed:
        command = start(testbed.loadgen, PACED_PPS if paced else None, seconds)
        if isinstance(command, str):
            return [Row(what, name, turn, float("nan"), "", f"skipped: {command}")]
        if not paced:
            before, began = received(testbed), time.monotonic()
            run(testbed.loadgen, command)
            arrived, took = received(testbed) - before, time.monotonic() - began
            return [
                Row(what, name, turn, arrived / took, "packets/s", f"{arrived:,} in {took:.2f} s")
            ]
        tap = ["--tap", f"t={TAP_IN}", "--out", str(folder), "--buffer", "512"]
        with Agent("capture", *tap, prefix=testbed.timestamper.prefix) as capture:
            capture.ready()
            run(testbed.loadgen, command)
            taken = capture.stop()["taps"]["t"]
        file = taken["file"]
        gaps = gap_quantiles(file)
        note = f"{taken['packets']:,} frames, {taken['dropped']} dropped"
        return [Row(f"{what}, {p}", name, turn, abs(gap), "ns", note) for p, gap in gaps.items()]


def gap_quantiles(file: str) -> dict[str, float]:
    """Return by how much the gaps of a capture differ from those asked for, in ns."""
    table = tailtrim.analyze(file, file, trim_s=0).gaps.to_pylist()
    wanted = 1e9 / PACED_PPS
    off = sorted(
        (abs(row["gap_ns"] - wanted), row["count"]) for row in table if row["tap"] == "ingress"
    )
    total = sum(count for _, count in off)
    found, seen = {}, 0
    for difference, count in off:
        seen += count
        for p in (0.5, 0.99, 0.999):
            if f"p{100 * p:g}" not in found and seen >= p * total:
                found[f"p{100 * p:g}"] = difference
    return found


def received(testbed: Testbed) -> int:
    """Return how many frames have come in at the first tap."""
    shown = testbed.timestamper.run("ip", "-j", "-s", "link", "show", TAP_IN)
    return int(json.loads(shown)[0]["stats64"]["rx"]["packets"])


def run(node: Node, command: list[str]) -> None:
    """Run a command in a node to its end."""
    subprocess.run([*node.prefix, *command], check=True, capture_output=True, timeout=120)


StartTap = Callable[[], "list[str] | str"]


def taps(folder: Path) -> dict[str, StartTap]:
    """Return the capturing programs."""

    def ours() -> list[str] | str:
        return [program(), "capture", "--tap", f"t={TAP_IN}", "--out", str(folder)]

    def tcpdump() -> list[str] | str:
        if shutil.which("tcpdump") is None:
            return "tcpdump is not installed"
        sizes = ["-s", "96", "-B", "131072", "--nano", "-Z", "root"]
        return ["tcpdump", "-i", TAP_IN, "-w", str(folder / "tcpdump.pcap"), *sizes]

    def dumpcap() -> list[str] | str:
        if shutil.which("dumpcap") is None:
            return "dumpcap is not installed"
        sizes = ["-s", "96", "-B", "128", "-P", "-q"]
        return ["dumpcap", "-i", TAP_IN, "-w", str(folder / "dumpcap.pcap"), *sizes]

    return {"tailtrim-agent": ours, "tcpdump": tcpdump, "dumpcap": dumpcap}


def capturing(name: str, start: StartTap, turn: int, seconds: float) -> Row:
    """Find the highest rate at which no frame is lost."""
    command, best, note = start(), 0.0, ""
    if isinstance(command, str):
        return Row("loss-free capture", name, turn, float("nan"), "", f"skipped: {command}")
    file = Path(command[command.index("--out") + 1]) / "t.pcap" if "--out" in command else None
    file = file or Path(command[command.index("-w") + 1])
    for rate in RATES_PPS:
        with Testbed() as testbed:
            tap = subprocess.Popen(
                [*testbed.timestamper.prefix, *command],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(1)
            load = ["--rate", str(rate), "--stop-after", f"{seconds}s", "--dst-mac", MACS["l1"]]
            generator = [program(), "generate", "--port", SEND, *load, "--cpu", "1"]
            ended = subprocess.run(
                [*testbed.loadgen.prefix, *generator], check=True, capture_output=True, text=True
            )
            sent = json.loads(ended.stdout.splitlines()[-1])
            time.sleep(1)
            tap.send_signal(signal.SIGINT)
            tap.wait(60)
        kept = tailtrim.analyze(file, file, trim_s=0).summary.ingress.packets
        achieved = sent["achieved_pps"]
        if kept != sent["sent"]:
            note = f"lost {sent['sent'] - kept:,} of {sent['sent']:,} at {achieved:,.0f}"
            break
        if achieved < best * 1.02:
            note = "the generator gives no more"
            break
        best = achieved
    return Row("loss-free capture", name, turn, best, "packets/s", note)


def write(place: Path, rows: list[Row]) -> None:
    """Write the record."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "live.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["what", "program", "turn", "value", "unit", "note"])
        for row in rows:
            table.writerow(
                [row.what, row.program, row.turn, f"{row.value:.1f}", row.unit, row.note]
            )
    lines = [
        "# Generator and taps beside their peers",
        "",
        (
            f"{machine.name(len(machine.cores()))}, one veth pair, 64-byte frames; medians,"
            " extremes in brackets."
        ),
        "",
        "| what | program | value | |",
        "|---|---|--:|---|",
    ]
    for what, name in dict.fromkeys((row.what, row.program) for row in rows):
        same = [row for row in rows if (row.what, row.program) == (what, name)]
        values = [row.value for row in same if row.unit]
        if not values:
            lines.append(f"| {what} | {name} | | {same[0].note} |")
            continue
        middle = f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"
        lines.append(f"| {what} | {name} | {middle} {same[0].unit} | {same[-1].note} |")
    (place / "live.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (TailtrimError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
