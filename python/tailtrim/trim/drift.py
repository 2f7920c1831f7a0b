"""Whether the host itself became slower or faster during a search."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.trim.trial import Seen

#: Fewer baselines have no slope worth telling.
_FEWEST = 6
#: One search in a hundred on a steady host is told to drift.
_LEVEL = 0.01


def drift(baselines: Sequence[Seen], worth: float) -> str | None:
    """Return a sentence about a baseline with a slope, ``None`` if it has none that matters."""
    told = [
        (one.trial.number, math.log(one.observation.tail_ns))
        for one in baselines
        if one.observation.tail_ns
    ]
    if len(told) < _FEWEST:
        return None
    from scipy.stats import linregress  # noqa: PLC0415 - takes a second to load

    numbers, logs = zip(*told, strict=True)
    fitted = linregress(numbers, logs)
    moved = float(fitted.slope) * (numbers[-1] - numbers[0])
    if fitted.pvalue > _LEVEL or abs(moved) < worth:
        return None
    return (
        f"the host drifts: without changes the tail moved by {math.expm1(moved):+.0%} during the"
        " search. Trials are compared within blocks, so the verdicts hold; the latencies"
        " of early and late trials are not comparable"
    )
