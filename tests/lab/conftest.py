"""The tests on a live testbed run where namespaces can be made, and say where not."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from laboratory import Lab

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = ("ip", "tc", "unshare", "nsenter", "setpriv")


def namespaces() -> str | None:
    """Say why no network namespace can be made here, if so."""
    missing = [program for program in NEEDED if shutil.which(program) is None]
    if missing:
        return f"{missing[0]} is not installed"
    tried = subprocess.run(
        ["/usr/bin/env", "unshare", "--net", "true"], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else tried.stderr.strip()


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """Return the testbed, or skip loudly where there can be none."""
    problem = namespaces()
    if problem:
        pytest.skip(f"no network namespaces here: {problem}")
    return Lab(tmp_path)
