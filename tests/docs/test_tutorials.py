"""The tutorial on captures is true: its commands are run, and print what it shows.

`UPDATE_TUTORIAL=1 pytest tests/docs` writes the outputs anew; look at the difference.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BASH = "/bin/bash"
TUTORIAL = ROOT / "docs" / "tutorial-captures.md"
_BLOCK = re.compile(r"```console\n\$ (.*)\n((?:.*\n)*?)```\n")


def _run(command: str, place: Path) -> Iterator[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        [BASH, "-c", command],
        check=False,
        cwd=place,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for line in ended.stdout.strip("\n").splitlines():
        yield f"{line.rstrip()}\n"


def test_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    written = TUTORIAL.read_text(encoding="utf-8")

    def run(block: re.Match[str]) -> str:
        return f"```console\n$ {block[1]}\n{''.join(_run(block[1], tmp_path))}```\n"

    assert len(_BLOCK.findall(written)) == written.count("```console") > 0
    found = _BLOCK.sub(run, written)
    if "UPDATE_TUTORIAL" in os.environ:
        TUTORIAL.write_text(found, encoding="utf-8")
    assert found == written
