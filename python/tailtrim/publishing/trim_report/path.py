"""The path of a search: its quantile from the baseline to all that is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from tailtrim.laboratory.trim.trial import PATH
from tailtrim.laboratory.trim.verdict import cumulative_steps
from tailtrim.student_t import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.trim.recorded import RecordedSearch
    from tailtrim.laboratory.trim.trial import Seen

#: Of each interval alone.
CONFIDENCE = 0.95
#: Runs that were done after all was decided: no choice was made by them.
_FRESH = ("confirm", PATH)


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over runs with Student's interval; a single run has no interval."""

    value: float
    low: float | None
    high: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the path: its changes, and the quantile of its runs in ns."""

    name: str
    changes: frozenset[str]
    runs: tuple[str, ...]
    tail_ns: Spread


def path(search: RecordedSearch) -> list[Step]:
    """Return the steps that were measured, from the baseline to all that is kept."""
    found: list[Step] = []
    for changes in cumulative_steps(search.result.found if search.result else ()):
        seen = _runs(search, changes)
        if not seen:
            continue
        added = sorted(changes - found[-1].changes if found else changes)
        tails = [one.observation.tail_ns for one in seen if one.observation.tail_ns]
        found.append(
            Step(
                " ".join(f"+ {one}" for one in added) or "baseline",
                changes,
                tuple(one.trial.folder for one in seen),
                spread_of(tails),
            )
        )
    return found


def spread_of(values: Sequence[float]) -> Spread:
    """Return the geometric mean of positive numbers: the tests of a search compare logarithms.

    >>> spread = spread_of([80.0, 100.0, 125.0])
    >>> round(spread.value, 2), round(spread.low, 2), round(spread.high, 2)
    (100.0, 57.45, 174.08)

    """
    logs = [math.log(one) for one in values]
    ends = interval(logs, CONFIDENCE) if len(logs) > 1 else ()
    low, high = (math.exp(end) for end in ends) if ends else (None, None)
    return Spread(math.exp(fmean(logs)), low, high, len(logs))


def _runs(search: RecordedSearch, changes: frozenset[str]) -> list[Seen]:
    """Return the trials of a step: those after the decisions, otherwise all."""
    usable = [
        one for one in search.seen if one.trial.changes == changes and one.observation.tail_ns
    ]
    return [one for one in usable if one.trial.phase in _FRESH] or usable
