"""Verdicts on the candidates of a search, and its result."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tailtrim.verdict import BETTER, NO_DIFFERENCE, WORSE, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence


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

    @property
    def verdict(self) -> Verdict:
        """The verdict on a change that is not worth it: worse, or no difference."""
        if self.high < 0:
            return Verdict(verdict=WORSE)
        return Verdict(verdict=NO_DIFFERENCE, beyond=max(abs(self.low), self.high))


@dataclass(frozen=True, slots=True)
class Found(Verdict):
    """A candidate with the verdict on its effect on the tail, and the reason.

    Those that are better are kept. What breaks a limit is worse. ``needed`` are the further trials
    that would decide.
    """

    name: str
    group: str
    reason: str
    gain: Gain | None = None
    #: In a group that was screened as a whole the gain is that of the group.
    of_group: bool = False
    #: Whether there was a trial with it.
    tried: bool = True


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
        return tuple(one.name for one in self.found if one.verdict == BETTER)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return asdict(self) | {"kept": list(self.kept)}


def cumulative_steps(found: Sequence[Found]) -> list[frozenset[str]]:
    """Return the sets from no change to all that are kept; the largest gain comes first."""
    kept = [one for one in found if one.verdict == BETTER]
    kept.sort(key=lambda one: one.gain.share if one.gain else 0.0, reverse=True)
    return [frozenset(one.name for one in kept[:count]) for count in range(len(kept) + 1)]
