"""Times the generator, the taps and their peers on one veth pair, in one run; needs root.

    python benchmarks/live.py [--seconds 2] [--turns 3] [--only senders taps forwarders]

Writes ``live.md`` and ``live.csv`` into ``runs/<date>-<machine>-live/``. README.md in this folder
says how to read them. Peers that are not installed are skipped with the reason.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import machine
from ending import end_with

import tailtrim
from tailtrim.laboratory.nodes.agent import Agent, program
from tailtrim.laboratory.nodes.namespace_testbed import LocalForwarding, LocalTestbed

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.namespace import Namespace

RUNS = Path(__file__).resolve().parent / "runs"
PACED_PPS = 100_000
FORWARDED_PPS = 50_000
#: Offered to the taps by two senders, one after the other, until frames are lost.
RATES_PPS = tuple(range(400_000, 1_600_000, 100_000))
PARTS = ("senders", "taps", "forwarders")
#: Of each of these: longer than a buffer of 128 MB lasts.
CAPTURE_S = 2.5


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
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--runs", type=Path, default=RUNS, metavar="DIR")
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for turn in range(1, arguments.turns + 1):
            for row in measured(turn, arguments.seconds, folder, arguments.only):
                print(
                    f"{turn}: {row.program}: {row.what}: {row.value:,.0f} {row.note}",
                    file=sys.stderr,
                )
                rows.append(row)
    name = f"{datetime.now(tz=UTC):%Y-%m-%d}-{machine.name(len(machine.cores()))}-live"
    place = arguments.runs / name
    write(place, rows)
    print((place / "live.md").read_text())
    return 0


def measured(turn: int, seconds: float, folder: Path, parts: Sequence[str]) -> Iterator[Row]:
    """Measure these parts once."""
    if "senders" in parts:
        for sender, start in senders(folder).items():
            yield from sending(sender, start, turn, seconds, folder)
    if "taps" in parts:
        for tap, start_tap in taps(folder).items():
            yield from capturing(tap, start_tap, turn, folder)
    if "forwarders" in parts:
        yield from forwarding(turn, seconds, folder)


#: Gives the command for a rate, ``None`` for all it can; or says why there is none.
Start = Callable[[LocalForwarding, float | None], "list[str] | str"]


def senders(folder: Path) -> dict[str, Start]:
    """Return the generators."""
    frame = "{ 0x02,0,0,0,0,4, 0x02,0,0,0,0,1, 0x08,0, 0x45,0,0,46,0,0,0x40,0,64,17,0,0,"
    frame += "198,18,0,1,198,19,0,1, 0x27,0x10,0x4e,0x20,0,26,0,0, fill(0,18) }"
    (folder / "frame.cfg").write_text(frame)
    write_frames(folder / "frames.pcap")

    def ours(kind: str) -> Start:
        def start(at: LocalForwarding, rate: float | None) -> list[str] | str:
            load = ["--rate", "20Mpps" if rate is None else f"{rate:.0f}"]
            load += ["--dst-mac", at.sink.mac]
            port = f"{kind}{at.send.name}"
            return [program(), "generate", "--interface", port, *load, "--cpu", "1"]

        return start

    def trafgen(at: LocalForwarding, rate: float | None) -> list[str] | str:
        # --cpus is how many, not which.
        options = ["--num", "0", "--cpus", "1", "--no-sock-mem"]
        options += [] if rate is None else ["--gap", f"{1e9 / rate:.0f}ns"]
        options += ["--conf", str(folder / "frame.cfg")]
        command = ["trafgen", "--dev", at.send.name, *options]
        return ["taskset", "--cpu-list", "1", *command]

    def tcpreplay(at: LocalForwarding, rate: float | None) -> list[str] | str:
        pace = ["--topspeed"] if rate is None else [f"--pps={rate:.0f}"]
        options = ["--loop", "0", "--preload-pcap", str(folder / "frames.pcap")]
        return ["taskset", "--cpu-list", "1", "tcpreplay", "-i", at.send.name, *pace, *options]

    def testpmd(driver: str) -> Start:
        def start(at: LocalForwarding, rate: float | None) -> list[str] | str:
            if rate is not None:
                return "it has no pace but the highest"
            memory = ["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--no-shconf"]
            device = f"--vdev=net_{driver}0,iface={at.send.name}"
            load = ["--forward-mode=txonly", "--txpkts=60", "--total-num-mbufs=8192", "--burst=64"]
            return ["dpdk-testpmd", "-l", "0,1", *memory, device, "--", *load, "--nb-cores=1"]

        return start

    return {
        "tailtrim-agent": ours(""),
        "trafgen": trafgen,
        "tcpreplay": tcpreplay,
        "testpmd txonly": testpmd("af_packet"),
        "tailtrim-agent (AF_XDP)": ours("xdp:"),
        "testpmd txonly (AF_XDP)": testpmd("af_xdp"),
        "tailtrim-agent (DPDK)": ours("dpdk:net_af_packet0,iface="),
    }


def write_frames(path: Path) -> None:
    """Write a thousand frames of 60 bytes."""
    header = bytes.fromhex("4d3cb2a1 0200 0400 00000000 00000000 00000400 01000000")
    frame = bytes.fromhex("020000000004 020000000001 0800") + bytes.fromhex(
        "4500002e00004000401100 00c6120001c6130001 27104e20001a0000".replace(" ", "")
    )
    frame = frame.ljust(60, b"\0")
    length = len(frame).to_bytes(4, "little")
    path.write_bytes(header + (bytes(8) + length + length + frame) * 1_000)


def sending(name: str, start: Start, turn: int, seconds: float, folder: Path) -> Iterator[Row]:
    """Measure how many packets a second arrive, and how evenly they do at a rate."""
    with ExitStack() as stack:
        testbed = stack.enter_context(LocalTestbed().forwarding(folder))
        failed = stack.enter_context(running(testbed.loadgen, start(testbed, None)))
        # DPDK takes a second until it sends.
        told, until = "", time.monotonic() + 10
        while not told and received(testbed) == 0 and time.monotonic() < until:
            told = failed()
        time.sleep(1)
        before, began = received(testbed), time.monotonic()
        time.sleep(seconds)
        arrived, took = received(testbed) - before, time.monotonic() - began
        told = told or failed()
        yield Row("packets/s", name, turn, arrived / took, "" if told else "packets/s", told)
    what = f"gaps at {PACED_PPS:,} packets/s"
    with ExitStack() as stack:
        testbed = stack.enter_context(LocalTestbed().forwarding(folder))
        tap = ["--tap", f"t={testbed.tap_in.name}", "--out", str(folder), "--buffer", "512"]
        capture = stack.enter_context(Agent(testbed.timestamper, "capture", *tap))
        capture.ready()
        failed = stack.enter_context(running(testbed.loadgen, start(testbed, PACED_PPS)))
        time.sleep(1 + seconds)
        told = failed()
        taken = capture.stop()["taps"]["t"]
    quantiles = {} if told else gap_quantiles(taken["file"])
    # A capture that is there is not replaced.
    Path(taken["file"]).unlink()
    if told:
        yield Row(what, name, turn, 0.0, "", told)
        return
    note = f"{taken['packets']:,} frames, {taken['dropped']} dropped"
    for p, gap_ns in quantiles.items():
        yield Row(f"{what}: error {p}", name, turn, gap_ns, "ns", note)


@contextmanager
def running(node: Namespace, command: list[str] | str) -> Iterator[Callable[[], str]]:
    """Run a command in a node meanwhile; yields what tells why it does not run."""
    if isinstance(command, str):
        yield lambda: f"skipped: {command}"
        return
    name = command[3] if command[0] == "taskset" else command[0]
    if shutil.which(name) is None:
        yield lambda: f"skipped: {name} is not installed"
        return
    process = subprocess.Popen(
        [*node.prefix, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )

    def failed() -> str:
        if process.poll() is None:
            return ""
        lines = (process.stderr.read() if process.stderr else "").strip().splitlines()
        return f"failed: {lines[-1] if lines else process.returncode}"

    try:
        yield failed
    finally:
        # With what it has forked: trafgen has.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def gap_quantiles(file: str) -> dict[str, float]:
    """Return by how much the gaps of a capture differ from those asked for, in ns."""
    table = tailtrim.analyze(file, file, skip_s=0, allow_negative=True).gaps.to_pylist()
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


def received(testbed: LocalForwarding) -> int:
    """Return how many frames have come in at the first tap."""
    shown = testbed.timestamper.run("ip", "-j", "-s", "link", "show", testbed.tap_in.name)
    return int(json.loads(shown)[0]["stats64"]["rx"]["packets"])


StartTap = Callable[[str], "list[str] | str"]


def taps(folder: Path) -> dict[str, StartTap]:
    """Return the capturing programs."""

    def ours(kind: str) -> StartTap:
        return lambda port: [program(), "capture", "--tap", f"t={kind}{port}", "--out", str(folder)]

    def netsniff(port: str) -> list[str] | str:
        if shutil.which("netsniff-ng") is None:
            return "netsniff-ng is not installed"
        sizes = ["--ring-size", "128MiB", "--silent", "-T", "0xa1b23c4d"]
        return ["netsniff-ng", "--in", port, "-o", str(folder / "netsniff.pcap"), *sizes]

    def tcpdump(port: str) -> list[str] | str:
        if shutil.which("tcpdump") is None:
            return "tcpdump is not installed"
        sizes = ["-s", "96", "-B", "131072", "--nano", "-Z", "root"]
        return ["tcpdump", "-i", port, "-w", str(folder / "tcpdump.pcap"), *sizes]

    def dumpcap(port: str) -> list[str] | str:
        if shutil.which("dumpcap") is None:
            return "dumpcap is not installed"
        sizes = ["-s", "96", "-B", "128", "-P", "-q"]
        return ["dumpcap", "-i", port, "-w", str(folder / "dumpcap.pcap"), *sizes]

    return {
        "tailtrim-agent": ours(""),
        "tailtrim-agent (AF_XDP)": ours("xdp:"),
        "tcpdump": tcpdump,
        "dumpcap": dumpcap,
        "netsniff-ng": netsniff,
    }


def capturing(name: str, start: StartTap, turn: int, folder: Path) -> Iterator[Row]:
    """Find the highest rate at which no frame is lost, and the tap's CPU time at it."""
    best, cpu_ns, note = 0.0, 0.0, ""
    for rate in RATES_PPS:
        with LocalTestbed().forwarding(folder) as testbed:
            command = start(testbed.tap_in.name)
            if isinstance(command, str):
                yield Row("loss-free capture", name, turn, float("nan"), "", f"skipped: {command}")
                return
            out = next(name for name in ("--out", "-w", "-o") if name in command)
            file = Path(command[command.index(out) + 1])
            file = file / "t.pcap" if file.is_dir() else file
            # The agent replaces no capture.
            file.unlink(missing_ok=True)
            tap = subprocess.Popen(
                [*testbed.timestamper.prefix, *command],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(1)
            load = ["--rate", str(rate), "--duration", f"{CAPTURE_S}s"]
            load += ["--interface", testbed.send.name, "--dst-mac", testbed.sink.mac]
            # Two senders: one is not enough to overload a tap.
            generator = [program(), "generate", *load, "--cpu", "0,1"]
            ended = subprocess.run(
                [*testbed.loadgen.prefix, *generator], check=True, capture_output=True, text=True
            )
            sent = json.loads(ended.stdout.splitlines()[-1])
            time.sleep(1)
            tap.send_signal(signal.SIGINT)
            before = os.times()
            tap.wait(60)
            took_s = sum(os.times()[2:4]) - sum(before[2:4])
        kept = tailtrim.analyze(file, file, skip_s=0, allow_negative=True).summary.ingress.packets
        file.unlink()
        achieved = sent["achieved_pps"]
        if kept != sent["sent"]:
            note = f"lost {sent['sent'] - kept:,} of {sent['sent']:,} at {achieved:,.0f}"
            break
        # Of a rate that the generator does not give, the one that it gave.
        if achieved > best:
            best, cpu_ns = achieved, took_s * 1e9 / kept
            note = "" if achieved > rate * 0.99 else "the generator gives no more"
    yield Row("loss-free capture", name, turn, best, "packets/s", note)
    if best > 0:
        yield Row("CPU time of the tap for a packet at that rate", name, turn, cpu_ns, "ns")


def forwarding(turn: int, seconds: float, folder: Path) -> Iterator[Row]:
    """Measure the latencies of the reference forwarder and of testpmd, and of the bare wire."""
    plan = {
        "name": "forwarders",
        "dut": {"preset": "$dut"},
        "traffic": {"rate_pps": FORWARDED_PPS, "duration_s": seconds + 0.5},
        "loop": {"dut": ["forward", "testpmd", "bridge"]},
        "skip_s": 0.5,
    }
    (folder / "plan.yml").write_text(json.dumps(plan))
    out = folder / f"forwarders-{turn}"
    tailtrim_program = str(Path(sys.executable).with_name("tailtrim"))
    command = [tailtrim_program, "run", str(folder / "plan.yml"), "--out", str(out), "--json"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    for run in json.loads(ended.stdout)["runs"]:
        for quantile in run["summary"]["latency_ns"]["quantiles"]:
            if quantile["p"] in {"0.5", "0.99", "0.999"}:
                what = f"latency at {FORWARDED_PPS:,} packets/s: p{100 * float(quantile['p']):g}"
                note = "; ".join(run["invalid"])
                yield Row(what, run["dut"], turn, quantile["value"], "ns", note)


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
    end_with(main)
