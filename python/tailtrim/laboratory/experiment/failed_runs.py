"""Files of runs that are kept when these do not end: logs, and the minutes of runs of hours.

Logs are standard error of the nodes' programs, and the guests' console.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

from tailtrim.results.layout import AROUND, COUNTERS, LOGS, MINUTES

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

#: Folder below the experiment for the files of runs that failed.
_FAILED = "failed"
_MATCHED = "matched-"


def matched(run: str) -> str:
    """Return the folder of a node in which packets of a run are matched.

    Runs of a device that is kept up share their nodes: the name tells whose minutes are in it.
    """
    return f"{_MATCHED}{run}"


def run_of(half: Path) -> str | None:
    """Return the run whose minutes are in a folder of a process that was killed, if any are."""
    for path in _minutes(half):
        folder = path.parent.name
        if folder.startswith(_MATCHED):
            return folder.removeprefix(_MATCHED)
        return half.name.removeprefix(".").rpartition("-")[0]
    return None


def has_minutes(folder: Path) -> bool:
    """Whether a folder has one minute or more."""
    return bool(_minutes(folder))


def _minutes(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(MINUTES[0]) if path.stat().st_size > 0]


def move_minutes(source: Path, target: Path) -> None:
    """Move minutes, if there are any, and the files with them: counters, the worst packets."""
    if not has_minutes(source):
        return
    for name in (*MINUTES, COUNTERS):
        for path in [*source.rglob(name)]:
            shutil.move(path, target / name)
    for path in [*source.rglob(f"{AROUND}/*")]:
        (target / AROUND).mkdir(exist_ok=True)
        shutil.move(path, target / AROUND / path.name)


def log_names(folder: Path) -> frozenset[str]:
    """Return the names of the logs in a folder."""
    return frozenset(path.name for path in (folder / LOGS).glob("*"))


def move_logs(source: Path, target: Path, but: Collection[str] = ()) -> None:
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


def keep(draft: Path, experiment: Path, run: str) -> None:
    """Keep what there is of a run that failed, instead of what there was of it before.

    Minutes are not replaced: later ones have another folder, such as ``run-000.2``.

    Args:
        draft: the files that its nodes left.
        experiment: the directory of the experiment.
        run: the name of its run directory.

    """
    place, attempt = experiment / _FAILED / run, 1
    while has_minutes(place):
        attempt += 1
        place = place.with_name(f"{run}.{attempt}")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    move_minutes(draft, place)
    move_logs(draft, place)
    for path in draft.glob("*.log"):
        shutil.move(path, place / path.name)
    # A folder goes that has nothing in it.
    for folder in (place, place.parent):
        if not any(folder.iterdir()):
            folder.rmdir()


def forget(experiment: Path, run: str) -> None:
    """Remove what was kept of a run that is complete now."""
    failed = experiment / _FAILED
    for place in (failed / run, *failed.glob(f"{run}.*")):
        shutil.rmtree(place, ignore_errors=True)
    with contextlib.suppress(OSError):
        failed.rmdir()
