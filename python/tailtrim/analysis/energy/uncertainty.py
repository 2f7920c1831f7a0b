"""Uncertainty of a power or energy by the GUM (JCGM 100:2008).

Type A comes from the spread of blocks: blocks are independent, readings within a block are not.
Type B comes from the meter: half a step of its resolution and its accuracy class, both with a
rectangular distribution (GUM 4.3.7). The expanded uncertainty has the coverage factor k = 2
(95.45 %). With few blocks the factor is that of Student's distribution, with as many degrees of
freedom as the formula of Welch and Satterthwaite gives (GUM annex G).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from tailtrim.student_t import critical

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Coverage of k = 2 for a normal distribution.
COVERAGE = math.erf(2 / math.sqrt(2))
#: From so many degrees of freedom on the factor is 2.00.
_MANY = 1_000
#: More blocks than this are not a plan.
_MOST_BLOCKS = 10_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over blocks, with its standard uncertainties of type A and B."""

    value: float
    type_a: float
    type_b: float
    blocks: int

    @property
    def factor(self) -> float:
        """The coverage factor."""
        return _factor(self.type_a, self.type_b, self.blocks)

    @property
    def expanded(self) -> float:
        """The expanded uncertainty."""
        return self.factor * math.hypot(self.type_a, self.type_b)

    @property
    def resolved(self) -> bool:
        """Whether it is known to be above 0."""
        return self.value > self.expanded

    def blocks_for(self, most: float) -> int | None:
        """Return how many blocks make the expanded uncertainty at most this.

        ``None`` where no number does: the meter itself is not good enough.
        """
        deviation = self.type_a * math.sqrt(self.blocks)
        if most <= 2 * self.type_b:
            return None
        low, high = 1, 2
        while _expanded(deviation, self.type_b, high) > most:
            low, high = high, 2 * high
            if high > _MOST_BLOCKS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            above = _expanded(deviation, self.type_b, middle) > most
            low, high = (middle, high) if above else (low, middle)
        return high

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference to another one, of other blocks.

        Its degrees of freedom are taken for those of the one with fewer blocks.
        """
        return Estimate(
            self.value - other.value,
            math.hypot(self.type_a, other.type_a),
            math.hypot(self.type_b, other.type_b),
            min(self.blocks, other.blocks),
        )

    def divided(self, divisor: float) -> Estimate:
        """Return it as a part of something that is known exactly."""
        value, type_a, type_b = (one / divisor for one in (self.value, self.type_a, self.type_b))
        return Estimate(value, type_a, type_b, self.blocks)


def estimate(values: Sequence[float], type_b: float) -> Estimate:
    """Return the mean of two or more blocks.

    Args:
        values: one of each block.
        type_b: the standard uncertainty that all of them share.

    """
    count = len(values)
    return Estimate(fmean(values), stdev(values) / math.sqrt(count), type_b, count)


def rectangular(half_width: float) -> float:
    """Return the standard uncertainty of an error that is anywhere within ± this."""
    return half_width / math.sqrt(3)


def _expanded(deviation: float, type_b: float, blocks: int) -> float:
    type_a = deviation / math.sqrt(blocks)
    return _factor(type_a, type_b, blocks) * math.hypot(type_a, type_b)


def _factor(type_a: float, type_b: float, blocks: int) -> float:
    if type_a == 0:
        return 2.0
    freedom = (1 + (type_b / type_a) ** 2) ** 2 * (blocks - 1)
    # GUM G.4.1: the next lower whole number.
    return critical(math.floor(freedom), COVERAGE) if freedom < _MANY else 2.0
