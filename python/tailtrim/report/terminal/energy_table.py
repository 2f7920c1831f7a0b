"""Energy of packets, as text for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.energy import IDLE, LOADED, READY
from tailtrim.report import units
from tailtrim.report.energy_wording import prefix, uncertain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.energy import Cost, Estimate
    from tailtrim.experiment.costs import ExperimentCosts

_HEAD = ("", "Node", "Blocks", "kpkt/s", "Idle", "Ready", "Loaded", "Above ready", "Whole", "p99.9")
_UNITS = ("", "", "", "", "W", "W", "W", "a packet", "a packet", "µs")


def lines(found: ExperimentCosts) -> Iterator[str]:
    """Yield a table of the configurations, and below it what is missing and why."""
    rows = [_HEAD, _UNITS, *(_row(cost, found.p999_us.get(cost.label)) for cost in found.costs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        yield "  ".join(cells).rstrip()
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

    >>> from tailtrim.energy import Estimate
    >>> joules(Estimate(4.5e-3, 0, 0.5e-4, 3))
    '4.5 ± 0.1 mJ'

    """
    size, unit = prefix(found.value)
    return f"{_pm(found, size)} {unit}"


def _row(cost: Cost, p999_us: float | None) -> Sequence[str]:
    watts = [_watts(cost, state) for state in (IDLE, READY, LOADED)]
    packet = [
        units.NONE if one is None else joules(one) for one in (cost.above_ready_j, cost.whole_j)
    ]
    tail = units.NONE if p999_us is None else f"{p999_us:,.1f}"
    rate = units.rate(cost.packets_per_s)
    return (cost.label, cost.node, units.count(cost.blocks), rate, *watts, *packet, tail)


def _watts(cost: Cost, state: str) -> str:
    if state in cost.uncertain:
        return _pm(cost.uncertain[state])
    return f"{cost.watts[state]:,.1f}" if state in cost.watts else units.NONE


def _pm(found: Estimate, unit: float = 1.0) -> str:
    return uncertain(found.value / unit, found.expanded / unit)
