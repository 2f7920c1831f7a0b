"""Kills a worker of a Spark cluster amid the work, and compares the bytes with the native ones.

    python benchmarks/killed_worker.py --pairs 10M
    python benchmarks/killed_worker.py --pairs 100M --after 300    # the second cluster only

A master, two workers of one core and a Connect server run on this machine. The same captures are
analyzed on two such clusters: on one with both workers, then on a new one of which a worker is
killed (SIGKILL, its executor with it) after a third of the time that the first took. CPU seconds
are those of the cluster's processes, without what died.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scale import BENCHMARKS, Scale, number_of

sys.path.append(str(BENCHMARKS.parent / "tests" / "engines" / "support"))

import servers

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", type=number_of, default="10M")
    parser.add_argument("--executor-mib", type=int, default=4096)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--after", type=float, metavar="S", help="kill then, and run only once")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    at = parser.parse_args()
    # Who is ended takes the servers along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="tailtrim-killed-", dir=at.scratch))
    try:
        scale = Scale(at.pairs, folder, 2**31, None)
        native, decoded = scale.native(), scale.decode()
        options = {"executor_mib": at.executor_mib, "partitions": at.partitions}
        after_s = at.after
        if after_s is None:
            with running(folder, options) as cluster:
                after_s = analyze("both workers", decoded, cluster, native) / 3
        # Nothing of the first cluster is left that the second could use.
        with running(folder, options) as cluster:
            killing = threading.Timer(after_s, cluster.kill, [cluster.workers.pop()])
            killing.start()
            analyze(f"one killed after {after_s:.1f} s", decoded, cluster, native)
            if killing.is_alive():
                sys.exit("it was done before the worker was to be killed: --after less")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(folder: Path, options: dict[str, int]) -> Iterator[servers.Cluster]:
    """Run a cluster and remove what it wrote."""
    with (
        tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place,
        servers.spark(Path(place), **options) as cluster,
    ):
        yield cluster


def analyze(what: str, decoded: Path, cluster: servers.Cluster, native: str) -> float:
    """Analyze on the cluster; print what it took, and return the seconds."""
    parts = decoded.parent / "parts.json"
    command = [sys.executable, str(BENCHMARKS / "timed.py"), "spark", str(decoded)]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--server", cluster.url, "--parts", str(parts)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    taken_s = time.monotonic() - started
    if done.stdout.strip() != native:
        sys.exit("spark: gives other bytes than the native matcher")
    told = {part: round(s, 1) for part, s in json.loads(parts.read_text()).items()}
    cpu_s = cluster.cpu_s()
    print(f"{what}: {taken_s:.1f} s, CPU {cpu_s:.0f} s, the native bytes; {told}", flush=True)
    return taken_s


if __name__ == "__main__":
    main()
