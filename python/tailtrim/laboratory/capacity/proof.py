"""Test of a share of bad packets against a ratio, which may be looked at after each trial.

The evidence is a mixture of likelihood ratios (Robbins 1970, *Annals of Mathematical Statistics*
41): how much better shares below the ratio explain what was seen than the ratio itself. If the
share is not below, the evidence reaches 20 at any time with a probability of at most 1/20 (Ville's
inequality). So a search may stop as soon as the evidence is enough, and go on as long as it is not.
"""

from __future__ import annotations

import math

#: Half of the evidence is that of no bad packet at all, so that it takes ln(2 · 20) / r good
#: packets in a row. One look alone would need ln(20) / r: many looks cost the factor 1.23.
_BELOW = ((0.0, 1 / 2), (1 / 4, 1 / 6), (1 / 2, 1 / 6), (3 / 4, 1 / 6))
#: Above, shares have no such favourite: each is as likely.
_ABOVE = (4 / 3, 2.0, 4.0, 16.0, 256.0, 4096.0)


def fewest(ratio: float, confidence: float) -> float:
    """Return how many good packets in a row prove that fewer than ``ratio`` are bad."""
    return math.log(2 / (1 - confidence)) / -math.log1p(-ratio)


def below(bad: float, packets: float, ratio: float) -> float:
    """Return the logarithm of the evidence that the share is below the ratio."""
    return _mixed([(share * ratio, weight) for share, weight in _BELOW], bad, packets, ratio)


def above(bad: float, packets: float, ratio: float) -> float:
    """Return the logarithm of the evidence that the share is above the ratio."""
    shares = [share * ratio for share in _ABOVE if share * ratio < 1] or [(1 + ratio) / 2]
    return _mixed([(share, 1 / len(shares)) for share in shares], bad, packets, ratio)


def _mixed(shares: list[tuple[float, float]], bad: float, packets: float, ratio: float) -> float:
    logs = [math.log(weight) + _log(share, bad, packets, ratio) for share, weight in shares]
    most = max(logs)
    return most + math.log(sum(math.exp(one - most) for one in logs))


def _log(share: float, bad: float, packets: float, ratio: float) -> float:
    good = (packets - bad) * (math.log1p(-share) - math.log1p(-ratio))
    if share == 0:
        return good if bad == 0 else -math.inf
    return good + bad * math.log(share / ratio)
