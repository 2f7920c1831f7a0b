"""Kills a worker of a Spark cluster amid the work, and compares the bytes with the native ones.

    python benchmarks/killed_worker.py --pairs 10M

A master, two workers of one core and a Connect server run on this machine. The same captures are
analyzed twice: with both workers, then with one killed (SIGKILL, its executor with it) after a
third of the time that the first took.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from scale import BENCHMARKS, Scale, number_of

sys.path.append(str(BENCHMARKS.parent / "tests" / "engines" / "support"))

import servers


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", type=number_of, default="10M")
    parser.add_argument("--executor-mib", type=int, default=4096)
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    at = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tailtrim-killed-", dir=at.scratch))
    try:
        native, decoded = Scale(at.pairs, folder, 2**31, None).decode()
        options = {"executor_mib": at.executor_mib, "partitions": at.partitions}
        with servers.spark(folder, **options) as cluster:
            whole_s = analyze(decoded, cluster.url, folder, native)
            print(f"both workers: {whole_s:.1f} s, the native bytes", flush=True)
            victim = cluster.workers.pop()
            killing = threading.Timer(whole_s / 3, cluster.kill, [victim])
            killing.start()
            killed_s = analyze(decoded, cluster.url, folder, native)
            killing.join()
            print(f"one killed after {whole_s / 3:.1f} s: {killed_s:.1f} s, the native bytes")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def analyze(decoded: Path, url: str, folder: Path, native: str) -> float:
    """Analyze on the cluster; return the seconds."""
    parts = folder / "parts.json"
    command = [sys.executable, str(BENCHMARKS / "timed.py"), "spark", str(decoded)]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--server", url, "--parts", str(parts)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    taken_s = time.monotonic() - started
    if done.stdout.strip() != native:
        sys.exit("spark: gives other bytes than the native matcher")
    print({part: round(s, 1) for part, s in json.loads(parts.read_text()).items()}, flush=True)
    return taken_s


if __name__ == "__main__":
    main()
