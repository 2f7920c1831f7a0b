"""Statements expected by a claim: ``p99.9 < 50us``, ``p99 prints 3.4 us``, ``samples = 289992``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tailtrim.analysis.slo import objectives

if TYPE_CHECKING:
    from tailtrim.analysis.slo import Objective

#: Units of what is printed, in ns; of a loss, in packets.
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_SHARES = {"%": Fraction(1, 100), "": Fraction(1)}

_EXPECTED = (
    "expected such as 'p99.99 < 50us', 'p99.9 = 104.1 us ± 0.1 us', 'p99.9 prints 104.1 us',"
    " 'samples = 289992', 'lost = 0' or 'p99 of A < p99 of B'"
)
_COMPARED = re.compile(r"(?P<a>[^<>=]+?)\s+of\s+A\s*(?P<sign>[<>])\s*(?P<b>.+?)\s+of\s+B")
_COUNTED = re.compile(r"(?P<what>samples|lost)\s*(?P<sign>[<>]=?|=)\s*(?P<count>[0-9][0-9,_]*)")
_NUMBER = r"[0-9]+(?:\.[0-9]+)?\s*(?:[nuµμm]?s|%)?"
_VALUE = re.compile(
    rf"(?P<what>[^<>=]+?)\s*=\s*(?P<value>{_NUMBER})(?:\s*(?:±|\+/?-)\s*(?P<within>{_NUMBER}))?"
)
_PRINTED = re.compile(rf"(?P<what>[^<>=]+?)\s+prints\s+(?P<value>{_NUMBER})")
_BOUND = re.compile(r"(?P<what>[^<>=]+?)\s*(?P<sign>[<>]=?)\s*(?P<limit>.+)")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A quantity is below a limit, or ``above`` it: decided by its interval."""

    objective: Objective
    above: bool


@dataclass(frozen=True, slots=True)
class Near:
    """A quantity is a published number, within so much; in ns, or a share of the packets."""

    objective: Objective
    value: Fraction
    within: Fraction
    #: The number as it was published.
    told: str


@dataclass(frozen=True, slots=True)
class Counted:
    """So many samples, or so many lost packets, in each run."""

    what: str
    sign: str
    count: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """A quantile of the runs A is smaller, or ``larger``, than that of the runs B."""

    objective: Objective
    larger: bool


Statement = Threshold | Near | Counted | Ordered


def statement(text: str) -> Statement:
    """Read what a claim expects.

    Raises:
        ValueError: the text is something else.

    """
    text = text.strip()
    if found := _COMPARED.fullmatch(text):
        return _ordered(found)
    if found := _COUNTED.fullmatch(text):
        count = int(found["count"].replace(",", "").replace("_", ""))
        return Counted(found["what"], found["sign"], count)
    if found := _PRINTED.fullmatch(text):
        value, last = _number(found["what"], found["value"])
        return Near(_quantity(found["what"]), value, last / 2, found["value"])
    if found := _VALUE.fullmatch(text):
        return _near(found)
    if found := _BOUND.fullmatch(text):
        return _bound(found)
    raise ValueError(_EXPECTED)


def _ordered(found: re.Match[str]) -> Ordered:
    a, b = (_quantity(found[side]) for side in "ab")
    if (a.what, a.p, a.adjusted) != (b.what, b.p, b.adjusted):
        raise ValueError("expected the same quantile of A and of B")
    if a.what != "quantile":
        raise ValueError("expected a quantile, such as p99 or median: nothing else is compared")
    return Ordered(a, larger=found["sign"] == ">")


def _near(found: re.Match[str]) -> Near:
    if found["within"] is None:
        raise ValueError(
            f"expected a tolerance, as in '{found[0]} ± 0.1 us', or '{found['what']} prints"
            f" {found['value']}', which compares after rounding"
        )
    value, _ = _number(found["what"], found["value"])
    within, _ = _number(found["what"], found["within"])
    told = f"{found['value']} ± {found['within']}"
    return Near(_quantity(found["what"]), value, within, told)


def _bound(found: re.Match[str]) -> Threshold:
    _quantity(found["what"])
    try:
        # A list of objectives has commas between them: a claim says one thing.
        (objective,) = objectives(f"{found['what']} < {found['limit']}")
    except ValueError as error:
        raise ValueError(f"invalid limit {found['limit']!r}, {_EXPECTED}") from error
    return Threshold(objective, above=found["sign"].startswith(">"))


def _quantity(what: str) -> Objective:
    """Return a quantity, such as ``p99.9``, as an objective, whose limit means nothing."""
    try:
        (objective,) = objectives(f"{what} < 1" if what == "loss" else f"{what} < 1s")
    except ValueError as error:
        raise ValueError(f"unknown quantity {what!r}, {_EXPECTED}") from error
    return objective


def _number(what: str, printed: str) -> tuple[Fraction, Fraction]:
    """Return a number as it is printed, and one of its last digit, in ns or as a share."""
    digits = printed.rstrip("nuµμms%").rstrip()
    unit = printed[len(digits) :].lstrip()
    units = _SHARES if what == "loss" else _UNITS
    if unit not in units:
        expected = "a share such as 0.1 %" if what == "loss" else "a time such as 104.1 us"
        raise ValueError(f"expected {expected}")
    decimals = len(digits.partition(".")[2])
    return Fraction(digits) * units[unit], Fraction(units[unit]) / 10**decimals
