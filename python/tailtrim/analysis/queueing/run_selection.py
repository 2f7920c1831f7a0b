"""Selection of the run that a prediction is made from, of those it is compared with, its floor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim.errors import RunDirectoryError
from tailtrim.results import RunDirectory
from tailtrim.results.experiments import floor_of, is_experiment, recorded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.results.experiments import RecordedRun


# Keys of a plan for the rate of traffic: packets a second, or bits.
_RATES = ("rate_pps", "rate")


class Chosen(NamedTuple):
    """Runs of a prediction: that which it is made from, those to compare with, and the floor.

    ``floor`` is the experiment's own, with the traffic of the first; ``None`` where it has none.
    """

    source: RunDirectory
    others: list[RunDirectory]
    floor: RunDirectory | None


def chosen(paths: Sequence[Path]) -> Chosen:
    """Return the run to predict from, and the others.

    Of an experiment, the first is its run at the lowest rate; the others are those of the same
    device with traffic that differs in its rate alone.

    Raises:
        RunDirectoryError: a path is neither, or the experiment has no run, or several devices.

    """
    runs: list[RunDirectory] = []
    floor = None
    for path in paths:
        found, least = _of_experiment(path) if is_experiment(path) else ([RunDirectory(path)], None)
        floor = floor if runs else least
        runs.extend(found)
    return Chosen(runs[0], runs[1:], floor)


def _of_experiment(path: Path) -> tuple[list[RunDirectory], RunDirectory | None]:
    read = recorded(path).complete
    complete = [
        (run, directory)
        for run, directory in read
        if run.problem is None and not run.outcome.floor and directory.summary.rate_pps
    ]
    if not complete:
        raise RunDirectoryError(f"{path}: no run of the experiment is complete and valid")
    if len({_text(run.dut) for run, _ in complete}) > 1:
        names = ", ".join(directory.name for _, directory in complete[:3])
        raise RunDirectoryError(
            f"{path}: the experiment has several devices, expected one: name runs of one of them"
            f" ({names}, …)"
        )
    complete.sort(key=lambda one: one[1].summary.rate_pps or 0.0)
    source = complete[0][0]
    like = _traffic(source)
    floor = floor_of(source, [run for run, _ in read if run.problem is None])
    same = [directory for run, directory in complete if _traffic(run) == like]
    return same, None if floor is None else floor.directory


def _traffic(run: RecordedRun) -> str:
    return _text({key: value for key, value in run.traffic.items() if key not in _RATES})


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, default=str)
