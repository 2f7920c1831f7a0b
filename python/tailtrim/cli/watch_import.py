"""``tailtrim import`` of spans of a watch, as run directories that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.cli import spans
from tailtrim.errors import Remedy

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.cli.spans import Selected
    from tailtrim.results import Summary


def leave_runs(chosen: Selected, out: Path | None) -> list[tuple[str, Path, Summary]]:
    """Leave a run directory for each target that has minutes; return name, place and summary.

    Raises:
        ValueError: no place is given.
        RoundTripError: minutes are missing or unreadable.
        OutputError: a directory cannot be written.

    """
    if out is None:
        failure = ValueError(f"{chosen.folder}: minutes become run directories, expected a place")
        failure.add_note(Remedy("{out} names it"))
        raise failure
    several = len(chosen.targets) > 1
    return spans.leave_runs(chosen, lambda name: out / name.replace("/", "_") if several else out)
