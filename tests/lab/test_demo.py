"""The demo on a machine that has what ``prerequisites.sh live`` names, and little else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from releases import entering

if TYPE_CHECKING:
    from laboratory import Lab

DEMO = Path(__file__).parents[2] / "examples" / "demo.yml"


def test_it_needs_no_more_than_is_declared(lab: Lab) -> None:
    here = Path(sys.executable).parent
    minimal = [*entering("bookworm-minimal"), "env", f"PATH={here}:/usr/bin:/usr/sbin"]
    python = [*minimal, sys.executable, "-c", "import ctypes"]
    started = subprocess.run(python, capture_output=True, text=True, check=False)
    if started.returncode != 0:
        pytest.skip(f"this Python does not start with bookworm's libraries: {started.stderr}")
    plan: dict[str, Any] = yaml.safe_load(DEMO.read_text())
    plan["traffic"]["duration_s"] = 1.5
    lab.folder.joinpath("demo.yml").write_text(yaml.safe_dump(plan))
    ended = subprocess.run(
        [*minimal, lab.program, "run", "demo.yml", "--out", "demo"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=lab.environment,
        cwd=lab.folder,
    )
    assert ended.returncode == 0, ended.stderr
    outcomes = [json.loads(path.read_text()) for path in lab.folder.glob("demo/run-*/outcome.json")]
    assert len(outcomes) == 6
    assert [outcome["failed"] for outcome in outcomes] == [None] * 6
    assert (lab.folder / "demo" / "report" / "report.html").is_file()
    assert lab.left() == []
