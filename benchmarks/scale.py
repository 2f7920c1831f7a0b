"""Cost of each engine by the number of pairs, up to a billion, in bounded memory.

    python benchmarks/scale.py --pairs 1M --pairs 10M --memory 2
    python benchmarks/scale.py --pairs 1000M --scratch /large/disk    # the scale proof
    python benchmarks/scale.py --pairs 1000M --engine native          # without an engine
    python benchmarks/scale.py --pairs 1M --engine postgres --engine spark    # servers of its own

Captures are MoonSniff's (stamp and identifier of a packet). They come through named pipes while
they are made: nothing of them lies on a disk. Each stage is a process of its own, which may not
have more than ``--memory`` (a control group's limit, which includes files in the page cache;
RLIMIT_DATA without root); servers may, and count with their clients. All engines must give the
bytes of the native matcher, or the script fails.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import captures as synthetic
from confined import confined
from measure import ProgramError, measure
from serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BENCHMARKS = Path(__file__).resolve().parent
SYNTHESIZE = BENCHMARKS.parent / "target" / "release" / "examples" / "synthesize"
UNITS = {"k": 10**3, "M": 10**6}
GIB = 2**30
# A million pairs come within the default trim.
PRINTED = ("--skip", "0", "--json")
# As decode chooses them by itself where it sees the size of a capture.
PACKETS_OF_BUCKET, MOST_BUCKETS = 1 << 21, 512
#: Engines that are servers.
SERVED = ("postgres", "spark")
#: Share of its process's memory that DuckDB may take; the rest is for rows on their way.
DUCKDB_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Stage:
    """Resources that a process used; ``parts`` are seconds of its parts, where it reports them."""

    pairs: int
    stage: str
    wall_s: float
    cpu_s: float
    #: Largest sum of what the process and its server allocated, of 20 samples a second.
    anonymous_mib: float
    high_water_mib: float
    #: Size of the files that it leaves on the disk.
    left_mib: float
    steal_s: float
    parts: str

    def row(self) -> str:
        """Return a line of the table."""
        millions = self.pairs / 10**6
        return (
            f"| {synthetic.short(self.pairs)} | {self.stage} | {self.wall_s:.1f} |"
            f" {self.wall_s / millions:.3f} | {self.cpu_s / millions:.3f} |"
            f" {self.anonymous_mib:.0f} | {self.left_mib:.0f} | {self.parts} |"
        )


HEADER = (
    "| pairs | stage | s | s a million pairs | CPU s a million pairs | allocated MiB | disk MiB |"
    " seconds of its parts |\n|---|---|--:|--:|--:|--:|--:|---|"
)


class Scale:
    """The stages for one number of pairs."""

    def __init__(self, pairs: int, folder: Path, memory: int, record: Path | None) -> None:
        """Work in a folder that is removed afterwards."""
        if not SYNTHESIZE.is_file():
            sys.exit(f"{SYNTHESIZE} is missing: {synthetic.BUILT_BY}")
        self._pairs, self._folder, self._memory, self._record = pairs, folder, memory, record
        self._decoded = folder / "decoded"

    def run(self, engines: Sequence[tuple[str, str | None]]) -> None:
        """Run all stages."""
        self._generate()
        native = self.native()
        if engines:
            self.decode()
        for engine, server in engines:
            with self._server(engine, server) as (where, process):
                told = self._match(engine, where, process)
            if told != native:
                sys.exit(f"{engine}: gives other bytes than the native matcher")

    def native(self) -> str:
        """Return what the native matcher says of the captures."""
        with self._capturing() as pair:
            return self._stage("native", [*tailtrim("analyze"), *map(str, pair), *PRINTED])

    def decode(self) -> Path:
        """Decode the captures, and return where they are decoded to."""
        wanted = max(1, -(-self._pairs // PACKETS_OF_BUCKET))
        buckets = min(MOST_BUCKETS, 1 << (wanted - 1).bit_length())
        with self._capturing() as pair:
            out = ["--out", str(self._decoded), "--buckets", str(buckets)]
            self._stage("decode", [*tailtrim("decode"), *map(str, pair), *out])
        return self._decoded

    @contextmanager
    def _server(self, engine: str, server: str | None) -> Iterator[tuple[str | None, int | None]]:
        """Start the server of an engine that needs one, unless one is named."""
        if server is not None or engine not in SERVED:
            yield server, None
            return
        # Names of sockets are short, and PostgreSQL's user must get there.
        with tempfile.TemporaryDirectory(prefix="tt-", dir=self._folder.parent) as place:
            Path(place).chmod(0o755)
            with serving(engine, Path(place)) as found:
                yield found

    def _match(self, engine: str, server: str | None, process: int | None) -> str:
        parts = self._folder / "parts.json"
        command = [sys.executable, str(BENCHMARKS / "timed.py"), engine, str(self._decoded)]
        command += ["--parts", str(parts), "--scratch", str(self._folder)]
        command += ["--memory", f"{int(self._memory * DUCKDB_SHARE / 10**6)}MB"]
        if server is not None:
            command += ["--server", server]
        return self._stage(engine, command, parts=parts, server=process)

    def _generate(self) -> None:
        """Time the generator alone; it also runs during the next stages."""
        started, before = time.monotonic(), _children_s()
        command = [str(SYNTHESIZE), "ingress", str(self._pairs), "mscap"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        wall_s, cpu_s = time.monotonic() - started, _children_s() - before
        self._note(Stage(self._pairs, "generate one side", wall_s, cpu_s, 0, 0, 0, 0, ""))

    @contextmanager
    def _capturing(self) -> Iterator[list[Path]]:
        """Two named pipes with a generator behind each."""
        paths = [self._folder / f"{side}.mscap" for side in synthetic.SIDES]
        generators = []
        try:
            for side, path in zip(synthetic.SIDES, paths, strict=True):
                os.mkfifo(path)
                command = [str(SYNTHESIZE), side, str(self._pairs), "mscap"]
                generators.append(subprocess.Popen([*synthetic.OPENING, str(path), *command]))
            yield paths
        finally:
            for generator in generators:
                generator.kill()
                generator.wait()
            for path in paths:
                path.unlink(missing_ok=True)

    def _stage(
        self,
        name: str,
        command: Sequence[str],
        *,
        parts: Path | None = None,
        server: int | None = None,
    ) -> str:
        # Pools that reserve memory for later would count as if they used it.
        pools = ["env", "ARROW_DEFAULT_MEMORY_POOL=system", "MALLOC_ARENA_MAX=2"]
        output = self._folder / "stdout"
        try:
            with confined(self._memory) as limit:
                limited = [*limit, *pools, *command]
                taken = measure(limited, output, folder=self._folder, server=server)
        except ProgramError as error:
            sys.exit(f"{name}: {error}")
        told = json.loads(parts.read_text()) if parts else {}
        files = self._decoded.rglob("*.parquet") if name == "decode" else ()
        self._note(
            Stage(
                pairs=self._pairs,
                stage=name,
                wall_s=taken.wall_s,
                cpu_s=taken.user_s + taken.sys_s,
                anonymous_mib=taken.anonymous_kib / 1024,
                high_water_mib=taken.high_water_kib / 1024,
                left_mib=sum(path.stat().st_size for path in files) / 2**20,
                steal_s=taken.steal_s,
                parts=", ".join(f"{part} {seconds:.1f}" for part, seconds in told.items()),
            )
        )
        return output.read_text().strip()

    def _note(self, stage: Stage) -> None:
        print(stage.row(), flush=True)
        if self._record is None:
            return
        new = not self._record.exists()
        with self._record.open("a", newline="") as file:
            names = [field.name for field in fields(Stage)]
            writer = csv.DictWriter(file, names, lineterminator="\n")
            if new:
                writer.writeheader()
            cells = asdict(stage).items()
            writer.writerow({k: f"{v:.2f}" if isinstance(v, float) else v for k, v in cells})


def tailtrim(verb: str) -> list[str]:
    """Return how a verb of this Python's tailtrim is called."""
    return [sys.executable, "-m", "tailtrim.cli", verb]


