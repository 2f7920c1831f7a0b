"""Reasons for which the samples of a run do not support a quantile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim._native import episodes_needed

if TYPE_CHECKING:
    from tailtrim.results.summary import Quantile, Summary


def is_doubtful(quantile: Quantile, summary: Summary) -> bool:
    """Whether duplicates, and not too few samples, keep a quantile from being supported."""
    if quantile.supported:
        return False
    if quantile.episodes is None:
        return quantile.effective_samples >= quantile.samples_needed
    return quantile.episodes >= episodes_needed(summary.latency_ns.confidence)


def shortage(quantile: Quantile, summary: Summary) -> str:
    """Return what the samples lack to support a quantile, and how long to measure."""
    if summary.samples < quantile.samples_needed:
        return f"{units.count(quantile.samples_needed)} are needed"
    if quantile.episodes is None:
        return (
            f"the effective sample size is {units.count(quantile.effective_samples)}"
            f" (autocorrelated), {units.count(quantile.samples_needed)} are needed"
        )
    needed = episodes_needed(summary.latency_ns.confidence)
    if not quantile.episodes:
        return (
            f"no independent episode, {needed} are needed: measure more than {needed} times as long"
        )
    noun = "episode" if quantile.episodes == 1 else "episodes"
    longer = math.ceil(10 * needed / quantile.episodes) / 10
    return (
        f"{quantile.episodes} independent {noun}, {needed} are needed: measure at least"
        f" {longer:g} times as long"
    )
