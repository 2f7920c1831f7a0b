"""Length of a measurement that a quantile needs: :func:`plan_length`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.compare.sources import groups_of
from tailtrim.analysis.options import confidence_level, probability, share
from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    from tailtrim.analysis.compare.sources import Source


@dataclass(frozen=True, slots=True)
class Length:
    """Number of samples that a quantile needs.

    In the share ``assurance`` of the runs, the interval lies within ``precision`` on either side:
    relative to the latency where a run shows how steep its tail is (``of_latency``), otherwise to
    the share of packets beyond the quantile.
    ``bounded_from`` samples are needed for an upper bound at all. ``design_effect`` is the number
    of samples divided by the effective sample size: late packets come in clusters.
    """

    p: str
    precision: float
    assurance: float
    of_latency: bool
    bounded_from: int
    samples: int
    design_effect: float
    rate_pps: float | None

    @property
    def seconds(self) -> float | None:
        """Time for the samples at the rate."""
        return self.samples / self.rate_pps if self.rate_pps else None

    def as_json(self) -> dict[str, Any]:
        """Return the length as JSON data."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {"schema": "tailtrim.length/1", **told, "seconds": self.seconds}


def plan_length(  # noqa: PLR0913 - keyword-only options, each with a default
    quantile: str | float,
    *,
    precision: str | float = "10%",
    confidence: str | float = "0.95",
    assurance: str | float = "80%",
    cluster: float = 1.0,
    rate_pps: float | None = None,
    pilot: Source | None = None,
) -> Length:
    """Say how many samples bound a quantile with a precision.

    Args:
        quantile: as decimal text or percent.
        precision: relative half-width of its interval, as a number or percent.
        confidence: of the interval.
        assurance: how often it is as narrow as asked, 50 % or more. An interval is as wide as its
            run lets it be; planned for the width that is to be expected, half of them are wider.
        cluster: how many late packets come together, where that is known.
        rate_pps: packets per second; by default those of the pilot.
        pilot: a run that was measured already: it tells how steep the tail is, how much it
            clusters, and the rate.

    Raises:
        TailtrimError: no length can be told, with the reason.
        ValueError: an option makes no sense.

    """
    if rate_pps is not None and not 0 < rate_pps < math.inf:
        raise ValueError(f"invalid rate {rate_pps}, expected packets per second, such as 10000")
    samples = None
    if pilot is not None:
        groups = groups_of(pilot)
        runs = [run for group in groups for run in group.repetitions]
        if len(runs) != 1:
            raise RunDirectoryError(f"{pilot}: holds {len(runs)} runs, expected one to learn from")
        samples = runs[0].samples()
        rate_pps = rate_pps or runs[0].summary.rate_pps
    found = json.loads(
        _native.plan_length(
            quantile=probability(quantile),
            precision=share("precision", precision, "10% or 0.1"),
            confidence=confidence_level(confidence),
            assurance=probability(assurance),
            design_effect=cluster,
            samples=samples,
        )
    )
    return Length(**found, rate_pps=rate_pps)
