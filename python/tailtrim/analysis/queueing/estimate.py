"""Estimates with intervals of 95 %, and the highest rate that follows: :func:`highest_rate`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.student_t import critical

if TYPE_CHECKING:
    from tailtrim.analysis.queueing.fifo import Floats

#: Stretches of a run whose means are taken as independent.
STRETCHES = 20
_CONFIDENCE = 0.95

_S = 1e9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval of 95 %."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate of a multiple."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)


def exact(value: float) -> Estimate:
    """Return a value that is known."""
    return Estimate(value, value, value)


def of_stretches(means: Floats) -> Estimate:
    """Return the mean of the means of stretches, with Student's interval; one mean has none."""
    value = float(means.mean())
    if means.size == 1:
        return exact(value)
    student = critical(means.size - 1, _CONFIDENCE)
    reach = student * float(means.std(ddof=1)) / math.sqrt(means.size)
    return Estimate(value, value - reach, value + reach)


def total(parts: list[Estimate]) -> Estimate:
    """Return the sum of independent estimates (see :func:`difference`)."""
    value = sum(part.value for part in parts)
    below = math.hypot(*(part.value - part.low for part in parts))
    above = math.hypot(*(part.high - part.value for part in parts))
    return Estimate(value, value - below, value + above)


def difference(a: Estimate, b: Estimate) -> Estimate:
    """Return a - b of independent estimates.

    Half widths add in squares, each side for itself: variances recovered from intervals (Zou and
    Donner, 2008), which keeps intervals that are not symmetric.
    """
    value = a.value - b.value
    below = math.hypot(a.value - a.low, b.high - b.value)
    above = math.hypot(a.high - a.value, b.value - b.low)
    return Estimate(value, value - below, value + above)


def highest_rate(stolen_ns_per_s: Estimate, t_cpu_ns: Estimate) -> Estimate:
    """Return R_max in packets a second: (1 s - what is stolen of it) / CPU time of a packet.

    Both are taken as independent. The interval is that of :func:`difference` for the logarithms;
    it has no upper bound where the CPU time of a packet has no lower one.
    """
    free = Estimate(_S - stolen_ns_per_s.value, _S - stolen_ns_per_s.high, _S - stolen_ns_per_s.low)
    if free.value <= 0 or t_cpu_ns.value <= 0:
        raise ValueError(
            f"R_max: no time is left for packets ({units.time(stolen_ns_per_s.value)} of each"
            f" second are stolen, a packet takes {units.time(t_cpu_ns.value)})"
        )
    found = difference(_log(free), _log(t_cpu_ns))
    return Estimate(free.value / t_cpu_ns.value, math.exp(found.low), math.exp(found.high))


def _log(one: Estimate) -> Estimate:
    low = math.log(one.low) if one.low > 0 else -math.inf
    return Estimate(math.log(one.value), low, math.log(one.high))


def stretches(at_ns: Floats, span_ns: float) -> list[slice]:
    """Return the slices of ascending times for each of :data:`STRETCHES` stretches of a run."""
    edges = np.searchsorted(at_ns, np.linspace(0, span_ns, STRETCHES + 1)[1:-1]).tolist()
    return [slice(a, b) for a, b in zip([0, *edges], [*edges, at_ns.size], strict=True)]
