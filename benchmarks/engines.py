"""How long engines take and how much memory, by the number of pairs.

    python benchmarks/engines.py --pairs 1M --pairs 10M --memory 2GB
    python benchmarks/engines.py --pairs 1000M --scratch /large/disk    # the scale proof

Each stage is a process of its own, so that its peak of resident memory is its own. Captures,
decoded directories and DuckDB's spilled rows lie in ``--scratch``. All engines must give the same
bytes, or the script fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import captures as synthetic

ROOT = Path(__file__).resolve().parent.parent
UNITS = {"k": 10**3, "M": 10**6}
# A million pairs come within the default trim.
PRINTED = ("--trim", "0", "--json")


@dataclass(frozen=True, slots=True)
class Stage:
    """What a process took."""

    name: str
    pairs: int
    seconds: float
    peak_bytes: int
    output: str

    def row(self) -> str:
        """Return a line of the table."""
        a_million = self.seconds / self.pairs * 10**6
        peak = self.peak_bytes / 2**20
        pairs = synthetic.short(self.pairs)
        return f"| {pairs} | {self.name} | {self.seconds:.1f} | {a_million:.2f} | {peak:.0f} |"


def stage(name: str, pairs: int, *arguments: str | Path) -> Stage:
    """Run ``tailtrim`` and measure it with what it started."""
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "tailtrim.cli", *arguments],
        stdout=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "200"},
    )
    output = process.stdout.read().decode() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    if status != 0:
        sys.exit(f"{name}: ended with {os.waitstatus_to_exitcode(status)}")
    return Stage(name, pairs, seconds, usage.ru_maxrss * 1024, output)


def measure(pairs: int, engines: list[tuple[str, str | None]], memory: str, scratch: Path) -> None:
    """Print what each stage took."""
    synthesize = ROOT / "target" / "release" / "examples" / "synthesize"
    with tempfile.TemporaryDirectory(prefix="tailtrim-engines-", dir=scratch) as place:
        folder = Path(place)
        case = synthetic.Case(frame_bytes=60, pairs=pairs, through="file")
        ingress, egress = synthetic.generate(synthesize, case, folder)
        native = stage("native, captures", pairs, "analyze", ingress, egress, *PRINTED)
        print(native.row(), flush=True)
        decoded = folder / "decoded"
        print(stage("decode", pairs, "decode", ingress, egress, "--out", decoded).row(), flush=True)
        if shutil.disk_usage(folder).free < 2 * pairs * 200:
            # The rest needs no captures.
            ingress.unlink()
            egress.unlink()
        for engine, server in engines:
            options: list[str | Path] = ["--engine", engine]
            if engine == "duckdb":
                options += ["--memory", memory, "--scratch", folder]
            if server is not None:
                options += ["--server", server]
            found = stage(engine, pairs, "analyze", decoded, *options, *PRINTED)
            print(found.row(), flush=True)
            if found.output != native.output:
                sys.exit(f"{engine}: gives other bytes than the native matcher")


def main() -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pairs", action="append", help="such as 10M; may be given several times")
    parser.add_argument("--memory", default="1600MB", help="what DuckDB may take")
    parser.add_argument("--postgres", metavar="DSN", help="measure this server, too")
    parser.add_argument("--spark", metavar="URL", help="measure this server, too")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    engines: list[tuple[str, str | None]] = [("duckdb", None)]
    engines += [("postgres", options.postgres)] if options.postgres else []
    engines += [("spark", options.spark)] if options.spark else []
    print("| pairs | stage | s | s a million pairs | peak MiB |\n|---|---|---|---|---|", flush=True)
    for text in options.pairs or ["1M", "10M"]:
        parsed = re.fullmatch(r"(\d+)([kM])", text)
        if parsed is None:
            parser.error(f"--pairs {text}: expected such as 300k or 10M")
        measure(int(parsed[1]) * UNITS[parsed[2]], engines, options.memory, options.scratch)


if __name__ == "__main__":
    main()
