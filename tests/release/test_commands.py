"""``tailtrim release`` and ``tailtrim verify`` as a user types them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.long


def tailtrim(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tailtrim.cli"]
    return subprocess.run([*program, *words], capture_output=True, text=True, check=False, cwd=cwd)


@pytest.mark.fast
def test_an_experiment_is_released_and_verified(experiment: Path, tmp_path: Path) -> None:
    made = tailtrim("release", experiment, "--out", "out", "--captures", "none", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert made.stdout == "Release:    out\nFront page: out/README.md\n"
    assert "left out: run-001/ingress.pcap\n" in made.stderr
    told = (tmp_path / "out/README.md").read_text("utf-8")
    assert re.search("Captures: none, .*samples.*\n", told)
    done = tailtrim("verify", "out", "--only", "numbers", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search("pass +numbers +0 .*captures, 2 .*samples", done.stdout)
    assert re.search("skipped +figures .*not asked for", done.stdout)


def test_what_is_missing_is_told_with_its_options(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "run-000").mkdir()
    (tmp_path / "experiment.json").write_bytes((experiment / "experiment.json").read_bytes())
    done = tailtrim("release", ".", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: LICENSE and CITATION.cff: missing")
    for hint in ("hint: --license FILE ", "hint: --citation FILE "):
        assert hint in done.stderr


def test_what_differs_is_told_and_the_exit_code_says_so(copied: Path) -> None:
    place = copied / "experiment" / "run-000" / "summary.json"
    place.write_text(place.read_text().replace('"max": ', '"max": 1'))
    words = ("--only", "files", "--only", "numbers")
    done = tailtrim("verify", copied, *words, cwd=copied.parent)
    assert done.returncode == 1
    assert "fail     files" in done.stdout
    assert "differs: experiment/run-000/summary.json: changed" in done.stdout
    assert "differs: run-000/summary.json: latency_ns.max: 1" in done.stdout
    told: dict[str, Any] = json.loads(
        tailtrim("verify", copied, *words, "--json", cwd=copied.parent).stdout
    )
    verdicts = {one["level"]: one["verdict"] for one in told["levels"]}
    assert verdicts["numbers"] == "fail"
    assert verdicts["grid"] == "skipped"


def test_what_is_unsafe_is_one_error(copied: Path) -> None:
    (copied / "link").symlink_to("/etc")
    done = tailtrim("verify", copied, cwd=copied.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    for fact in ("'link'", "symbolic link"):
        assert fact in done.stderr


def test_an_unknown_level_is_told(released: Path) -> None:
    done = tailtrim("verify", released, "--only", "looks", cwd=released.parent)
    assert done.returncode == 2
    for fact in ("unknown level 'looks'", "files, grid"):
        assert fact in done.stderr


def test_results_that_are_there_are_not_measured_over(released: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    words = ("--only", "rerun", "--rerun", "1", "--out", "mine")
    done = tailtrim("verify", released, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "error: mine: exists" in done.stderr
    assert "hint: choose another --out" in done.stderr
