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
    ("options", "facts"),
    [
        (["--assert", "mean < 5us"], ("'mean < 5us'", "share of packets")),
        (["--assert", "p99.9 < 5"], ("limit '5'", "50us")),
        (["--width", "wide"], ("width 'wide'", "2%", "0.02")),
        (["--duration", "10x"], ("duration '10x'", "90s", "20min", "2h")),
        (["--duration", "0min"], ("duration '0min'", "more than 0")),
        (["--duration", "5s"], ("NDR: ", "within 5 s")),
        (["--search", "size"], ("--search 'size'", "load or burst")),
    ],
)
def test_wrong_input_is_one_error(
    tmp_path: Path, options: list[str], facts: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "tailtrim.cli", "capacity", str(plan(tmp_path)), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    first, *rest = done.stderr.splitlines()
    assert first.startswith("error: ")
    for fact in facts:
        assert fact in first
    assert all(line.startswith("hint: ") for line in rest)
    assert not (tmp_path / "results").exists()
