"""The command: one clear error for input that makes no sense."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from trials import plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--slo", "mean < 5us"], "'mean < 5us' is not a share of packets"),
        (["--slo", "p99.9 < 5"], "the limit '5' is not a time such as 50us"),
        (["--width", "wide"], "invalid width 'wide', expected 2% or 0.02"),
        (["--budget", "10x"], "invalid budget '10x', expected a time such as 90s, 20min or 2h"),
        (["--budget", "0min"], "invalid budget '0min', expected more than 0"),
        (["--budget", "5s"], "NDR: cannot be decided within 5 s"),
        (["--search", "size"], "invalid --search 'size', expected load or burst"),
    ],
)
def test_wrong_input_is_one_error(tmp_path: Path, options: list[str], told: str) -> None:
    command = [sys.executable, "-m", "tailtrim.cli", "capacity", str(plan(tmp_path)), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    first, *rest = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert told in first
    assert all(line.startswith("hint: ") for line in rest)
    assert not (tmp_path / "results").exists()
