"""Limits: what a change must not cost."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.trim.trial import Limits, Observation, Seen


def beyond(seen: Observation, limits: Limits, baselines: Sequence[Seen]) -> str | None:
    """Return which limit a trial is beyond, ``None`` if it is within all.

    A trial that failed is beyond: a change that stops the device is not to be kept.
    """
    if seen.failed is not None:
        return f"the run failed: {seen.failed}"
    if limits.loss is not None and seen.loss > limits.loss:
        return f"loss {seen.loss:.3%}, the limit is {limits.loss:.3%}"
    rates = [one.observation.rate_pps for one in baselines if one.observation.rate_pps]
    if limits.rate_loss is not None and seen.rate_pps is not None and rates:
        lost = 1 - seen.rate_pps / fmean(rates)
        if lost > limits.rate_loss:
            return f"throughput -{lost:.1%}, the limit is -{limits.rate_loss:.1%}"
    if limits.watts is not None and seen.watts is not None and seen.watts > limits.watts:
        return f"{seen.watts:.0f} W, the limit is {limits.watts:.0f} W"
    return None
