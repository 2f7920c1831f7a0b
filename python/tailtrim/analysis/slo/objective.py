"""An objective as text: ``p99.9 < 50us``, ``loss < 1e-4``, or the name of a promise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from tailtrim._native import nanoseconds, quantile
from tailtrim.analysis.slo.promises import PROMISES, Promise

#: Times are signed 64-bit integers of ns.
_MOST_NS = 2**63
_FORM = re.compile(
    r"(?P<adjusted>(?:delivery-)?adjusted\s+)?(?P<what>[a-z]+|p?[0-9.]+%?)\s*"
    r"<=?\s*(?P<limit>\S+(?: \S+)?)"
)
_EXPECTED = (
    "expected terms such as 'p99.9 < 50us', 'adjusted p99 < 1ms', 'mean < 20us', 'max < 2ms' or"
    " 'loss < 0.01%', with commas between them, or a promise: " + ", ".join(PROMISES)
)


@dataclass(frozen=True, slots=True)
class Objective:
    """Upper limit of a quantile, the mean, the maximum or the loss.

    ``limit`` is in nanoseconds, for the loss a share of the packets. ``p`` is the quantile as the
    summary writes it, such as ``0.999``.
    """

    text: str
    what: Literal["quantile", "mean", "max", "loss"]
    limit: Fraction
    p: str | None = None
    #: A lost packet counts as infinitely late.
    adjusted: bool = False
    #: The promise that it stands for, if it names one; for a single run the quantile is the same.
    promise: Promise | None = None

    def __str__(self) -> str:
        """Return it as it was written."""
        return self.text


def objectives(text: str) -> list[Objective]:
    """Read objectives, with commas between them.

    Raises:
        ValueError: the text is something else.

    """
    return [_objective(term.strip()) for term in text.split(",")]


def _objective(term: str) -> Objective:
    if promise := PROMISES.get(term):
        p = quantile(str(1 - Decimal(promise.share.numerator) / promise.share.denominator))
        limit_ns = Fraction(promise.deadline_ns)
        return Objective(term, "quantile", limit_ns, p, adjusted=True, promise=promise)
    found = _FORM.fullmatch(term)
    if found is None:
        raise ValueError(f"{term!r} is not an objective, {_EXPECTED}")
    what, adjusted = found["what"], found["adjusted"] is not None
    if what == "loss" and not adjusted:
        return Objective(term, "loss", _share(term, found["limit"]))
    limit_ns = _time_ns(term, found["limit"])
    if what == "mean" and not adjusted:
        return Objective(term, "mean", limit_ns)
    if what == "max" and not adjusted:
        return Objective(term, "max", limit_ns)
    try:
        p = quantile("0.5" if what == "median" else what)
    except ValueError as error:
        raise ValueError(f"{term!r} is not an objective, {_EXPECTED}") from error
    if p == "1":
        raise ValueError(f"{term!r}: the quantile must be below 100 %; the largest is max")
    return Objective(term, "quantile", limit_ns, p, adjusted)


def _time_ns(term: str, text: str) -> Fraction:
    # A number without a unit is not a time.
    limit_ns = nanoseconds(text, 1) if text[-1:].isalpha() else None
    if limit_ns is None:
        raise ValueError(f"{term!r}: the limit {text!r} is not a time such as 50us")
    if not 0 < limit_ns < _MOST_NS:
        raise ValueError(f"{term!r}: the limit {text!r} must be above 0 and less than 292 years")
    return Fraction(limit_ns)


def _share(term: str, text: str) -> Fraction:
    try:
        share = Fraction(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{term!r}: {text!r} is not a share such as 1e-4 or 0.01%") from error
    if not 0 < share <= 1:
        raise ValueError(f"{term!r}: the limit must be above 0 and at most 1")
    return share
