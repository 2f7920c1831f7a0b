"""Benchmarks still run: each with its smallest numbers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.packages, pytest.mark.alone]

ROOT = Path(__file__).parents[2]
#: Of each benchmark: arguments with which it takes seconds. {out}: a new folder.
SMALLEST = {
    "capacity_search.py": "--searches 1 --device no",
    "energy.py": "20",
    "live.py": "--seconds 0.2 --turns 1 --runs {out}",
    "noise.py": "--seconds 1 --turns 1 --runs {out}",
    "promise_errors.py": "1",
    "queueing_coverage.py": "1",
    "roundtrip.py": "--turns 1 --only latency --out {out}",
    "run.py": "--quick --only agent,naive,duckdb --scratch {out}",
    "scale.py": "--pairs 100k --engine duckdb --scratch {out}",
    "startup.py": "--turns 1",
    "stretches.py": "--pairs 1M --repeat 1 --scratch {out}",
    "trim_killed.py": "--kills 1 --within-s 5",
    "trim_search.py": "--searches 1",
}
#: What the others import or start.
PARTS = {
    *("captures.py", "cluster.py", "confined.py", "decode.py", "integers.py", "machine.py"),
    *("measure.py", "options.py", "programs.py", "record.py", "roundtrip_peers.py"),
    *("roundtrip_record.py", "serving.py", "session.py", "timed.py", "truth.py"),
}


def test_each_benchmark_has_its_numbers_here() -> None:
    assert {path.name for path in (ROOT / "benchmarks").glob("*.py")} == {*SMALLEST, *PARTS}


@pytest.mark.parametrize("name", SMALLEST)
def test_it_runs(name: str, tmp_path: Path) -> None:
    programs = ROOT / ".venv" / "bin"
    words = SMALLEST[name].format(out=tmp_path / "out").split()
    (tmp_path / "out").mkdir()
    ended = subprocess.run(
        [programs / "python", ROOT / "benchmarks" / name, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("\n") > 1
