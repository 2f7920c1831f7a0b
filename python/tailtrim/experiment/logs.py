"""What programs of the nodes wrote to standard error, and guests to their console: in each run."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tailtrim.rundir.layout import COUNTERS, LOGS, MINUTES

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

#: Below the experiment: what there is of runs that failed.
_FAILED = "failed"


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


def has_minutes(draft: Path) -> bool:
    """Whether a run that did not end has measured by minute, for one or more."""
    return any(path.stat().st_size > 0 for path in draft.rglob(MINUTES[0]))


def _minutes(draft: Path) -> list[Path]:
    if not has_minutes(draft):
        return []
    return [path for name in (*MINUTES, COUNTERS) for path in draft.rglob(name)]


def keep(draft: Path, experiment: Path, run: str) -> None:
    """Keep what there is of a run that failed, instead of what there was of it before.

    Args:
        draft: what its nodes left.
        experiment: the directory of the experiment.
        run: the name of its run directory.

    """
    place = experiment / _FAILED / run
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    move(draft, place)
    for path in (*draft.glob("*.log"), *_minutes(draft)):
        shutil.move(path, place / path.name)
    # A folder goes that has nothing in it.
    for folder in (place, place.parent):
        if not any(folder.iterdir()):
            folder.rmdir()


def forget(experiment: Path, run: str) -> None:
    """Remove what was kept of a run that is complete now."""
    shutil.rmtree(experiment / _FAILED / run, ignore_errors=True)
