"""The command line as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def tailtrim(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ``tailtrim`` to its end, in 80 columns without colours."""
    return subprocess.run(
        [sys.executable, "-m", "tailtrim.cli", *arguments],
        check=False,
        text=True,
        capture_output=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80"},
    )
