"""Measures round trips with ``tailtrim ping`` and ``reflect`` beside their peers; needs root.

    python benchmarks/roundtrip.py [--turns 1] [--only latency,sustained,reflectors] [--out DIR]

Writes ``roundtrip.csv`` and ``roundtrip.md`` into ``runs/<date>-<machine>-roundtrip/``. Turns are
added to those that are there already. README.md beside this file says how to read them. What is not
installed is skipped with the reason.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import machine
import numpy as np
import roundtrip_peers as peers
from roundtrip_peers import (
    ANSWERS,
    ASKS,
    FAR,
    HALF,
    KERNEL,
    LATENCY_PPS,
    NEAR,
    USER,
    Client,
    answering,
    ask,
)

from tailtrim.agent import program
from tailtrim.errors import TailtrimError
from tailtrim.testbed.node import Node, link

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = Path(__file__).resolve().parent / "runs"
GROUPS = ("latency", "sustained", "reflectors")
MACS = ("02:00:00:00:03:01", "02:00:00:00:03:04")
LATENCY_S = 2.0
#: Others on the machine took less than this share of a CPU meanwhile; how often it is tried.
CALM, TRIES = 0.1, 2
#: Asked for one after the other, until more than a thousandth is not answered.
LADDER_PPS = (10_000, 20_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000)
STEP_S = 0.5
#: Offered to reflectors; the most replies a second count.
OFFERED_PPS = (100_000, 200_000, 300_000, 400_000, 600_000, 900_000)
ANSWERED = 0.999
REPLY = f"udp sport {peers.ECHO}"
QUANTILES = {"min": 0.0, "p50": 0.5, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one turn, or why there is none."""

    group: str
    client: str
    reflector: str
    definition: str
    turn: int
    what: str
    value: float | None
    note: str = ""


@contextmanager
def pair(*, steered: bool = False) -> Iterator[tuple[Node, Node]]:
    """Lay a cable between two hosts; ``steered``: each receives on its own CPU, as two hosts do."""
    with Node("client") as near, Node("reflector") as far:
        link(near, ASKS, far, ANSWERS, macs=MACS, mtu=1_500)
        for node, port, address, cpu in (
            (near, ASKS, NEAR, peers.CLIENT_CPU),
            (far, ANSWERS, FAR, peers.REFLECTOR_CPU),
        ):
            node.set("net/ipv6/conf/all/disable_ipv6", "1")
            # No limit to the kernel's own replies: they are measured, too.
            node.set("net/ipv4/icmp_ratelimit", "0")
            node.run("ip", "address", "add", f"{address}/24", "dev", port)
            node.run("ip", "link", "set", "lo", "up")
            node.run("ip", "link", "set", port, "up")
            if steered:
                place = f"/sys/class/net/{port}/queues/rx-0/rps_cpus"
                there = f"mount -t sysfs none /sys && echo {1 << cpu:x} > {place}"
                node.run("unshare", "--mount", "sh", "-c", there)
        near.run("ping", "-c", "2", "-i", "0.2", FAR)
        yield near, far


def latencies(turn: int) -> Iterator[Row]:
    """Measure everybody's round trips at the same rate; every other turn backwards."""
    everybody = peers.clients()
    for client in everybody if turn % 2 else reversed(everybody):
        told = ("latency", client.name, client.reflector.name)
        if problem := missing(client):
            yield Row(*told, "", turn, "", None, problem)
            continue
        try:
            trips, (sent, answered), foreign = calmest(client)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            yield Row(*told, "", turn, "", None, f"failed: {str(error)[-200:]}")
            continue
        note = f"{answered} of {sent} answered; others took {100 * foreign:.0f} % of a CPU"
        for definition, taken_ns in trips.items():
            ascending = np.sort(taken_ns)
            for what, p in QUANTILES.items():
                rank = max(int(np.ceil(p * ascending.size)), 1) - 1
                yield Row(*told, definition, turn, what, float(ascending[rank]) / 1e3, note)


def calmest(client: Client) -> tuple[peers.Trips, tuple[int, int], float]:
    """Measure once, and again if others were at work; return what they disturbed least."""
    tried: list[tuple[peers.Trips, tuple[int, int], float]] = []
    while len(tried) < TRIES and not (tried and tried[-1][2] < CALM):
        with pair() as (near, far), answering(client.reflector, far) as reflector:
            before, began = others_s(reflector), time.monotonic()
            trips, counts = ask(client, near, LATENCY_PPS, LATENCY_S)
            foreign = (others_s(reflector) - before) / (time.monotonic() - began)
        tried.append((trips, counts, max(foreign, 0.0)))
    return min(tried, key=lambda one: one[2])


