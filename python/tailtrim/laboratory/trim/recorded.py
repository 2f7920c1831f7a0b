"""A search that was done, to be read: :func:`recorded`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.trim.state import SCHEMA, candidate
from tailtrim.laboratory.trim.trial import Limits, Observation, Seen, Settings, Trial
from tailtrim.laboratory.trim.verdict import Found, Gain, Result
from tailtrim.results.experiments import SEARCH, is_experiment
from tailtrim.results.experiments import recorded as recorded_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.trim.trial import Candidate
    from tailtrim.results.experiments import RecordedExperiment


@dataclass(frozen=True, slots=True)
class RecordedSearch:
    """The contents of ``trim.json``; ``result`` is ``None`` where the search has not ended."""

    path: Path
    quantile: str
    settings: Settings
    candidates: tuple[Candidate, ...]
    seen: tuple[Seen, ...]
    result: Result | None
    #: The experiment whose runs the trials are; ``None`` on a workload of the user's own.
    experiment: RecordedExperiment | None = None

    @property
    def kept(self) -> frozenset[str]:
        """The names of the changes that are kept."""
        return frozenset(self.result.kept) if self.result else frozenset()

    def values(self, name: str) -> tuple[str, str] | None:
        """Return the plan's values without and with a change; ``None`` for one of a host."""
        try:
            change = self.experiment.plan["trim"]["candidates"][name] if self.experiment else {}
            return str(change["baseline"]), str(change["changed"])
        except (KeyError, TypeError):
            return None


def recorded(path: Path) -> RecordedSearch:
    """Read a search.

    Raises:
        RunDirectoryError: its record is missing, damaged or of another version.

    """
    place = path / SEARCH
    try:
        told = json.loads(place.read_text("utf-8"))
        if told["schema"] != SCHEMA:
            found = told["schema"]
            raise RunDirectoryError(f"{place}: the schema is {found!r}, expected {SCHEMA!r}")
        settings = dict(told["settings"])
        settings["limits"] = Limits(**settings["limits"])
        return RecordedSearch(
            path,
            str(told["quantile"]),
            Settings(**settings),
            tuple(candidate(one) for one in told["candidates"]),
            tuple(_seen(number, one) for number, one in enumerate(told["trials"])),
            _result(told["result"]),
            recorded_experiment(path) if is_experiment(path) else None,
        )
    except OSError as error:
        raise RunDirectoryError(f"{place}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunDirectoryError(f"{place}: not the record of a search ({error})") from error


def _seen(number: int, told: dict[str, Any]) -> Seen:
    trial = Trial(number, frozenset(told["changes"]), str(told["phase"]), int(told["block"]))
    seen = dict(told["observation"])
    numbers = {name: seen.get(name) for name in ("tail_ns", "loss", "rate_pps", "watts", "seconds")}
    # The file is untrusted: a number that is not finite is refused here, before it is drawn.
    seen |= {name: float(value) for name, value in numbers.items() if value is not None}
    if not all(math.isfinite(seen[name]) for name, value in numbers.items() if value is not None):
        raise ValueError(f"trial {number} has a number that is not finite")
    return Seen(trial, Observation(**seen))


def _result(told: dict[str, Any] | None) -> Result | None:
    if told is None:
        return None
    return Result(
        found=tuple(_found(one) for one in told["found"]),
        total=_gain(told["total"]),
        trials=int(told["trials"]),
        seconds=float(told["seconds"]),
        needed_trials=told["needed_trials"],
        notices=tuple(map(str, told["notices"])),
    )


def _found(told: dict[str, Any]) -> Found:
    return Found(**{**told, "gain": _gain(told["gain"])})


def _gain(told: dict[str, Any] | None) -> Gain | None:
    return None if told is None else Gain(**told)
