"""The lowest versions that pyproject.toml declares: installed together, and used."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.packages

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("pictures", "duckdb")
_LOWEST = re.compile(r"([a-z0-9-]+)(?:\[[a-z,]+\])?>=([0-9.]+)")
CAPTURES = [str(ROOT / "examples/testpmd" / f"{side}.pcap.zst") for side in ("ingress", "egress")]


def constraints() -> list[str]:
    """Return a constraint for each lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]
    return [f"{found[1]}=={found[2]}" for one in declared if (found := _LOWEST.match(one))]


@pytest.fixture(scope="module")
def lowest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the programs of an environment that has them."""
    (wheel,) = (ROOT / "dist").glob("tailtrim-[0-9]*.whl")
    place = tmp_path_factory.mktemp("lowest")
    (place / "constraints.txt").write_text("\n".join(constraints()))
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    pip = f"{place}/venv/bin/python -m pip install --quiet --constraint {place}/constraints.txt"
    done = subprocess.run(
        [*pip.split(), f"{wheel}[{','.join(EXTRAS)}]"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place / "venv" / "bin"


def told(programs: Path, *words: str | Path) -> str:
    done = subprocess.run(
        [programs / "tailtrim", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("engine", ["native", "duckdb"])
def test_results_are_those_of_the_newest(lowest: Path, engine: str) -> None:
    words = ("analyze", *CAPTURES, "--engine", engine, "--json")
    assert told(lowest, *words) == told(Path(sys.executable).parent, *words)


def test_pages_and_help_are_made(lowest: Path, tmp_path: Path) -> None:
    told(lowest, "analyze", *CAPTURES, "--out", tmp_path / "run")
    told(lowest, "report", tmp_path / "run", "--out", tmp_path / "report")
    told(lowest, "compare", tmp_path / "run", tmp_path / "run", "--out", tmp_path / "page.html")
    told(lowest, "convert", tmp_path / "run", "--format", "hlog")
    for made in ("report/report.html", "page.html", "run/run.hlog"):
        assert (tmp_path / made).is_file()
    newest = Path(sys.executable).parent
    assert told(lowest, "analyze", "--help") == told(newest, "analyze", "--help")
