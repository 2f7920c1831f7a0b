"""Cost of matching captures on a Spark cluster, compared with one process and the lean C peer.

    cargo build --release -p tailtrim-agent
    cargo build --release -p tailtrim-tail --example synthesize
    python benchmarks/stretches.py --pairs 10M --pairs 100M

A master, two workers of one core and a Connect server run on this machine, on captures in its page
cache. Prints a table in Markdown: wall time, CPU time (that of the client, of the servers and of
the workers), and the bytes that came back from them. Two processes at once show how much faster two
cores of this machine can be. The first analysis of a session starts Java's and Python's workers and
sends them the native module; the second does not. Then a worker is killed (SIGKILL, its executor
with it) after a third of that time. All must give the bytes of one process.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import captures as synthetic
from measure import measure
from programs import naive_match
from scale import BENCHMARKS, SYNTHESIZE, number_of

sys.path.append(str(BENCHMARKS.parent / "tests" / "engines" / "support"))

import servers

from tailtrim.analysis import engines
from tailtrim.analysis.engines.stretches import PACKETS, analyze_captures

if TYPE_CHECKING:
    from collections.abc import Iterator

AGENT = BENCHMARKS.parent / "target" / "release" / "tailtrim-agent"
# Ten million pairs come within a second.
TRIM_S = 0.1


@dataclass(frozen=True)
class Took:
    """Time of an analysis, and the bytes that came back."""

    wall_s: float
    cpu_s: float
    came_bytes: int = 0


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", type=number_of, action="append")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--packets", type=number_of, help="of a stretch; default: at most a quarter"
    )
    parser.add_argument("--agent", type=Path, default=AGENT, metavar="FILE")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    at = parser.parse_args()
    print("| pairs | | wall, s | CPU, s | CPU s per million pairs | from the workers |")
    print("|--:|---|--:|--:|--:|--:|")
    for pairs in at.pairs or [number_of("10M")]:
        with tempfile.TemporaryDirectory(prefix="tailtrim-stretches-", dir=at.scratch) as place:
            # Captures of fewer than one and a half stretches are left to one host.
            packets = at.packets or min(PACKETS, pairs // 4)
            compare(pairs, at.repeat, packets, Path(place), at.agent)


def compare(pairs: int, repeat: int, packets: int, folder: Path, agent: Path) -> None:
    """Print the rows of so many pairs."""
    case = synthetic.Case(60, pairs, "file")
    paths = synthetic.generate(SYNTHESIZE, case, folder)
    synthetic.warm(paths)
    result = folder / "summary.json"

    def row(what: str, took: Took) -> None:
        came = f"{took.came_bytes / 1e6:.1f} MB" if took.came_bytes else ""
        cpu = "|  |  |"
        if not math.isnan(took.cpu_s):
            cpu = f"| {took.cpu_s:.2f} | {took.cpu_s / pairs * 1e6:.3f} |"
        head = f"| {synthetic.short(pairs)} | {what} | {took.wall_s:.2f} "
        print(f"{head}{cpu} {came} |", flush=True)

    def process(what: str, command: list[str], told: Path) -> None:
        took = [measure(command, told, folder=folder) for _ in range(repeat)]
        best = min(took, key=lambda one: one.wall_s)
        row(what, Took(best.wall_s, best.user_s + best.sys_s))

    if (peer := naive_match(folder)) is None:
        print("SKIPPED: lean C: no C compiler", file=sys.stderr)
    else:
        # It computes the histogram alone.
        process("lean C, one core", [str(peer), *map(str, paths)], folder / "peer.json")
    command = [str(agent), "analyze", *map(str, paths), "--skip", f"{TRIM_S}s"]
    # The most that two cores of this machine can do.
    one = [*command, "--jobs", "1"]
    row("two processes at once, --jobs 1 each", Took(at_once(one, repeat, folder), math.nan))
    for jobs in (1, 2):
        process(f"one process, --jobs {jobs}", [*command, "--jobs", f"{jobs}"], result)
    expected = result.read_text(encoding="utf-8").strip()

    def on(cluster: servers.Cluster, at: Any) -> Took:
        return analyze(cluster, at, paths, packets, expected)

    with session(folder) as (cluster, at):
        row("Spark, two workers, with their start", on(cluster, at))
        took_again = min((on(cluster, at) for _ in range(repeat)), key=lambda one: one.wall_s)
        row("Spark, two workers", took_again)
        killing = threading.Timer(took_again.wall_s / 3, cluster.kill, [cluster.workers.pop()])
        killing.start()
        # The CPU time of the killed worker is not known.
        row("Spark, one worker killed after a third", replace(on(cluster, at), cpu_s=math.nan))
        killing.join()


def at_once(command: list[str], repeat: int, folder: Path) -> float:
    """Return how long two processes take that run at the same time, the best of some turns."""
    told = [folder / f"at-once-{number}" for number in range(2)]
    walls_s = []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(repeat):
            took = pool.map(lambda one: measure(command, one, folder=folder), told)
            walls_s.append(max(one.wall_s for one in took))
    return min(walls_s)


@contextmanager
def session(folder: Path) -> Iterator[tuple[servers.Cluster, Any]]:
    """Run a cluster, and a session there."""
    place = folder / "spark"
    place.mkdir()
    with (
        servers.spark(place, executor_mib=1024) as cluster,
        engines.connect("spark", engines.EngineOptions(server=cluster.url)) as at,
    ):
        yield cluster, at


def analyze(
    cluster: servers.Cluster, at: Any, paths: synthetic.Pair, packets: int, expected: str
) -> Took:
    """Analyze on the cluster."""
    mapped, came = at.mapped, 0

    def counted(*words: Any) -> Iterator[Any]:
        nonlocal came
        for index, answer in mapped(*words):
            came += len(answer or b"")
            yield index, answer

    at.mapped = counted
    try:
        cpu_s, started_s = cluster.cpu_s() + own_cpu_s(), time.monotonic()
        analysis = analyze_captures(at, *paths, skip_s=TRIM_S, packets=packets)
        wall_s = time.monotonic() - started_s
        cpu_s = cluster.cpu_s() + own_cpu_s() - cpu_s
    finally:
        at.mapped = mapped
    if analysis is None:
        sys.exit(f"spark: cuts nothing into stretches of {packets:,} packets")
    if analysis.summary.text.strip() != expected:
        sys.exit("spark: gives other bytes than one process")
    return Took(wall_s, cpu_s, came)


def own_cpu_s() -> float:
    """Return the CPU time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main()