def number_of(text: str) -> int:
    """Read a number of pairs such as 10M."""
    parsed = re.fullmatch(r"(\d+)([kM])", text)
    if parsed is None:
        raise argparse.ArgumentTypeError(f"{text}: expected such as 300k or 10M")
    return int(parsed[1]) * UNITS[parsed[2]]


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", action="append", type=number_of, help="such as 10M, repeatable")
    parser.add_argument("--memory", type=int, default=2, help="GiB that a process may have")
    parser.add_argument(
        "--engine", action="append", help="duckdb (default), postgres, spark; native: no other"
    )
    parser.add_argument("--server", help="a running one, as tailtrim takes it")
    parser.add_argument("--record", type=Path, metavar="CSV", help="add the rows to this file")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    # On a signal it ends its generators and servers, and removes its captures.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    engines = [
        (engine, None if engine == "duckdb" else options.server)
        for engine in options.engine or ["duckdb"]
        if engine != "native"
    ]
    record = options.record.resolve() if options.record else None
    print(HEADER, flush=True)
    for pairs in options.pairs or [10**6, 10**7]:
        folder = Path(tempfile.mkdtemp(prefix="tailtrim-scale-", dir=options.scratch))
        try:
            Scale(pairs, folder, options.memory * GIB, record).run(engines)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
