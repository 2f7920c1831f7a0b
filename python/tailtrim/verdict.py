"""Verdict on a difference: one of four, which says what the data could show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

from tailtrim.student_t import critical

BETTER = "better"
WORSE = "worse"
NO_DIFFERENCE = "no_difference"
NOT_DECIDED = "not_decided"

_WORDS = {NO_DIFFERENCE: "no difference", NOT_DECIDED: "not decided"}
#: A larger difference may not hide in "no difference": what cannot tell a quarter more from nothing
#: has seen too little. The native module has the same (crates/compare/src/verdict.rs).
TELLING = 0.25
#: Larger numbers of runs are not told: nobody does so many.
_MOST = 1_000
#: The standard normal deviate of four cases out of five.
_POWER_DEVIATE = 0.841_621


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on a difference of two sides, or of two parts of a run.

    ``verdict`` is better, worse, ``no_difference`` or ``not_decided``. There is no difference
    ``beyond`` this (0.1 is 10 %), with the confidence that was asked for. So many runs of each side
    are ``needed`` for another verdict than ``not_decided`` in four of five cases; ``None`` if that
    is not known.
    """

    verdict: str = NOT_DECIDED
    beyond: float | None = None
    needed: int | None = None

    @property
    def differs(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict in {BETTER, WORSE}

    @property
    def kind(self) -> str:
        """Look of its cell in a table: better, worse, or neither."""
        return self.verdict if self.differs else ""

    def told(self, units: str = "runs") -> str:
        """Return it in words.

        >>> Verdict(verdict="no_difference", beyond=0.0347).told()
        'no difference beyond 3.5 %'
        >>> Verdict(verdict="not_decided", needed=9).told("boots")
        'not decided: needs 9 boots'

        """
        words = _WORDS.get(self.verdict, self.verdict)
        if self.beyond is not None:
            percent = 100 * self.beyond
            return f"{words} beyond {percent:.{0 if percent >= 10 else 1}f} %"  # noqa: PLR2004
        if self.needed is not None:
            more = f"more than {_MOST:,}" if self.needed > _MOST else f"{self.needed:,}"
            return f"{words}: needs {more} {units}"
        return words


def fewest_runs(error: float = 0.05) -> int:
    """Return the fewest runs a side of which a permutation can reach this error.

    The rarest deal of the runs to two sides of as many each, and its mirror image, come that
    seldom. Of fewer runs, "no difference" would rest on the law by which runs differ.

    >>> [fewest_runs(0.11), fewest_runs(), fewest_runs(0.01)]
    [3, 4, 5]

    """
    return next(runs for runs in count(2) if 2 / math.comb(2 * runs, runs) <= error)


def shown_from(runs: int, spread: float, confidence: float = 0.95) -> float:
    """Return the smallest relative difference that so many runs a side show in four of five cases.

    Args:
        runs: two or more.
        spread: the relative standard deviation of runs of one side.
        confidence: of the verdict.

    >>> round(shown_from(3, 0.1), 2), round(shown_from(8, 0.1), 2)
    (0.4, 0.17)

    """
    # Percentiles go together: of the correction for several, two have nearly the whole.
    each = 1 - (1 - confidence) / 2
    reach = critical(2 * (runs - 1), each) + _POWER_DEVIATE
    return math.expm1(reach * math.log1p(spread) * math.sqrt(2 / runs))
