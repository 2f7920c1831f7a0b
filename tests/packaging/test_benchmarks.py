"""Benchmarks still run: each with its smallest numbers. Nothing is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.alone]

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
#: Of each benchmark: arguments with which it takes seconds. {out}: a folder.
SMALLEST = {
    "capacity_search.py": "--searches 1 --device steady",
    "energy.py": "20",
    "gate.py": "--pairs 10000 --turns 1",
    "inputs.py": "--pairs 1000 --turns 1 --out {out}",
    "live.py": "--seconds 0.2 --turns 1 --runs {out}",
    "noise.py": "--seconds 1 --turns 1 --runs {out}",
    "promise_errors.py": "1",
    "queueing_coverage.py": "1",
    "roundtrip.py": "--turns 1 --only latency --out {out}",
    "run.py": "--quick --only agent,naive,duckdb --scratch {out} --runs {out} --agent {agent}",
    "scale.py": "--pairs 100k --engine duckdb --scratch {out}",
    "startup.py": "--turns 1",
    "stretches.py": "--pairs 3M --repeat 1 --scratch {out} --agent {agent}",
    "trim_killed.py": "--kills 1 --within-s 5",
    "trim_search.py": "--searches 1",
    "watch_live.py": "--minutes 1 --out {out}",
    "watch_load.py": "--targets 3 --seconds 2 --out {out}",
}
#: Programs of others without which a benchmark has nothing to measure.
NEEDED = {"watch_live.py": ("hipercontracer", "irtt"), "watch_load.py": ("fping", "irtt")}
#: Files that others import or start.
PARTS = {
    *("captures.py", "cluster.py", "confined.py", "decode.py", "delaying.py", "ending.py"),
    *("integers.py", "machine.py", "measure.py", "options.py", "programs.py", "record.py"),
    *("roundtrip_peers.py", "roundtrip_record.py", "serving.py", "session.py", "timed.py"),
    "truth.py",
}
#: Its environment has Spark.
OF_ENGINES = {"stretches.py"}


@pytest.fixture(scope="module")
def synthesize() -> None:
    """Compile what makes captures."""
    words = ("--release", "--locked", "--package", "tailtrim-tail", "--example", "synthesize")
    subprocess.run(("cargo", "build", "--quiet", *words), check=True, cwd=ROOT)


def test_each_benchmark_has_its_numbers_here() -> None:
    assert {path.name for path in (ROOT / "benchmarks").glob("*.py")} == {*SMALLEST, *PARTS}


@pytest.mark.usefixtures("synthesize")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.engines] if name in OF_ENGINES else [])
        for name in SMALLEST
    ],
)
def test_it_runs(name: str, tmp_path: Path) -> None:
    for needed in NEEDED.get(name, ()):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed, which {name} needs")
    words = SMALLEST[name].format(out=tmp_path, agent=PROGRAMS / "tailtrim-agent").split()
    ended = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / name, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "tests" / "capacity" / "support"),
        },
    )
    # Faster or not is told by the exit code of some.
    assert ended.returncode == 0 or name == "startup.py", ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout.count("\n") > 1
