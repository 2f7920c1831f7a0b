"""Tail against watts of each set of changes that was tried, and which sets no other one beats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from tailtrim.energy.uncertainty import estimate
from tailtrim.trim.report.costs import powers_of
from tailtrim.trim.report.spread import Spread, spread_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.energy.measured import State
    from tailtrim.trim.recorded import RecordedSearch
    from tailtrim.trim.trial import Seen


@dataclass(frozen=True, slots=True)
class Tried:
    """A set of changes, its tail in ns and its watts; ``best`` where no other set has less of both.

    That is told of the means: their intervals may overlap.
    """

    changes: tuple[str, ...]
    tail_ns: Spread
    watts: Spread
    best: bool = False


def tradeoff(search: RecordedSearch) -> list[Tried]:
    """Return the sets whose power is known, from the fewest watts to the most.

    Raises:
        RunDirectoryError: what meters measured cannot be read.

    """
    powers = powers_of(search)
    sets: dict[frozenset[str], list[Seen]] = {}
    for one in search.seen:
        if one.trial.number in powers and one.observation.tail_ns:
            sets.setdefault(one.trial.changes, []).append(one)
    points = [
        Tried(
            tuple(sorted(changes)),
            spread_of([one.observation.tail_ns for one in seen if one.observation.tail_ns]),
            _watts([powers[one.trial.number] for one in seen]),
        )
        for changes, seen in sets.items()
    ]
    return best_of(points)


def best_of(points: Sequence[Tried]) -> list[Tried]:
    """Mark the sets that no other one beats; return all, from the fewest watts to the most."""
    marked: list[Tried] = []
    best: tuple[float, float] | None = None
    for one in sorted(points, key=lambda one: (one.watts.value, one.tail_ns.value, one.changes)):
        at = one.tail_ns.value, one.watts.value
        # Of two that are alike, neither beats the other.
        if best is None or at[0] < best[0]:
            best = at
        marked.append(replace(one, best=at == best))
    return marked


def _watts(states: Sequence[State]) -> Spread:
    watts = [state.watts for state in states if state.watts is not None]
    if len(watts) == 1:
        return Spread(watts[0], None, None, 1)
    found = estimate(watts, max(state.type_b_w for state in states))
    ends = found.value - found.expanded, found.value + found.expanded
    return Spread(fmean(watts), *ends, len(watts))
