"""Measures round trips with ``tailtrim ping``, ``reflect`` and their peers; needs root.

    python benchmarks/roundtrip.py [--turns 1] [--only latency,sustained,reflectors] [--out DIR]

Writes ``roundtrip.csv`` and ``roundtrip.md`` into ``runs/<date>-<machine>-roundtrip/``. Turns are
added to those that are there already. README.md in this folder says how to read them. Peers that
are not installed are skipped with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import astuple
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import machine
import numpy as np
import roundtrip_peers as peers
import roundtrip_record as record
from ending import end_with
from roundtrip_peers import (
    ANSWERS,
    ASKS,
    FAR,
    LATENCY_PPS,
    NEAR,
    Client,
    answering,
    ask,
)
from roundtrip_record import MOST, QUANTILES, SUSTAINED, Row

from tailtrim.laboratory.nodes.agent import program
from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS = Path(__file__).resolve().parent / "runs"
GROUPS = ("latency", "sustained", "reflectors")
MACS = ("02:00:00:00:03:01", "02:00:00:00:03:04")
LATENCY_S = 2.0
#: Others on the machine took less than this share of a CPU meanwhile; how often it is tried.
CALM, TRIES = 0.1, 2
#: Asked for one after the other, until more than a thousandth is not answered.
LADDER_PPS = (10_000, 20_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000)
STEP_S = 0.5
LOOK_S = 0.005
#: Offered to reflectors, by a generator and by clients, until far more is offered than is answered.
OFFERED_PPS = (50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 600_000, 900_000)
ASKED_PPS = (20_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000)
FAR_MORE = 3.0
ANSWERED = 0.999
REPLY = f"udp sport {peers.ECHO}"


@contextmanager
def pair(*, steered: bool = False) -> Iterator[tuple[Namespace, Namespace]]:
    """Lay a cable between two hosts; ``steered``: each receives on its own CPU, as two hosts do."""
    with Namespace("client") as near, Namespace("reflector") as far:
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
    """Find the highest rate at which each client gets all replies."""
    for client in peers.clients():
        told = ("sustained", client.name, client.reflector.name, "", turn, "round trips/s")
        # Stamps only cost here, and HiPerConTracer has no higher rate.
        if missing(client) or client.name == "hipercontracer" or "stamped" in client.name:
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
    for reflector in peers.our_reflectors():
        with pair(steered=True) as (near, far), answering(reflector, far):
            # Replies come to nobody: they are counted and dropped where they come in.
            hook = "type filter hook prerouting priority raw;"
            drop = f"table ip replies {{\nchain come {{\n{hook}\n{REPLY} drop\n}}\n}}\n"
            near.run("nft", "-f", "-", given=drop)
            told = ("reflectors", "tailtrim generate", reflector.name, "", turn)
            yield from climb(told, OFFERED_PPS, partial(offer, near))
    icmp = peers.our_client("tailtrim", peers.KERNEL_ICMP, "application")
    polling = peers.sockperf("sockperf, polling", "--nonblocked")
    for client in (icmp, peers.sockperf("sockperf"), polling, peers.irtt()):
        if missing(client):
            continue

        told = ("reflectors", client.name, client.reflector.name, "", turn)
        with pair(steered=True) as (near, far), answering(client.reflector, far):
            yield from climb(told, ASKED_PPS, partial(ask_own, client, near))


def ask_own(client: Client, node: Namespace, rate: int) -> tuple[float, float, float]:
    """Have a client ask; return requests and replies a second, and the share answered."""
    _, (sent, answered) = ask(client, node, rate, STEP_S)
    # sockperf runs for whole seconds.
    took = 1.0 if client.name.startswith("sockperf") else STEP_S
    return sent / took, answered / took, answered / max(sent, 1)


def climb(
    told: tuple[str, str, str, str, int],
    rates: tuple[int, ...],
    load: Callable[[int], tuple[float, float, float]],
) -> Iterator[Row]:
    """Raise the rate; return the most replies a second, and the most with few of them lost."""
    sustained, most, note = 0.0, 0.0, ""
    for rate in rates:
        try:
            sent, replies, share = load(rate)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            note = f"failed at {rate:,}: {str(error)[-100:]}"
            break
        most = max(most, replies)
        if share >= ANSWERED:
            sustained = max(sustained, replies)
        elif sent > FAR_MORE * most:
            break
    yield Row(*told, SUSTAINED, sustained, note)
    yield Row(*told, MOST, most, note)


def offer(node: Namespace, rate: int) -> tuple[float, float, float]:
    """Have the generator ask; return requests and replies a second, and the share answered."""
    load = ["--rate", str(rate), "--duration", f"{STEP_S}s", "--dst-mac", MACS[1]]
    to = ["--src-ip", NEAR, "--dst-ip", FAR, "--dst-port", str(peers.ECHO)]
    own = ["--cpu", str(peers.CLIENT_CPU)]
    asked = [program(), "generate", "--interface", ASKS, *load, *to, *own]
    before = received(node)
    output = node.run("setsid", "--wait", "sh", "-c", peers.FIRST, "sh", *asked)
    ended = last = time.monotonic()
    # Requests that still wait are answered.
    replies = 0
    while (now := received(node) - before) > replies:
        replies, last = now, time.monotonic()
        time.sleep(LOOK_S)
    result = json.loads(output.splitlines()[-1])
    took = result["actual_ns"] / 1e9 + last - ended
    return result["sent"] / took, replies / took, replies / max(result["sent"], 1)


def received(node: Namespace) -> int:
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
    rows = record.read(place / "roundtrip.csv")
    # A turn that is cut short leaves what it has measured.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ExitStack() as stack:
        stack.callback(record.write, place, rows, core_count)
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


if __name__ == "__main__":
    end_with(main, "XDP programs, and steering, need root" if os.geteuid() != 0 else None)
