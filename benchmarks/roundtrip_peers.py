"""Clients and reflectors of round trips: their commands, and how their round trips are read.

A round trip begins and ends at different points with different clients:

* user to user: right before the call that sends, until the reply is in the process;
* the same, one at a time: only probes that were sent when no other was under way. sockperf sends no
  others: a reflector that stands still for 4 ms makes one of its round trips longer, and of those
  that go on sending each probe that is due meanwhile;
* user to kernel: the same begin, until the kernel takes the reply from the driver;
* kernel to kernel: from when the kernel gives the probe to the driver.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.analysis.roundtrip import read_hpct, read_irtt
from tailtrim.analysis.roundtrip.hpct import ANSWERED
from tailtrim.analysis.roundtrip.log import table
from tailtrim.laboratory.nodes.agent import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tailtrim.laboratory.nodes.namespace import Namespace

    Trips = dict[str, np.ndarray[Any, np.dtype[np.int64]]]

NEAR, FAR = "10.99.0.1", "10.99.0.2"
ASKS, ANSWERS = "c0", "r0"
CLIENT_CPU, REFLECTOR_CPU = 0, 1
ECHO = 7007
USER, HALF, KERNEL = "user to user", "user to kernel", "kernel to kernel"
ALONE = "user to user, one probe at a time"
#: The payload of an echo probe of ours, and of all others.
BYTES = 24
START_S = 0.5
#: Highest rate that iputils ping can schedule.
PING_PPS = 1_000
#: A probe of ours that leaves later has missed its time.
LATE_NS = 5_000_000
#: Shortest interval in ms that HiPerConTracer 1.6 keeps up with.
HPCT_MS = 10
#: Rate at which latencies are compared.
LATENCY_PPS = 1_000
#: All run in sessions of their own and before other programs: the scheduler shares a CPU out among
#: sessions first (autogroup), then within one (nice).
FIRST = """echo -20 >/proc/self/autogroup 2>/dev/null; exec nice -n -20 "$@" """


@dataclass(frozen=True, slots=True)
class Reflector:
    """Something that answers; ``None`` for a command: the kernel does."""

    name: str
    command: list[str] | None

    @property
    def missing(self) -> str | None:
        """The program that is not installed, if so."""
        found = self.command is None or shutil.which(self.command[0])
        return None if found else str(self.command and self.command[0])


@dataclass(frozen=True, slots=True)
class Client:
    """A client that asks at a rate for some seconds, and the kind of its round trips."""

    name: str
    reflector: Reflector
    command: Callable[[int, float, Path], list[str]]
    read: Callable[[str, Path], Trips]
    #: (sent, answered) of the same output.
    counts: Callable[[str, Path], tuple[int, int]]
    #: Probes a second that it can be asked for at all.
    most_pps: int = 10_000_000
    folder: str = ""


def ours(name: str, *words: str) -> Reflector:
    """Return a mode of ours."""
    fixed = ["--echo", str(ECHO), "--limit", "0", "--interface", ANSWERS, "--address", FAR]
    pinned = ["--cpu", str(REFLECTOR_CPU)]
    return Reflector(name, [program(), "reflect", *fixed, *pinned, *words])


KERNEL_ICMP = Reflector("kernel, ICMP", None)


def our_reflectors() -> list[Reflector]:
    """Return all modes."""
    return [
        ours("socket"),
        ours("socket, polling", "--busy-poll"),
        ours("AF_XDP, polling", "--mode", "af-xdp", "--busy-poll"),
        ours("nftables NAT", "--mode", "nat"),
        ours("XDP", "--mode", "xdp"),
    ]


def clients() -> list[Client]:
    """Return all clients, each with a reflector that it can ask."""
    found = []
    for reflector in (KERNEL_ICMP, *our_reflectors()):
        for level, name in (("application", "tailtrim"), ("software", "tailtrim, all stamped")):
            found.append(our_client(name, reflector, level))
    # With the same stamps as the next two programs, and no others.
    found += [our_client("tailtrim, replies stamped", KERNEL_ICMP, "arrival")]
    found += [ping(), hipercontracer()]
    found += [sockperf("sockperf"), sockperf("sockperf, polling", "--nonblocked"), irtt()]
    return found


def our_client(name: str, reflector: Reflector, level: str) -> Client:
    """Return ours at a level: with stamps of nothing, of replies or of both ways."""
    icmp = reflector.command is None
    where = ["-p", "icmp"] if icmp else ["--dst-port", str(ECHO)]

    def command(rate: int, seconds: float, folder: Path) -> list[str]:
        how = ["--rate", f"{rate}pps", "--duration", f"{seconds}s", "--timeout", "0.5", "--spin"]
        kept = ["--stamps", level, "--log", str(folder), "--json", "--cpu", str(CLIENT_CPU)]
        return [program(), "ping", FAR, *where, *how, *kept]

    def read(_: str, folder: Path) -> Trips:
        trips = table(folder, 0)
        stamps = {
            key: np.asarray(trips[key].fill_null(-1))
            for key in ("app_send_ns", "sent_ns", "received_ns", "app_receive_ns")
        }
        known = np.asarray(trips["status"]) == ANSWERED
        between = {
            USER: ("app_send_ns", "app_receive_ns"),
            HALF: ("app_send_ns", "received_ns"),
            KERNEL: ("sent_ns", "received_ns"),
        }
        taken = {}
        for definition, (begin, end) in between.items():
            both = known & (stamps[begin] > 0) & (stamps[end] > 0)
            if both.any():
                taken[definition] = stamps[end][both] - stamps[begin][both]
        begin, end = stamps["app_send_ns"][known], stamps["app_receive_ns"][known]
        if begin.size:
            before = np.append(0, np.maximum.accumulate(end)[:-1])
            taken[ALONE] = (end - begin)[begin >= before]
        return taken

    def counts(output: str, folder: Path) -> tuple[int, int]:
        (stream,) = json.loads(output)["streams"]
        trips = table(folder, 0)
        late_ns = np.asarray(trips["app_send_ns"]) - np.asarray(trips["intended_ns"])
        # An open loop sends late what it cannot send in time: that is not the rate asked for.
        return int((late_ns < LATE_NS).sum()), stream["probes"]["answered"]

    return Client(name, reflector, command, read, counts)


def ping() -> Client:
    """Return that of iputils; it prints µs, and sends as fast as replies come at best."""

    def command(rate: int, seconds: float, _: Path) -> list[str]:
        count = ["-c", str(int(rate * seconds))]
        # Beyond a probe a millisecond it only floods.
        pace = ["-f", "-q"] if rate > PING_PPS else ["-i", f"{1 / rate:g}"]
        return ["ping", "-n", *pace, *count, "-s", str(BYTES), FAR]

    def read(output: str, _: Path) -> Trips:
        times = re.findall(r"time=([\d.]+) ms", output)
        return {HALF: np.array([round(float(ms) * 1e6) for ms in times], np.int64)}

    def counts(output: str, _: Path) -> tuple[int, int]:
        found = re.search(r"(\d+) packets transmitted, (\d+) received", output)
        return (int(found.group(1)), int(found.group(2))) if found else (0, 0)

    return Client("iputils ping", KERNEL_ICMP, command, read, counts)


def hipercontracer() -> Client:
    """Return HiPerConTracer 1.6, which asks by ICMP and stamps replies by the kernel, in µs.

    At a millisecond a probe it does not end.
    """

    def command(rate: int, seconds: float, folder: Path) -> list[str]:
        where = ["-U", "root", "-S", NEAR, "-D", FAR, "-P", "-R", str(folder), "-q"]
        how = ["--pinginterval", str(max(round(1_000 / rate), HPCT_MS)), "--pingexpiration", "1000"]
        return ["hipercontracer", *where, *how, "--iterations", str(int(seconds * 1_000 / HPCT_MS))]

    def pings(folder: Path) -> list[Any]:
        return [one for file in folder.rglob("*.results*") for one in read_hpct(file)]

    def read(_: str, folder: Path) -> Trips:
        times = [one.application_ns for one in pings(folder) if one.answered]
        return {HALF: np.array(times, np.int64)}

    def counts(_: str, folder: Path) -> tuple[int, int]:
        found = pings(folder)
        return len(found), sum(one.answered for one in found)

    return Client("hipercontracer", KERNEL_ICMP, command, read, counts, most_pps=1_000)


def sockperf(name: str, *words: str) -> Client:
    """Return sockperf, whose reflector answers its own client only."""
    fixed = ["sockperf", "server", "-i", FAR, "-p", "11111"]
    where = ["taskset", "-c", str(REFLECTOR_CPU)]
    reflector = Reflector(f"{name} server", [*where, *fixed, *words])

    def command(rate: int, seconds: float, folder: Path) -> list[str]:
        # It warms up for 0.4 s and leaves the last 0.05 s out.
        timed = ["-t", str(max(round(seconds + 0.5), 1)), "--mps", str(rate)]
        kept = ["--full-rtt", "--full-log", str(folder / "log.csv"), "-m", str(BYTES)]
        pinned = ["taskset", "-c", str(CLIENT_CPU)]
        # Under load it sends and receives in two threads, which here share the CPU.
        loaded = rate > LATENCY_PPS
        how = ["under-load", "--reply-every", "1"] if loaded else ["ping-pong"]
        return [*pinned, "sockperf", *how, "-i", FAR, "-p", "11111", *timed, *kept, *words]

    def read(_: str, folder: Path) -> Trips:
        lines = (folder / "log.csv").read_text("ascii", "replace").splitlines()
        times = [line.split(",")[3] for line in lines if re.match(r"\d+, ", line)]
        taken = np.array([round(float(us) * 1e3) for us in times], np.int64)
        return {USER: taken, ALONE: taken}

    def counts(output: str, _: Path) -> tuple[int, int]:
        found = re.search(r"Total Run\].*SentMessages=(\d+); ReceivedMessages=(\d+)", output)
        return (int(found.group(1)), int(found.group(2))) if found else (0, 0)

    return Client(name, reflector, command, read, counts)


def irtt() -> Client:
    """Return irtt, whose reflector answers its own client only; without the server's stamps."""
    where = ["taskset", "-c", str(REFLECTOR_CPU)]
    reflector = Reflector("irtt server", [*where, "irtt", "server", "-i", "0", "-b", f"{FAR}:2112"])

    def command(rate: int, seconds: float, folder: Path) -> list[str]:
        how = ["-i", f"{1e9 / rate:.0f}ns", "-d", f"{seconds}s", "--tstamp=none", "-Q"]
        kept = ["-o", str(folder / "irtt.json"), "-l", str(BYTES + 8)]
        return ["taskset", "-c", str(CLIENT_CPU), "irtt", "client", *how, *kept, FAR]

    def read(_: str, folder: Path) -> Trips:
        times = [ns for ns in read_irtt(folder / "irtt.json").round_trip_ns if ns >= 0]
        return {USER: np.array(times, np.int64)}

    def counts(_: str, folder: Path) -> tuple[int, int]:
        stats = json.loads((folder / "irtt.json").read_text())["stats"]
        return int(stats["packets_sent"]), int(stats["packets_received"])

    return Client("irtt", reflector, command, read, counts)


@contextmanager
def answering(reflector: Reflector, node: Namespace) -> Iterator[int | None]:
    """Have a reflector run meanwhile; yields its process."""
    if reflector.command is None:
        yield None
        return
    process = subprocess.Popen(
        [*node.prefix, "sh", "-c", FIRST, "sh", *reflector.command],
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(START_S)
        yield process.pid
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ask(
    client: Client, node: Namespace, rate: int, seconds: float
) -> tuple[Trips, tuple[int, int]]:
    """Run a client and return its round trips, and how many probes it sent and got answered.

    Raises:
        subprocess.CalledProcessError: it failed.

    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = client.command(rate, seconds, folder)
        if command[0] not in {"taskset", program()}:
            command = ["taskset", "-c", str(CLIENT_CPU), *command]
        ended = subprocess.run(
            [*node.prefix, "sh", "-c", FIRST, "sh", *command],
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds * 5 + 30,
        )
        if ended.returncode not in {0, 1}:
            raise subprocess.CalledProcessError(ended.returncode, command, "", ended.stderr)
        return client.read(ended.stdout, folder), client.counts(ended.stdout, folder)
