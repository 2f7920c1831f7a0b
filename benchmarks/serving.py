"""Runs an engine's server for as long as somebody wants it: its own process, to be measured whole.

    python benchmarks/serving.py postgres FOLDER

Prints where the server is and runs until standard input ends. PostgreSQL has its stock settings;
Spark is a standalone cluster of two workers with a core each.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "engines" / "support"))

import servers

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Two of them and the other processes of Spark fit 16 GB.
EXECUTOR_MIB, PARTITIONS = 4096, 64


@contextmanager
def serving(engine: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Run the server; yields where it is, and the process that all of it descends from."""
    command = [sys.executable, str(Path(__file__)), engine, str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018, S101 - pipes, as asked for
        where = stdout.readline().strip()
        if not where:
            sys.exit(f"{engine}: the server does not start")
        try:
            yield where, process.pid
        finally:
            stdin.close()
            process.wait()


def main() -> None:
    """Serve what the command line says."""
    engine, folder = sys.argv[1], Path(sys.argv[2])
    if engine == "postgres":
        with servers.postgres(folder) as dsn:
            _hold(dsn)
    else:
        with servers.spark(folder, executor_mib=EXECUTOR_MIB, partitions=PARTITIONS) as cluster:
            _hold(cluster.url)


def _hold(where: str) -> None:
    print(where, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
