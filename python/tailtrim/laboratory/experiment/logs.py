"""Logs of each run: standard error of the nodes' programs, and the guests' console."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tailtrim.results.layout import LOGS

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def names(folder: Path) -> frozenset[str]:
    """Return the names of the logs in a folder."""
    return frozenset(path.name for path in (folder / LOGS).glob("*"))


def move(source: Path, target: Path, but: Collection[str] = ()) -> None:
    """Move logs of one folder to another; programs that wrote nothing have none.

    Args:
        source: the folder that has the folder of logs.
        target: the folder that gets one.
        but: names of logs that stay, since others go on with them.

    """
    for path in sorted((source / LOGS).glob("*")):
        if path.name in but:
            continue
        if path.stat().st_size == 0:
            path.unlink()
            continue
        (target / LOGS).mkdir(exist_ok=True)
        shutil.move(path, target / LOGS / path.name)
