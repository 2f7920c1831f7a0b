"""``capacity.json`` of an experiment: its search, trials and results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import OutputError, RunDirectoryError
from tailtrim.laboratory.capacity.asleep import Asleep, asleep
from tailtrim.laboratory.capacity.result import EndReason, GoalBound, GoalResult
from tailtrim.laboratory.capacity.trial import Count, Purpose, Trial, TrialResult
from tailtrim.laboratory.experiment.record import write_json
from tailtrim.results.typed_json import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = "tailtrim.capacity/1"
RECORD = "capacity.json"


@dataclass(frozen=True, slots=True)
class Capacity:
    """The record of a search: ``trials`` in order; the last may have no result yet.

    ``prediction`` is what the model of one of them says, as JSON data, once it was asked.
    """

    search: dict[str, Any]
    trials: tuple[tuple[Trial, TrialResult | None], ...]
    goals: tuple[GoalResult, ...]
    prediction: dict[str, Any] | None = None

    @property
    def asleep(self) -> Asleep | None:
        """Medians of a device that is later with less load; ``None`` if that is not shown."""
        return asleep(results(self.trials), self.goals)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        slept = self.asleep
        return {
            "schema": SCHEMA,
            "search": self.search,
            "goals": [one.as_json() for one in self.goals],
            "prediction": self.prediction,
            "asleep": slept and asdict(slept),
            "trials": [
                {"run": f"run-{number:03d}", **asdict(trial), **_told(seen)}
                for number, (trial, seen) in enumerate(self.trials)
            ],
        }


def write(path: Path, capacity: Capacity) -> None:
    """Write the record of an experiment; it is whole at any time.

    Raises:
        OutputError: it cannot be written.

    """
    write_json(path / RECORD, capacity.as_json())


def read(path: Path) -> Capacity | None:
    """Read the record of an experiment; ``None`` where it has none.

    Raises:
        RunDirectoryError: it is damaged, or of another version.

    """
    place = path / RECORD
    try:
        data = parsed(place.read_text("utf-8"))
        if data["schema"] != SCHEMA:
            found = data["schema"]
            raise RunDirectoryError(f"{place}: the schema is {found!r}, expected {SCHEMA!r}")
        return Capacity(
            dict(data["search"]),
            tuple(_trial(one) for one in data["trials"]),
            tuple(_goal_result(one) for one in data["goals"]),
            data.get("prediction"),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunDirectoryError(f"{place}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(f"{place}: not the record of a search ({error})") from error


def same_search(path: Path, known: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse to go on with another search.

    Raises:
        OutputError: says what is different.

    """
    # As the file has it: tuples are lists there.
    asked = json.loads(json.dumps(asked))
    other = [key for key in {**known, **asked} if known.get(key) != asked.get(key)]
    if other:
        raise OutputError(f"{path}: holds a search with different {', '.join(other)}")


def _told(seen: TrialResult | None) -> dict[str, Any]:
    if seen is None:
        return {"took_s": None}
    return {
        "took_s": round(seen.took_s, 3),
        "invalid": seen.invalid,
        "sent_share": seen.sent_share,
        "own_pps": seen.own_pps,
        "cold": seen.cold,
        "median_ns": seen.median_ns,
        "counts": {name: asdict(count) for name, count in seen.counts.items()},
    }


def _trial(data: dict[str, Any]) -> tuple[Trial, TrialResult | None]:
    trial = Trial(int(data["load"]), float(data["duration_s"]), Purpose(data["purpose"]))
    if data["took_s"] is None:
        return trial, None
    counts = {name: Count(**count) for name, count in data["counts"].items()}
    return trial, TrialResult(
        trial,
        took_s=data["took_s"],
        counts=counts,
        invalid=data["invalid"],
        sent_share=data["sent_share"],
        own_pps=data.get("own_pps"),
        cold=data.get("cold", False),
        median_ns=data.get("median_ns"),
    )


def _goal_result(data: dict[str, Any]) -> GoalResult:
    ends = {key: data[key] and GoalBound(**data[key]) for key in ("lower", "upper")}
    return GoalResult(
        goal=data["goal"],
        **ends,
        throughput=data["throughput"],
        ended=EndReason(data["ended"]),
        not_decided=tuple(data["not_decided"]),
        limit=data["limit"],
    )


def results(trials: Sequence[tuple[Trial, TrialResult | None]]) -> list[TrialResult]:
    """Return the trials that are done, in order."""
    return [seen for _, seen in trials if seen is not None]
