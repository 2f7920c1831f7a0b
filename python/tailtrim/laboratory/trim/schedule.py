"""The schedule of a search: trials so far, budget, and blocks of trials in random order."""

from __future__ import annotations

import math
import random
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

from tailtrim.laboratory.trim.trial import EXPLAIN, Seen, Trial

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tailtrim.laboratory.trim.trial import Observation, Settings

    T = TypeVar("T")
    #: Yields the next trial, is sent its observation, and returns a result.
    Steps = Generator[Trial, Observation, T]

#: No change at all.
BASELINE: frozenset[str] = frozenset()
#: Fewer baselines have no slope worth telling.
_FEWEST = 6
#: One search in a hundred on a steady host is told to drift.
_LEVEL = 0.01


class Schedule:
    """The trials so far, and the rest of the budget.

    Args:
        settings: how to search.
        booting: the changes that take a boot.

    """

    def __init__(self, settings: Settings, booting: frozenset[str] = BASELINE) -> None:
        """Begin with nothing tried."""
        self.settings, self._booting = settings, booting
        self.seen: list[Seen] = []
        self._order = random.Random(settings.seed)  # noqa: S311 - an order, not a secret
        self._block = 0

    def block(self, phase: str, sets: Sequence[frozenset[str]]) -> Steps[list[Observation]]:
        """Try each set of changes once, in random order; those of one boot are together.

        Returns:
            the observations, in the order of ``sets``.

        """
        boots: dict[frozenset[str], list[int]] = {}
        for place, one in enumerate(sets):
            boots.setdefault(one & self._booting, []).append(place)
        of_boots = list(boots.values())
        self._order.shuffle(of_boots)
        for places in of_boots:
            self._order.shuffle(places)
        found: dict[int, Observation] = {}
        for place in (place for places in of_boots for place in places):
            trial = Trial(len(self.seen), sets[place], phase, self._block)
            found[place] = yield trial
            self.seen.append(Seen(trial, found[place]))
        self._block += 1
        return [found[place] for place in range(len(sets))]

    def left(self) -> int:
        """Return the number of trials that the budget still allows, by their mean time so far."""
        left = self.settings.trials - len(self.seen)
        if self.settings.seconds is not None and self.seen:
            took_s = [one.observation.seconds for one in self.seen]
            each_s = fmean(took_s)
            if each_s > 0:
                left = min(left, int((self.settings.seconds - sum(took_s)) / each_s))
        return max(left, 0)

    def affords(self, trials: int, *, reserve: int = 0) -> bool:
        """Whether the budget allows so many trials, and a reserve after them."""
        return trials + reserve <= self.left()

    def baselines(self) -> list[Seen]:
        """Return the trials without changes, in order; not those that a trace made slower."""
        without = (one for one in self.seen if one.trial.changes == BASELINE)
        return [one for one in without if one.trial.phase != EXPLAIN]

    def beyond_limit(self, seen: Observation) -> str | None:
        """Return the limit that a trial is beyond, ``None`` if it is within all.

        A trial that failed is beyond: a change that stops the device is not to be kept.
        """
        limits = self.settings.limits
        if seen.failed is not None:
            return f"the run failed: {seen.failed}"
        if limits.loss is not None and seen.loss > limits.loss:
            return f"loss {seen.loss:.3%}, the limit is {limits.loss:.3%}"
        rates = [rate for one in self.baselines() if (rate := one.observation.rate_pps)]
        if limits.rate_loss is not None and seen.rate_pps is not None and rates:
            lost = 1 - seen.rate_pps / fmean(rates)
            if lost > limits.rate_loss:
                return f"throughput -{lost:.1%}, the limit is -{limits.rate_loss:.1%}"
        if limits.watts is not None and seen.watts is not None and seen.watts > limits.watts:
            return f"{seen.watts:.0f} W, the limit is {limits.watts:.0f} W"
        return None

    def drift(self) -> str | None:
        """Return a sentence about baselines with a slope, ``None`` if they have none."""
        told = [
            (one.trial.number, math.log(tail))
            for one in self.baselines()
            if (tail := one.observation.tail_ns)
        ]
        if len(told) < _FEWEST:
            return None
        from scipy.stats import linregress  # noqa: PLC0415 - takes a second to load

        numbers, logs = zip(*told, strict=True)
        fitted = linregress(numbers, logs)
        moved = float(fitted.slope) * (numbers[-1] - numbers[0])
        if fitted.pvalue > _LEVEL or abs(moved) < self.settings.worth:
            return None
        return (
            f"the host drifts: without changes the tail moved by {math.expm1(moved):+.0%} during"
            " the search. Trials are compared within blocks, so the verdicts hold; the latencies"
            " of early and late trials are not comparable"
        )
