"""``trim.json``: a search on disk, whole at any time."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tailtrim.errors import OutputError, Remedy
from tailtrim.laboratory.experiment.record import write_json
from tailtrim.laboratory.trim.trial import Candidate, Limits, Observation, Settings
from tailtrim.results.experiments import SEARCH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.laboratory.trim.trial import Seen
    from tailtrim.laboratory.trim.verdict import Result

SCHEMA = "tailtrim.trim/2"


@dataclass(slots=True)
class State:
    """The request of a search, and its observations.

    ``applied`` are the changes that are or may be applied to the host: the file has them first.
    """

    quantile: str
    settings: Settings
    candidates: list[Candidate]
    observations: list[Observation] = field(default_factory=list)
    applied: list[str] = field(default_factory=list)

    def save(self, folder: Path, seen: Sequence[Seen], result: Result | None) -> None:
        """Write it.

        Raises:
            OutputError: it cannot be written.

        """
        self.observations = [one.observation for one in seen]
        trials = [
            {
                "run": trial.folder,
                "changes": sorted(trial.changes),
                "phase": trial.phase,
                "block": trial.block,
                "observation": asdict(observation),
            }
            for trial, observation in seen
        ]
        told: dict[str, Any] = {
            "schema": SCHEMA,
            "quantile": self.quantile,
            "settings": asdict(self.settings),
            "candidates": [asdict(one) for one in self.candidates],
            "applied": self.applied,
            "trials": trials,
            "result": result.as_json() if result else None,
        }
        write_json(folder / SEARCH, told)


def applied(folder: Path) -> list[str]:
    """Return the changes of the host that a search had applied when it was killed, or has kept."""
    try:
        return list(map(str, json.loads((folder / SEARCH).read_text("utf-8"))["applied"]))
    except (OSError, ValueError, KeyError, TypeError):
        # Whoever loads it says what is wrong with it.
        return []


def candidate(told: dict[str, Any]) -> Candidate:
    """Return a candidate that was recorded."""
    checks = told.get("checks")
    return Candidate(**told | {"checks": None if checks is None else tuple(checks)})


def load(folder: Path, quantile: str, candidates: Sequence[Candidate]) -> State:
    """Read a search that was interrupted.

    Raises:
        OutputError: there is none, or of other candidates or another quantile.

    """
    path = folder / SEARCH
    try:
        known = json.loads(path.read_text("utf-8"))
        schema = known["schema"]
        settings = dict(known["settings"])
        settings["limits"] = Limits(**settings["limits"])
        state = State(
            known["quantile"],
            Settings(**settings),
            [candidate(one) for one in known["candidates"]],
            [Observation(**one["observation"]) for one in known["trials"]],
            list(known["applied"]),
        )
    except FileNotFoundError as error:
        told = OutputError(f"{path}: no search to resume")
        told.add_note(Remedy("begin one without {resume}"))
        raise told from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path}: not the record of a search ({error})") from error
    if schema != SCHEMA:
        raise OutputError(f"{path}: the schema is {schema!r}, expected {SCHEMA!r}")
    planned = {one.name for one in candidates}
    other = {one.name for one in state.candidates} ^ planned
    if state.quantile != quantile or other:
        what = ", ".join(sorted(other)) or "quantile"
        raise OutputError(f"{path}: the search is of a different plan: {what}")
    return state
