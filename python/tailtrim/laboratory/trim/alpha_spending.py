"""Alpha spending: the looks of a search at its results, and the error that each look may spend.

A search that looks often and stops at the first good look would err more often than it says. Each
look k at a candidate therefore has a part of the candidate's error, error * (f(t_k) - f(t_{k-1})),
with f(t) = t (Lan and DeMets, Biometrika 70, 1983; the linear function: Kim and DeMets, Biometrika
74, 1987) and t the share of the longest search. The parts add up to the candidate's error, so by
the union bound they hold whatever the dependence between looks is, and whatever Student's small
samples are: no normal approximation enters. The price is some power against exact boundaries.

Over candidates, Holm's procedure (Scandinavian Journal of Statistics 6, 1979) holds the error of
the family: with m candidates of which r are proven, each is tested at error / (m - r). Before the
first false proof all r proven candidates do help, so that m - r is at least the number of those
which do not; the sum over these and over their looks is at most the error. That stays true for
sequential looks, since a proven candidate stays proven (Ye et al., Statistics in Medicine 32,
2013).
"""

from __future__ import annotations

#: Fewer pairs than these have no power at these levels: Student's t of 2 degrees of freedom is
#: 18 at 0.0015.
FEWEST = 4
#: Looks are a third apart: each new look has the error of its part only, and fewer looks miss the
#: moment at which a clear case is clear.
_GROWTH = 4 / 3
#: 60 pairs show a difference of half the noise of one pair at a level of 0.0005 in four of five
#: cases ((3.3 + 0.84) / sqrt(60) = 0.53). More looks make the part of each smaller.
_LONGEST = 60


class Looks:
    """The looks of one phase, each with its share of the error.

    Args:
        rounds: how many rounds the budget allows.
        first: after how many rounds the first look is.
        longest: most rounds.

    """

    def __init__(self, rounds: int, *, first: int = FEWEST, longest: int = _LONGEST) -> None:
        """Lay out the looks."""
        self.longest = min(max(rounds, FEWEST), longest)
        places, at = [], float(first)
        while at < self.longest:
            places.append(round(at))
            at = max(at * _GROWTH, at + 1)
        self._places = [*places, self.longest]

    def share(self, rounds: int) -> float | None:
        """Return the share of the error that is spent after so many rounds; ``None``: no look."""
        if rounds not in self._places:
            return None
        place = self._places.index(rounds)
        before = self._places[place - 1] if place else 0
        return (rounds - before) / self.longest


class Holm:
    """The error that is left for each candidate, by Holm's procedure."""

    def __init__(self, error: float, hypotheses: int) -> None:
        """Begin with nothing proven."""
        self._error, self._left = error, hypotheses

    @property
    def level(self) -> float:
        """The error of each hypothesis that is left."""
        return self._error / self._left

    def proven(self) -> None:
        """Give the error of a proven hypothesis to the others."""
        self._left = max(self._left - 1, 1)
