"""The level ``numbers``: each run derived again, and compared with what was released."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import PlanError, TailtrimError
from tailtrim.release.derivation import derive
from tailtrim.release.differences import of_json, of_run
from tailtrim.release.level import Level
from tailtrim.release.tree import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.release.opened import Opened
    from tailtrim.rundir import RunDirectory

_EXPLANATION = "explanation.json"


def check(release: Opened, told: Callable[[str], None]) -> Level:
    """Derive the runs again, one after the other."""
    try:
        trim_s = release.planned[0].trim_s
    except PlanError as error:
        return Level("numbers", "the plan cannot be read", skipped=(str(error),), without=True)
    wrong, of_samples = [], []
    complete = release.experiment.complete
    for _, run in complete:
        told(run.path.name)
        try:
            found, whole = _compared(run, trim_s)
        except (TailtrimError, ValueError, KeyError, OSError) as error:
            wrong.append(f"{run.path.name}: cannot be derived again: {error}")
            continue
        wrong += [f"{run.path.name}/{one}" for one in found]
        if not whole:
            of_samples.append(run.path.name)
    skipped = []
    if of_samples:
        names = _named(of_samples)
        skipped.append(
            f"{names}: no captures, so latencies are derived from the samples; outcomes of packets,"
            " gaps and seconds are not"
        )
    how = (
        f"{len(complete) - len(of_samples):,} runs from captures, {len(of_samples):,} from samples"
    )
    return Level("numbers", how, tuple(wrong), tuple(skipped), without=not complete)


def _compared(run: RunDirectory, trim_s: float) -> tuple[list[str], bool]:
    """Return the first differences of a run, and whether all of it was derived."""
    with tempfile.TemporaryDirectory() as folder:
        derived = derive(run, trim_s, Path(folder) / run.path.name)
        found = of_run(run, derived)
        whole = derived.parts is None
    wrong = [] if found is None else [found]
    if (run.path / _EXPLANATION).is_file():
        wrong += _explained(run)
    return wrong, whole


def _explained(run: RunDirectory) -> list[str]:
    """Return the first difference of why packets were late, derived from the trace."""
    from tailtrim.experiment.conduct import explained  # noqa: PLC0415 - takes long to load

    released = record(run.path / _EXPLANATION)
    derived = json.loads(json.dumps(explained(run.path)))
    found = of_json(released, derived, "")
    return [] if found is None else [f"{_EXPLANATION}: {found}"]


def _named(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
