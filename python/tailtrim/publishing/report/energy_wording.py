"""Powers and energies with their uncertainties, in the same words for terminal and page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.compare.energy import ABOVE_READY, WHOLE
from tailtrim.analysis.energy import IDLE, LOADED, READY
from tailtrim.publishing.report.table import Cell, Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.compare import Energy, EnergyRow, Price
    from tailtrim.analysis.energy import Cost, Estimate
    from tailtrim.laboratory.experiment.costs import ExperimentCosts

_COLUMNS = (
    Column("", kind="left"),
    *map(Column, ("A", "B", "B \N{MINUS SIGN} A", "from", "to")),
    Column("verdict", "Verdict", kind="left"),
)
_COSTS = (
    Column("", kind="left"),
    *map(Column, ("Node", "Blocks", "kpkt/s", "Idle\nW", "Ready\nW", "Loaded\nW")),
    *map(Column, ("Above ready\na packet", "Whole\na packet", "p99.9\nµs")),
)
LEGEND = (
    "Above ready and whole are joules a packet, the others watts; ± is the expanded uncertainty"
    " (k = 2, 95 %): blocks, resolution and accuracy of the meter. Better (less) and worse (more)"
    " hold for each line alone."
)
_KINDS = {ABOVE_READY: "above ready", WHOLE: "whole"}
_PREFIXES = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))


def tables(energy: Energy) -> list[tuple[str, Table]]:
    """Return a table of each node."""
    return [
        (node, Table(_COLUMNS, [_row(row) for row in energy.rows if row.node == node]))
        for node in dict.fromkeys(row.node for row in energy.rows)
    ]


def _row(row: EnergyRow) -> Row:
    """Return a row, all of it in one unit."""
    largest = max(abs(one) for one in (row.a_value or 0.0, row.b_value or 0.0))
    size, unit = (1.0, "W") if row.unit == "W" else _prefix(largest)
    known = [abs(one) for one in (row.a_expanded, row.b_expanded) if one]
    if row.difference is not None and row.high is not None:
        known.append(row.high - row.difference)
    finest = min(known, default=0.0) / size
    sides = [
        units.NONE if value is None else uncertain(value / size, wide and wide / size)
        for value, wide in ((row.a_value, row.a_expanded), (row.b_value, row.b_expanded))
    ]
    change = [
        units.NONE if value is None else f"{value / size:+,.{_digits(finest)}f}"
        for value in (row.difference, row.low, row.high)
    ]
    what = f"{_KINDS.get(row.what, row.what)}, {unit}"
    told = [one.replace("-", "\N{MINUS SIGN}") for one in change]
    return Row(what, [*sides, *told, Cell(row.told("blocks"), kind=row.kind)])


def energy_notes(energy: Energy) -> Iterator[str]:
    """Return prices of a watt, reasons for missing values, and remarks on meters."""
    for price in energy.prices:
        yield f"{price.node}: {_price(price)}"
    for row in energy.rows:
        if row.why is not None:
            what = _KINDS.get(row.what, row.what)
            yield f"{row.node}, {what}: {row.told('blocks')} ({row.why})"
    yield from energy.remarks


def lines(found: ExperimentCosts) -> Iterator[str]:
    """Yield a table of the configurations of an experiment, what is missing, and why."""
    rows = [_costs(cost, found.p999_us.get(cost.label)) for cost in found.costs]
    yield from Table(_COSTS, rows).lines()
    yield "±: expanded uncertainty, k = 2 (95 %): blocks, resolution and accuracy of the meter."
    for cost in found.costs:
        for what, why in cost.refused.items():
            named = "above ready" if what.startswith("above") else "whole"
            yield f"{cost.label} ({cost.node}), {named}: {why}"
    for trade in found.trades:
        if trade.us_per_watt is None:
            told = f"{_pm(trade.watts)} W, which is not resolved"
        else:
            shorter = f"{trade.us_per_watt:,.3g} µs of p99.9 a watt"
            told = f"{_pm(trade.watts)} W for {trade.p999_us:+,.1f} µs of p99.9: {shorter}"
        yield f"{trade.label} against {trade.baseline} ({trade.node}): {told}"
    yield from dict.fromkeys(
        f"{cost.node}: {remark}" for cost in found.costs for remark in cost.remarks
    )
    for left_out in found.left_out:
        yield f"left out: {left_out}"


def joules(found: Estimate) -> str:
    """Return an energy with its uncertainty, in the unit that fits.

    >>> from tailtrim.analysis.energy import Estimate
    >>> joules(Estimate(4.5e-3, 0, 0.5e-4, 3))
    '4.5 ± 0.1 mJ'

    """
    size, unit = _prefix(found.value)
    return f"{_pm(found, size)} {unit}"


def _costs(cost: Cost, p999_us: float | None) -> Row:
    watts = [_watts(cost, state) for state in (IDLE, READY, LOADED)]
    packet = [
        units.NONE if one is None else joules(one) for one in (cost.above_ready_j, cost.whole_j)
    ]
    tail = units.NONE if p999_us is None else f"{p999_us:,.1f}"
    rate = units.rate(cost.packets_per_s)
    return Row(cost.label, [cost.node, units.count(cost.blocks), rate, *watts, *packet, tail])


def _watts(cost: Cost, state: str) -> str:
    if state in cost.uncertain:
        return _pm(cost.uncertain[state])
    return f"{cost.watts[state]:,.1f}" if state in cost.watts else units.NONE


def _pm(found: Estimate, unit: float = 1.0) -> str:
    return uncertain(found.value / unit, found.expanded / unit)


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


def _prefix(joules: float) -> tuple[float, str]:
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
    places = _digits(expanded)
    return f"{value:,.{places}f} ± {expanded:,.{places}f}"


def _digits(expanded: float) -> int:
    """Return how many decimals an uncertainty leaves."""
    return max(-math.floor(math.log10(expanded)), 0) if expanded else 1