def others_s(reflector: int | None) -> float:
    """Return the CPU time that processes have had which are no part of this."""
    ticks = os.sysconf("SC_CLK_TCK")
    user, nice, system = (
        int(text) for text in Path("/proc/stat").read_text(encoding="ascii").split()[1:4]
    )
    own = os.times()
    ours = own.user + own.system + own.children_user + own.children_system
    if reflector is not None:
        stat = Path(f"/proc/{reflector}/stat").read_text(encoding="ascii", errors="replace")
        fields = stat.rpartition(")")[2].split()
        ours += (int(fields[11]) + int(fields[12])) / ticks
    return (user + nice + system) / ticks - ours


def missing(client: Client) -> str | None:
    """Say what is not installed, if anything."""
    name = client.name.partition(",")[0]
    names = {"tailtrim": program(), "iputils ping": "ping"}
    wanted = names.get(name, name)
    found = subprocess.run(["sh", "-c", f"command -v {wanted}"], capture_output=True, check=False)
    return None if found.returncode == 0 else f"skipped: {wanted} is not installed"


def sustained(turn: int) -> Iterator[Row]:
    """Find the highest rate of which each client gets all answered."""
    for client in peers.clients():
        told = ("sustained", client.name, client.reflector.name, "", turn, "round trips/s")
        # Stamps on the way out only cost here, and HiPerConTracer has no higher rate.
        if missing(client) or client.name in {"hipercontracer", "tailtrim, stamps out"}:
            continue
        best, note = 0.0, ""
        with pair() as (near, far), answering(client.reflector, far):
            for rate in LADDER_PPS:
                began = time.monotonic()
                try:
                    _, (sent, answered) = ask(client, near, rate, STEP_S)
                except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                    note = f"failed at {rate:,}: {str(error)[-100:]}"
                    break
                if client.name == "iputils ping":
                    # A flood waits for each reply: its rate is what it is.
                    best = max(best, answered / (time.monotonic() - began))
                    continue
                due = rate * STEP_S
                if sent < ANSWERED * due or answered < ANSWERED * sent:
                    note = f"{answered:,} of {sent:,} at {rate:,}/s, due {due:,.0f}"
                    break
                best = float(rate)
        yield Row(*told, best, note)


def reflectors(turn: int) -> Iterator[Row]:
    """Count the replies a second of each reflector, under load from a CPU of its own."""
    for reflector in (*peers.our_reflectors(), peers.KERNEL_ICMP):
        if reflector.command is None:
            continue
        best, at = 0.0, 0
        with pair(steered=True) as (near, far), answering(reflector, far):
            mac = MACS[1]
            # Replies come to nobody: they are counted and dropped where they come in.
            hook = "type filter hook prerouting priority raw;"
            drop = f"table ip replies {{\nchain come {{\n{hook}\n{REPLY} drop\n}}\n}}\n"
            near.run("nft", "-f", "-", given=drop)
            for rate in OFFERED_PPS:
                load = ["--rate", str(rate), "--stop-after", f"{STEP_S}s", "--dst-mac", mac]
                to = ["--src-ip", NEAR, "--dst-ip", FAR, "--dst-port", str(peers.ECHO)]
                own = ["--cpu", str(peers.CLIENT_CPU)]
                before, began = received(near), time.monotonic()
                near.run(program(), "generate", "--port", ASKS, *load, *to, *own)
                took = time.monotonic() - began
                replies = (received(near) - before) / min(took, STEP_S * 1.2)
                if replies > best:
                    best, at = replies, rate
        told = ("reflectors", "tailtrim generate", reflector.name, "", turn, "replies/s")
        yield Row(*told, best, f"at {at:,} offered")
    for client in (peers.sockperf("sockperf"), peers.sockperf("sockperf, polling", "--nonblocked")):
        if missing(client):
            continue
        best = 0.0
        with pair(steered=True) as (near, far), answering(client.reflector, far):
            for rate in OFFERED_PPS:
                _, (_, answered) = ask(client, near, rate, STEP_S)
                # It runs for whole seconds.
                best = max(best, float(answered))
        told = ("reflectors", client.name, client.reflector.name, "", turn, "replies/s")
        yield Row(*told, best, "its own client asks")


def received(node: Node) -> int:
    """Return how many packets have come in."""
    text = node.run("ip", "-s", "link", "show", "dev", ASKS)
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if line.strip().startswith("RX:"))
    return int(lines[at + 1].split()[1])


