"""Powers and energies with their uncertainties, in the same words for terminal and page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim.compare.energy import ABOVE_READY, LESS, MORE, NOT_KNOWN, NOT_RESOLVED, WHOLE
from tailtrim.report import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.compare import Energy, EnergyRow, Price

HEAD = ("", "A", "B", "B \N{MINUS SIGN} A", "from", "to", "verdict")
VERDICTS = {MORE: "more", LESS: "less", NOT_RESOLVED: "not resolved", NOT_KNOWN: "not known"}
LEGEND = (
    "Above ready and whole are joules a packet, the others watts; ± is the expanded uncertainty"
    " (k = 2, 95 %): blocks, resolution and accuracy of the meter. More and less hold for each line"
    " alone."
)
_KINDS = {ABOVE_READY: "above ready", WHOLE: "whole"}
_PREFIXES = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))


def energy_cells(row: EnergyRow) -> list[str]:
    """Return a row of the table, for terminal and page alike; all of it in one unit."""
    largest = max(abs(one) for one in (row.a_value or 0.0, row.b_value or 0.0))
    size, unit = (1.0, "W") if row.unit == "W" else prefix(largest)
    known = [abs(one) for one in (row.a_expanded, row.b_expanded) if one]
    if row.difference is not None and row.high is not None:
        known.append(row.high - row.difference)
    finest = min(known, default=0.0) / size
    sides = [
        units.NONE if value is None else uncertain(value / size, wide and wide / size)
        for value, wide in ((row.a_value, row.a_expanded), (row.b_value, row.b_expanded))
    ]
    change = [
        units.NONE if value is None else f"{value / size:+,.{digits(finest)}f}"
        for value in (row.difference, row.low, row.high)
    ]
    what = f"{_KINDS.get(row.what, row.what)}, {unit}"
    told = [one.replace("-", "\N{MINUS SIGN}") for one in change]
    return [what, *sides, *told, VERDICTS[row.verdict]]


def energy_notes(energy: Energy) -> Iterator[str]:
    """Return prices of a watt, reasons for missing values, and remarks on meters."""
    for price in energy.prices:
        yield f"{price.node}: {_price(price)}"
    for row in energy.rows:
        if row.why is not None:
            what = _KINDS.get(row.what, row.what)
            yield f"{row.node}, {what}: {VERDICTS[row.verdict]} ({row.why})"
    yield from energy.remarks


def _price(price: Price) -> str:
    if price.us_per_watt is None:
        return f"µs of p99.9 a watt: none, {price.why}"
    if price.low is None or price.high is None:
        interval = ""
    else:
        interval = f" ({price.low:,.3g} to {price.high:,.3g})"
    told = f"{price.us_per_watt:,.3g}{interval} µs of p99.9 a watt"
    return f"{price.watts:+,.3g} W for {price.p999_us:+,.3g} µs of p99.9: {told}".replace(
        "-", "\N{MINUS SIGN}"
    )


def prefix(joules: float) -> tuple[float, str]:
    """Return the unit that fits an energy: how many joules, and its name."""
    return next((one for one in _PREFIXES if abs(joules) >= one[0]), _PREFIXES[-1])


def uncertain(value: float, expanded: float | None) -> str:
    """Return value and uncertainty, both with the first digit of the uncertainty as their last.

    >>> uncertain(45.03, 0.41)
    '45.0 ± 0.4'

    """
    if expanded is None:
        return f"{value:,.1f}"
    if expanded == 0:
        return f"{value:,.3g} ± 0"
    places = digits(expanded)
    return f"{value:,.{places}f} ± {expanded:,.{places}f}"


def digits(expanded: float) -> int:
    """Return how many decimals an uncertainty leaves."""
    return max(-math.floor(math.log10(expanded)), 0) if expanded else 1
