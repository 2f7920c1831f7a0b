"""Runs ``tailtrim watch`` beside HiPerConTracer and irtt on one path, and kills another.

    python benchmarks/watch_live.py [--minutes 30] [--out DIR]      # as root, with tcpdump

Everybody asks the far host ten times a second for the same time. Between both is a forwarder that
delays each packet by a Pareto-distributed time, so that percentiles are the path's and not those of
a wake-up. Every program asks an address of its own of the far host: a capture there tells what each
has really sent. Writes ``live.md`` into ``runs/<date>-<machine>-watch/``.

* Counts: probes and answers that each program tells, beside those in the capture.
* Percentiles: ``tailtrim compare`` of the watch and of the other program, with the same stamps.
* A second watch is killed (``kill -9``) each minute and started again: each minute that it has left
  on disk has as many probes as the capture has in it, and only minutes of kills are missing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import machine
import numpy as np
from ending import end_with
from roundtrip_peers import ANSWERS, ASKS, FAR, NEAR
from watch_load import KEPT_BYTES, departures, started

from roundtrip import MACS, RUNS
from tailtrim.analysis.roundtrip import read_hpct
from tailtrim.analysis.roundtrip.compression import reading
from tailtrim.laboratory.nodes.agent import program
from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from collections.abc import Iterator

#: An address of the far host for each.
STEADY_ICMP, STEADY_UDP, KILLED = "10.98.0.1", "10.98.0.2", "10.98.0.3"
HPCT, IRTT = "10.98.0.4", "10.98.0.5"
ECHO, IRTT_PORT = 7007, 2112
MINUTE_S = 60
MINUTE_NS = MINUTE_S * 10**9
#: Delay of the path each way: at least 1 ms, p50 1.2 ms, p99 3.2 ms, p99.9 5.6 ms.
DELAY = ("1", "4")
#: A probe that is due at the end of a minute is in the capture in the next one.
EDGE = 1


@contextmanager
def path() -> Iterator[tuple[Namespace, Namespace]]:
    """Lay cables from a host to another one, with a forwarder between them."""
    with Namespace("client") as near, Namespace("path") as between, Namespace("reflector") as far:
        link(near, ASKS, between, "p0", macs=MACS, mtu=1_500)
        link(between, "p1", far, ANSWERS, macs=MACS, mtu=1_500)
        for node, ports, address in (
            (near, (ASKS,), NEAR),
            (between, ("p0", "p1"), None),
            (far, (ANSWERS,), FAR),
        ):
            node.set("net/ipv6/conf/all/disable_ipv6", "1")
            for port in ("lo", *ports):
                node.run("ip", "link", "set", port, "up")
            for port in ports:
                # Frames are forwarded as they are, with their checksums.
                node.run("ethtool", "--offload", port, "tx", "off")
            if address is not None:
                node.run("ip", "address", "add", f"{address}/24", "dev", ports[0])
        delaying = Path(__file__).with_name("delaying.py")
        with started(between, [[sys.executable, str(delaying), "p0", "p1", *DELAY]]):
            time.sleep(1)
            near.run("ping", "-c", "2", "-i", "0.2", FAR)
            yield near, far


def plan(folder: Path, name: str, *targets: str) -> list[str]:
    """Return the command of a watch with targets."""
    path = folder / f"{name}.yml"
    defaults = "defaults: {rate: 10pps, timeout: 1s}"
    path.write_text("\n".join([defaults, "targets:", *targets]) + "\n", "ascii")
    return [program(), "watch", str(path), "--out", str(folder / name)]


def minutes(folder: Path) -> list[dict[str, Any]]:
    """Return the minutes of a target, in order."""
    lines = []
    for day in sorted(folder.glob("*.jsonl.zst")):
        with reading(day) as file:
            lines += [json.loads(line) for line in file.read().splitlines()]
    return lines


def killed_each_minute(near: Namespace, command: list[str], until: float) -> list[int]:
    """Run a watch until a time, and kill it in each minute; return when, in ns since 1970."""
    kills = []
    while (left := until - time.monotonic()) > MINUTE_S:
        with subprocess.Popen(
            [*near.prefix, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as watch:
            # At another place of the minute each time.
            time.sleep(min(left, MINUTE_S + 7))
            watch.send_signal(signal.SIGKILL)
            kills.append(time.time_ns())
    return kills


def in_capture(capture: Path) -> dict[str, Any]:
    """Return when packets with a destination passed, by that."""
    return {
        ".".join(str(octet) for octet in to.to_bytes(4, "big")): at_ns
        for to, at_ns in departures(capture).items()
    }


def told_of_killed(folder: Path, sent_ns: Any, kills: list[int]) -> list[str]:
    """Compare the minutes of the watch that was killed with the capture."""
    due: Counter[int] = Counter()
    for line in minutes(folder):
        due[line["begin_ns"] // MINUTE_NS] += line["due"]
    sent = Counter((sent_ns // MINUTE_NS).tolist())
    # A minute is written once its last replies may have come.
    running = {(ns - back) // MINUTE_NS for ns in kills for back in (0, 4 * 10**9)}
    kept = sorted(set(due) - running)
    wrong = [minute for minute in kept if abs(due[minute] - sent[minute]) > 2 * EDGE]
    lost = sorted(set(sent) - set(due) - running)
    told, there = (sum(by[minute] for minute in kept) for by in (due, sent))
    return [
        f"* killed {len(kills)} times",
        f"* whole minutes on disk: {len(kept)}, with {told:,} probes; in the capture {there:,}",
        f"* minutes on disk with another count than the capture: {len(wrong)}",
        f"* minutes missing in which it was not killed: {len(lost)}",
        f"* lines of minutes that were running when it was killed: {len(set(due) & running)}",
    ]


def compared(folder: Path, name: str, ours: Path, theirs: list[Path]) -> list[str]:
    """Compare percentiles of the watch and of another program."""
    out = folder / name
    subprocess.run(["tailtrim", "import", *map(str, theirs), "--out", str(out)], check=True)
    words = ["compare", f"{ours}@{datetime.now(tz=UTC):%Y-%m-%d}", str(out)]
    ended = subprocess.run(
        ["tailtrim", *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return ["```", *ended.stdout.rstrip().splitlines(), "```"]


def measure(count: int, folder: Path) -> list[str]:
    """Measure for some minutes; return the lines of the record."""
    seconds = count * MINUTE_S
    with ExitStack() as stack:
        near, far = stack.enter_context(path())
        far.run("ip", "route", "add", "local", "10.98.0.0/16", "dev", "lo")
        near.run("ip", "route", "add", "10.98.0.0/16", "via", "10.99.0.2")
        echo = [program(), "reflect", "--echo", str(ECHO), "--limit", "0"]
        where = ["--interface", ANSWERS, "--address", STEADY_UDP]
        server = ["irtt", "server", "-i", "0", "-b", f"{IRTT}:{IRTT_PORT}", "-d", "0"]
        stack.enter_context(started(far, [[*echo, *where], server]))
        kept = ["-s", str(KEPT_BYTES), "--time-stamp-precision=nano", "-Z", "root"]
        tap = ["tcpdump", "-i", ANSWERS, "-Q", "in", "-n", *kept, "-w", str(folder / "sent"), "ip"]
        stack.enter_context(started(far, [tap]))
        time.sleep(1)
        steady = plan(
            folder,
            "steady",
            f"- {{name: icmp, address: {STEADY_ICMP}, protocol: icmp, stamps: arrival}}",
            f"- {{name: udp, address: '{STEADY_UDP}:{ECHO}', stamps: application}}",
        )
        killed = plan(folder, "killed", f"- {{name: icmp, address: {KILLED}, protocol: icmp}}")
        hpct = ["hipercontracer", "-U", "root", "-S", "10.99.0.1", "-D", HPCT, "-P", "-q"]
        hpct += ["-R", str(folder / "hpct"), "--pinginterval", "100", "--pingexpiration", "1000"]
        irtt = ["irtt", "client", "-i", "100ms", "-d", f"{seconds}s", "-Q", "--tstamp=none"]
        irtt += ["-o", str(folder / "irtt.json"), f"{IRTT}:{IRTT_PORT}"]
        (folder / "hpct").mkdir()
        until = time.monotonic() + seconds + 5
        with started(near, [steady, hpct, irtt]):
            kills = killed_each_minute(near, killed, until)
            time.sleep(max(until - time.monotonic(), 0))
        time.sleep(2)
    sent = in_capture(folder / "sent")
    results = sorted((folder / "hpct").rglob("*.results*"))
    rows = [("watch, ICMP", STEADY_ICMP, minutes(folder / "steady" / "icmp"))]
    rows += [("watch, UDP", STEADY_UDP, minutes(folder / "steady" / "udp"))]
    lines = ["| | probes it tells | in the capture | answered |", "|---|---:|---:|---:|"]
    for name, address, found in rows:
        due, answered = (sum(line[key] for line in found) for key in ("due", "answered"))
        lines.append(f"| {name} | {due:,} | {sent[address].size:,} | {answered:,} |")
    stats = json.loads((folder / "irtt.json").read_text())["stats"]
    told = f"{stats['packets_sent']:,} | {sent[IRTT].size:,} | {stats['packets_received']:,}"
    lines += [f"| irtt (and its handshake) | {told} |"]
    pings = [one for path in results for one in read_hpct(path)]
    answered = sum(one.answered for one in pings)
    told = f"{len(pings):,} | {sent[HPCT].size:,} | {answered:,}"
    lines += [f"| HiPerConTracer | {told} |", ""]
    lines += told_of_killed(folder / "killed" / "icmp", np.asarray(sent[KILLED]), kills)
    lines += ["", "## HiPerConTracer (A: watch, B: HiPerConTracer)", ""]
    lines += compared(folder, "of-hpct", folder / "steady" / "icmp", results)
    lines += ["", "## irtt (A: watch, B: irtt)", ""]
    lines += compared(folder, "of-irtt", folder / "steady" / "udp", [folder / "irtt.json"])
    return lines


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description="A watch beside peers on one path.")
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--out", type=Path, default=None, metavar="DIR")
    arguments = parser.parse_args()
    name = f"{datetime.now(tz=UTC):%Y-%m-%d}-{machine.name(len(machine.cores()))}-watch"
    place = arguments.out or RUNS / name
    folder = place / "live"
    folder.mkdir(parents=True)
    lines = measure(arguments.minutes, folder)
    title = f"# {arguments.minutes} minutes beside HiPerConTracer and irtt on one path"
    text = "\n".join([title, "", *lines]).replace(str(folder), "")
    (place / "live.md").write_text(text + "\n", "utf-8")
    shutil.rmtree(folder)
    print(text)
    return 0


if __name__ == "__main__":
    there = os.geteuid() == 0 and shutil.which("tcpdump") is not None
    end_with(main, None if there else "namespaces and captures, expected root and tcpdump")
