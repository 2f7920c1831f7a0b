"""The integers that every program has to agree on before its time is reported."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

LEVELS = ("0.5", "0.9", "0.99", "0.999", "0.9999", "0.99999", "0.999999")


@dataclass(frozen=True, slots=True)
class Integers:
    """Number of samples, and nanoseconds: ``min``, ``max`` and quantiles by nearest rank."""

    samples: int
    values: dict[str, int | None]

    def difference(self, other: Integers) -> str | None:
        """Return where the other differs, or None."""
        if self.samples != other.samples:
            return f"samples {other.samples}, not {self.samples}"
        for name, value in self.values.items():
            if other.values.get(name) != value:
                return f"{name} {other.values.get(name)}, not {value}"
        return None


def of_summary(summary: dict[str, Any]) -> Integers:
    """Take them from tailtrim's JSON."""
    latency = summary["latency_ns"]
    values = {quantile["p"]: quantile["value"] for quantile in latency["quantiles"]}
    ends = {"min": latency["min"], "max": latency["max"]}
    return Integers(summary["samples"], ends | {level: values[level] for level in LEVELS})


def of_histogram(histogram: list[list[int]]) -> Integers:
    """Compute them from pairs of a latency and how often it occurred, in any order.

    >>> of_histogram([[7, 1], [5, 99]]).values["0.99"]
    5
    """
    bins = sorted(histogram)
    samples = sum(count for _, count in bins)
    values: dict[str, int | None] = {"min": bins[0][0], "max": bins[-1][0]} if bins else {}
    for level in LEVELS:
        rank, seen = math.ceil(Fraction(level) * samples), 0
        for latency_ns, count in bins:
            seen += count
            if seen >= rank:
                values[level] = latency_ns
                break
    return Integers(samples, values)


def of_expected(expected: dict[str, Any]) -> Integers:
    """Take them from what is known of a published pair (``expected.json``), trimmed by 1 s."""
    latency = expected["latency_ns_trim_1s"]
    quantiles = {level: latency[_percent(level)] for level in LEVELS}
    return Integers(
        expected["samples_after_trim_1s"],
        {"min": latency["min"], "max": latency["max"]} | quantiles,
    )


def _percent(level: str) -> str:
    """Name a level as percentile.

    >>> _percent("0.5"), _percent("0.9999")
    ('p50', 'p99.99')
    """
    digits = level.removeprefix("0.").ljust(2, "0")
    return f"p{digits[:2]}" + (f".{digits[2:]}" if digits[2:] else "")
