"""Cost of a firewall rule: the slope of round-trip times over the matching rule's position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Floats = np.ndarray[Any, np.dtype[np.float64]]

_DRAWS = 4_000
_CONFIDENCE = 0.95
#: Two positions make a line without saying whether it is one.
_FEWEST = 3
_SEED = 1


@dataclass(frozen=True, slots=True)
class RulePosition:
    """The median round-trip time of a run in which rule ``rule`` accepted the probes."""

    firewall: str
    loop: str
    rule: int
    median_ns: int


@dataclass(frozen=True, slots=True)
class Slope:
    """A line through the medians of runs: nanoseconds a rule, with its interval, and at rule 0.

    ``straight`` is the share of the medians' variance that the line explains.
    """

    firewall: str
    loop: str
    runs: int
    ns_per_rule: float
    low: float
    high: float
    at_zero_ns: float
    straight: float
    positions: tuple[RulePosition, ...]


def slopes(positions: Iterable[RulePosition]) -> Iterator[Slope]:
    """Fit a line for each firewall and combination of the loop variables.

    The interval is that of resampled runs: a run is a block of probes, which are alike, and the
    interval has to include the spread of runs. No distribution is assumed, nor that
    medians scatter alike at all positions.
    """
    groups: dict[tuple[str, str], list[RulePosition]] = {}
    for one in positions:
        groups.setdefault((one.firewall, one.loop), []).append(one)
    for (firewall, loop), group in groups.items():
        if len({one.rule for one in group}) < _FEWEST:
            continue
        rules = np.array([one.rule for one in group], float)
        medians_ns = np.array([one.median_ns for one in group], float)
        slope, at_zero_ns = _line(rules, medians_ns)
        random = np.random.default_rng(_SEED)
        draws = random.integers(0, len(group), (_DRAWS, len(group)))
        drawn = [_line(rules[draw], medians_ns[draw])[0] for draw in draws if np.ptp(rules[draw])]
        tail = (1 - _CONFIDENCE) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail])
        rest = medians_ns - (at_zero_ns + slope * rules)
        spread = float(np.var(medians_ns))
        yield Slope(
            firewall=firewall,
            loop=loop,
            runs=len(group),
            ns_per_rule=slope,
            low=float(low),
            high=float(high),
            at_zero_ns=at_zero_ns,
            straight=1 - float(np.var(rest)) / spread if spread else 1.0,
            positions=tuple(group),
        )


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Return slope and value at 0 of the line of least squares."""
    apart = x - x.mean()
    slope = float((apart * (y - y.mean())).sum() / (apart * apart).sum())
    return slope, float(y.mean() - slope * x.mean())
