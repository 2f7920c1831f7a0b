"""The section of a page on the result of a search of capacity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.capacity import record
from tailtrim.capacity.trial import Purpose
from tailtrim.report import capacity_wording

if TYPE_CHECKING:
    from tailtrim.capacity.record import Capacity
    from tailtrim.experiment import RecordedExperiment
    from tailtrim.report.capacity_wording import GoalRow


@dataclass(frozen=True, slots=True)
class CapacitySection:
    """A table of goals with bounds in ``unit``, and sentences beneath it."""

    unit: str
    rows: list[GoalRow]
    notes: list[str]

    @classmethod
    def of(cls, capacity: Capacity | None) -> CapacitySection | None:
        """Return the section; ``None`` where nothing was searched for, or nothing is found yet."""
        if capacity is None or not capacity.found:
            return None
        unit = capacity_wording.unit(capacity)
        return cls(unit, capacity_wording.rows(capacity), capacity_wording.notes(capacity))


def warm_ups(capacity: Capacity | None) -> list[str]:
    """Return the trials of a search that only warm up."""
    return [
        f"run-{number:03d}"
        for number, (trial, _) in enumerate(capacity.trials if capacity is not None else ())
        if trial.purpose is Purpose.WARM_UP
    ]


def capacity_of(experiment: RecordedExperiment | None) -> Capacity | None:
    """Return the search that the runs of an experiment are trials of, if they are.

    Raises:
        RunDirectoryError: its record is damaged.

    """
    return record.read(experiment.path) if experiment is not None else None