def main() -> int:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description="Round trips beside their peers.")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--only", default=",".join(GROUPS), help="which groups")
    parser.add_argument("--out", type=Path, default=None, metavar="DIR")
    arguments = parser.parse_args()
    core_count = len(machine.cores())
    name = f"{datetime.now(tz=UTC):%Y-%m-%d}-{machine.name(core_count)}-roundtrip"
    place = arguments.out or RUNS / name
    rows = read(place / "roundtrip.csv")
    # A turn that is cut short leaves what it has measured.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ExitStack() as stack:
        stack.callback(write, place, rows, core_count)
        for group in arguments.only.split(","):
            done = max((row.turn for row in rows if row.group == group), default=0)
            measure = {"latency": latencies, "sustained": sustained, "reflectors": reflectors}
            for turn in range(done + 1, done + arguments.turns + 1):
                for row in measure[group](turn):
                    rows.append(row)
                    value = "" if row.value is None else f"{row.value:,.1f}"
                    print(*astuple(row)[:6], value, row.note, file=sys.stderr)
    print((place / "roundtrip.md").read_text())
    return 0


def read(path: Path) -> list[Row]:
    """Return what earlier turns have measured."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = []
        for raw in csv.DictReader(file):
            texts = (raw["group"], raw["client"], raw["reflector"], raw["definition"])
            value = float(raw["value"]) if raw["value"] else None
            rows.append(Row(*texts, int(raw["turn"]), raw["what"], value, raw["note"]))
        return rows


def write(place: Path, rows: list[Row], core_count: int) -> None:
    """Write the record."""
    place.mkdir(parents=True, exist_ok=True)
    columns = list(Row.__slots__)
    with (place / "roundtrip.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for row in rows:
            cells = list(astuple(row))
            cells[6] = "" if row.value is None else f"{row.value:.3f}"
            table.writerow(cells)
    facts = machine.facts(Path(__file__).resolve().parent.parent, Path(program()), core_count)
    kept = ("processor", "memory", "kernel", "tailtrim-agent")
    lines = ["# Round trips beside peers", ""]
    lines += ["Medians of turns, extremes in brackets.", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {facts[key]} |" for key in kept]
    for definition in (USER, HALF, KERNEL):
        lines += ["", f"## {definition}, µs, {LATENCY_PPS:,} probes/s", ""]
        lines += latency_table([row for row in rows if row.definition == definition])
    for group, title in (
        ("sustained", "Round trips a second of which 99.9 % are answered"),
        ("reflectors", "Replies a second of a reflector on one CPU"),
    ):
        of_group = [row for row in rows if row.group == group]
        if not of_group:
            continue
        lines += ["", f"## {title}", "", "| client | reflector | | |", "|---|---|--:|---|"]
        for (client, reflector), same in grouped(of_group).items():
            note = same[-1].note
            lines.append(f"| {client} | {reflector} | {spread(same, 0)} | {note} |")
    told = dict.fromkeys((r.client, r.note) for r in rows if r.value is None)
    lines += ["", *(f"* {client}: {note}" for client, note in told)]
    foreign = [int(n) for r in rows for n in re.findall(r"others took (\d+) %", r.note)]
    if foreign:
        share = f"{statistics.median(foreign):.0f} % of a CPU, {max(foreign)} % at most"
        lines += ["", f"Others on the machine took {share} (median and maximum of measurements)."]
    (place / "roundtrip.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def grouped(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return rows by client and reflector."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row.client, row.reflector].append(row)
    return found


def latency_table(rows: list[Row]) -> list[str]:
    """Return a table, the lowest median first; the lowest of a column is in bold."""
    names = list(QUANTILES)
    by = grouped(rows)

    def middle(pairing: tuple[str, str], what: str) -> float:
        return statistics.median(row.value or 0.0 for row in by[pairing] if row.what == what)

    order = sorted(by, key=lambda one: middle(one, "p50"))
    lines = [f"| client | reflector | {' | '.join(names)} |", "|---|---|" + "--:|" * len(names)]
    for one in order:
        cells = []
        for what in names:
            text = spread([row for row in by[one] if row.what == what], 1)
            lowest = middle(one, what) <= min(middle(other, what) for other in by)
            cells.append(f"**{text}**" if lowest else text)
        lines.append(f"| {' | '.join((*one, *cells))} |")
    return lines


def spread(rows: list[Row], digits: int) -> str:
    """Return the median, and the extremes in brackets."""
    values = [row.value for row in rows if row.value is not None]
    if not values:
        return ""
    text = f"{statistics.median(values):,.{digits}f}"
    if len(values) > 1:
        text += f" ({min(values):,.{digits}f}-{max(values):,.{digits}f})"
    return text


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("error: XDP programs, and steering, need root", file=sys.stderr)
        sys.exit(1)
    try:
        sys.exit(main())
    except (TailtrimError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
