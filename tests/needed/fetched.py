"""Folder in which ``packaging/fetch.sh`` keeps what it fetches."""

from __future__ import annotations

import os
from pathlib import Path

FETCHED = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tailtrim"
KERNELS = FETCHED / "kernels"
ROOTS = FETCHED / "roots"
CRATES = FETCHED / "crates" / "bin"
