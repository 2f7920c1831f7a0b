"""Student's test of paired differences of log tails.

Without an effect both runs of a pair come from the same law, and their order is random: the
difference is symmetric about zero. For symmetric differences Student's test errs less often than it
says, also with heavy tails (Efron, Journal of the American Statistical Association 64, 1969); the
simulations confirm it (docs/trim.md). A permutation of n signs has no p-value below 2**-n: at the
levels of a search (0.0005 and less) it needs 11 pairs and more, however clear the case is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Power of the tests for which needed pairs are computed (a convention, Cohen 1988).
_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Paired:
    """At least two differences of log tails; positive where removing a change costs.

    >>> few = Paired.of([0.2, 0.3, 0.25, 0.25])
    >>> round(few.mean, 3), round(few.p_value(), 5)
    (0.25, 0.00059)
    >>> [round(end, 3) for end in few.bounds(0.025)]
    [0.185, 0.315]

    """

    mean: float
    error: float
    count: int

    @classmethod
    def of(cls, differences: Sequence[float]) -> Paired:
        """Take the differences."""
        spread = stdev(differences) / math.sqrt(len(differences))
        return cls(fmean(differences), spread, len(differences))

    def p_value(self) -> float:
        """Return the probability of this mean or a larger one if there is no effect."""
        from scipy.special import stdtr  # noqa: PLC0415 - not before it is needed

        if self.error == 0:
            return 0.0 if self.mean > 0 else 1.0
        return float(stdtr(self.count - 1, -self.mean / self.error))

    def bounds(self, level: float) -> tuple[float, float]:
        """Return the ends beyond which the true mean lies with this probability, on each side."""
        from scipy.special import stdtrit  # noqa: PLC0415 - not before it is needed

        reach = -float(stdtrit(self.count - 1, level)) * self.error
        return self.mean - reach, self.mean + reach

    def needed(self, level: float, difference: float) -> int:
        """Return the pairs that show such a difference at a level, in four of five cases."""
        normal = NormalDist()
        reach = normal.inv_cdf(1 - level) + normal.inv_cdf(_POWER)
        of_one = self.error * math.sqrt(self.count)
        return max(math.ceil((reach * of_one / difference) ** 2), self.count + 1)
