"""Interface of the goals of a search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.capacity.trial import Seen


class Bound(StrEnum):
    """Kind of bound that a load is for a goal, once that is decided (RFC 9971)."""

    #: The device meets the goal at this load.
    LOWER = "lower"
    #: It does not.
    UPPER = "upper"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Result of the trials at a load: a bound, or the duration that the next trial needs.

    With neither, as many trials as the goal allows have decided nothing. A load is ``hard`` if its
    trials were twice as long as the clearest decision takes, and would have to be as long again.
    """

    bound: Bound | None
    more_s: float = 0.0
    hard: bool = False

    @property
    def given_up(self) -> bool:
        """Whether the load is not decided and will not be."""
        return self.bound is None and not self.more_s


class Goal(Protocol):
    """A condition that a load has to meet."""

    @property
    def name(self) -> str:
        """Name in tables and results."""

    def judged(self, seen: Sequence[Seen], pps: float) -> Judgement:
        """Judge a load.

        Args:
            seen: all valid trials at this load.
            pps: packets per second at this load.

        """

    def good(self, one: Seen) -> bool:
        """Whether the ratios of a trial meet the goal."""

    def throughput_share(self, seen: Sequence[Seen]) -> float:
        """Return the share of the load that counts as conditional throughput."""
