"""``tailtrim import`` of spans of a watch, as run directories that stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.cli import spans
from tailtrim.cli.console import warn
from tailtrim.errors import Remedy

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.cli.spans import Selected
    from tailtrim.results import Summary


def leave_runs(chosen: Selected, out: Path | None) -> list[tuple[str, Path, Summary]]:
    """Leave a run directory for each target that has minutes; return name, place and summary.

    Raises:
        ValueError: no place is given.
        RoundTripError: there are no minutes, or they cannot be read.
        OutputError: a directory cannot be written.

    """
    from tailtrim.analysis.watched import Account, leave_run  # noqa: PLC0415 - others start without
    from tailtrim.errors import RoundTripError  # noqa: PLC0415

    if out is None:
        failure = ValueError(f"{chosen.folder}: minutes become run directories, expected a place")
        failure.add_note(Remedy("{out} names it"))
        raise failure
    runs, missing = [], []
    for target, name in zip(chosen.targets, chosen.names, strict=True):
        account = Account(target, chosen.span)
        place = out / name.replace("/", "_") if len(chosen.targets) > 1 else out
        try:
            runs.append((name, place, leave_run(account, place)))
        except RoundTripError as error:
            missing.append(error)
            continue
        spans.tell(account)
    if not runs:
        raise missing[0]
    for fault in missing:
        warn(str(fault))
    return runs
