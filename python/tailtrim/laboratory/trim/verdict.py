"""Verdicts on the candidates of a search, and its result."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class Verdict(StrEnum):
    """The verdict on a candidate."""

    KEPT = "kept"
    NOTHING = "nothing"
    WORSE = "worse"
    LIMIT = "beyond a limit"
    UNDECIDED = "not proven"
    UNTRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Gain:
    """Share by which the tail becomes shorter, with its interval; negative is longer.

    ``confidence`` is that of the interval. It holds wherever the search stops (repeated confidence
    interval, Jennison and Turnbull 1989), and so is wider than that of a fixed number of runs.
    """

    share: float
    low: float
    high: float
    confidence: float

    @classmethod
    def of_logs(cls, mean: float, low: float, high: float, confidence: float) -> Gain:
        """Take a difference of log tails."""
        share, low, high = (-math.expm1(-one) for one in (mean, low, high))
        return cls(share, low, high, confidence)


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate with its verdict and the reason."""

    name: str
    group: str
    verdict: Verdict
    reason: str
    gain: Gain | None = None
    #: In a group that was screened as a whole the gain is that of the group.
    of_group: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a search."""

    found: tuple[Found, ...]
    #: Of what is kept, against the baseline; ``None`` if nothing is kept.
    total: Gain | None
    trials: int
    seconds: float
    #: Number of further trials that would have decided the rest in four of five cases.
    needed_trials: int | None = None
    notices: tuple[str, ...] = field(default=())

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of the changes that are kept."""
        return tuple(one.name for one in self.found if one.verdict is Verdict.KEPT)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return asdict(self) | {"kept": list(self.kept)}


def cumulative_steps(found: Sequence[Found]) -> list[frozenset[str]]:
    """Return the sets from no change to all that are kept; the largest gain comes first."""
    kept = [one for one in found if one.verdict is Verdict.KEPT]
    kept.sort(key=lambda one: one.gain.share if one.gain else 0.0, reverse=True)
    return [frozenset(one.name for one in kept[:count]) for count in range(len(kept) + 1)]
