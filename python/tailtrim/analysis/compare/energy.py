"""Power and energy of both sides of a comparison, and µs gained for a watt: :func:`energy_of`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tailtrim.analysis.energy import IDLE, LOADED, READY, costs, measured
from tailtrim.verdict import BETTER, NO_DIFFERENCE, TELLING, WORSE, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.compare.sources import Group
    from tailtrim.analysis.energy import Cost, Estimate

ABOVE_READY, WHOLE = "above_ready", "whole"
#: The quantile whose price in watts is told.
P = "0.999"


@dataclass(frozen=True, slots=True)
class EnergyRow(Verdict):
    """A power, or an energy a packet, of both sides: ``what`` is a state, or a kind of energy.

    Both values have expanded uncertainties (k = 2); ``difference`` is B - A with its own interval,
    ``low`` to ``high``. More is worse, and less is better, where 0 lies outside of it. Otherwise
    ``why`` says what would resolve the difference, or what is not known; ``needed`` are blocks.
    """

    node: str
    what: str
    unit: str
    a_value: float | None
    a_expanded: float | None
    b_value: float | None
    b_expanded: float | None
    difference: float | None
    low: float | None
    high: float | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Price:
    """By how many µs p99.9 is shorter for each watt more, with the interval.

    ``us_per_watt`` is ``None`` where power or p99.9 do not differ beyond doubt, or where one side
    is better in both: ``why`` says which.
    """

    node: str
    watts: float | None
    p999_us: float | None
    us_per_watt: float | None
    low: float | None
    high: float | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Tail:
    """p99.9 of both sides in ns, B / A with its interval, and whether they differ beyond doubt."""

    a_ns: int | None
    b_ns: int | None
    low: float | None
    high: float | None
    differ: bool


@dataclass(frozen=True, slots=True)
class Energy:
    """Comparison of the meters of both sides, node by node; empty without meters on both."""

    rows: tuple[EnergyRow, ...] = ()
    prices: tuple[Price, ...] = ()
    remarks: tuple[str, ...] = ()


def energy_of(a: Group, b: Group, tail: Tail | None) -> Energy:
    """Compare the energy of the nodes with a meter: watts by state, and joules a packet.

    Args:
        a: the baseline. Its runs are the blocks of the estimates.
        b: the other side.
        tail: p99.9 of both.

    Raises:
        RunDirectoryError: the record of a meter cannot be read.

    """
    sides = [_costs(group) for group in (a, b)]
    if not any(sides):
        return Energy()
    rows: list[EnergyRow] = []
    prices: list[Price] = []
    remarks: dict[str, None] = {}
    for node in dict.fromkeys([*sides[0], *sides[1]]):
        one, two = (side.get(node) for side in sides)
        if one is None or two is None:
            name = "A" if one is None else "B"
            remarks[f"{node}: {name} has no meter there, so that energy is not compared"] = None
            continue
        rows.extend(_rows(one, two))
        prices.append(_price(one, two, tail))
        if one.meter != two.meter:
            remarks[f"{node}: A was measured by {one.meter}, B by {two.meter}"] = None
        remarks.update({f"{node}: {told}": None for told in (*one.remarks, *two.remarks)})
    return Energy(tuple(rows), tuple(prices), tuple(remarks))


def _costs(group: Group) -> dict[str, Cost]:
    """Return what each metered node took; of parts of runs, nothing is known."""
    paths = [run.path for run in group.repetitions if run.part is None]
    found = [measured.read(path) for path in paths if path is not None]
    return {cost.node: cost for cost in costs(("", one) for one in found if one is not None)}


def _rows(a: Cost, b: Cost) -> Iterator[EnergyRow]:
    for state in (IDLE, READY, LOADED):
        if state in a.watts or state in b.watts:
            sides = [cost.uncertain.get(state) for cost in (a, b)]
            values = [cost.watts.get(state) for cost in (a, b)]
            why = [_blocks(cost, state) for cost in (a, b)]
            yield _row((a.node, state, "W"), sides, values, why)
    for what, key in ((ABOVE_READY, "above_ready_j_per_packet"), (WHOLE, "whole_j_per_packet")):
        sides = [cost.above_ready_j if what == ABOVE_READY else cost.whole_j for cost in (a, b)]
        values = [None if one is None else one.value for one in sides]
        refused = [cost.refused.get(key) for cost in (a, b)]
        yield _row((a.node, what, "J"), sides, values, refused)


def _blocks(cost: Cost, state: str) -> str | None:
    if state in cost.uncertain:
        return None
    known = f"{cost.blocks} block{'s' * (cost.blocks != 1)}, expected 2 or more: raise repeat"
    return known if state in cost.watts else "was not measured"


def _row(
    of: tuple[str, str, str],
    sides: Sequence[Estimate | None],
    values: Sequence[float | None],
    refused: Sequence[str | None],
) -> EnergyRow:
    a, b = sides
    wide = [None if one is None else one.expanded for one in sides]
    shown = values[0], wide[0], values[1], wide[1]
    if a is None or b is None:
        reasons = [f"{name}: {why}" for name, why in zip("AB", refused, strict=True) if why]
        return EnergyRow(*of, *shown, None, None, None, "; ".join(reasons))
    more = b.minus(a)
    interval = more.value - more.expanded, more.value + more.expanded
    if abs(more.value) > more.expanded:
        verdict = WORSE if more.value > 0 else BETTER
        return EnergyRow(*of, *shown, more.value, *interval, None, verdict=verdict)
    why = _unresolved(more, of[2])
    beyond = (abs(more.value) + more.expanded) / abs(a.value) if a.value else math.inf
    if beyond <= TELLING:
        told = Verdict(verdict=NO_DIFFERENCE, beyond=beyond)
    else:
        told = Verdict(needed=more.blocks_for(abs(more.value)))
    return EnergyRow(*of, *shown, more.value, *interval, why, **asdict(told))


def _unresolved(more: Estimate, unit: str) -> str:
    blocks = more.blocks_for(abs(more.value))
    if blocks is not None:
        return f"about {blocks:,} blocks a side would resolve it (repeat: {blocks})"
    limit = 2 * more.type_b
    if abs(more.value) <= limit:
        return f"no number of blocks would resolve it: the meters leave ± {limit:.2g} {unit}"
    return "more blocks than can be measured would resolve it"


def _price(a: Cost, b: Cost, tail: Tail | None) -> Price:
    one, two = a.uncertain.get(LOADED), b.uncertain.get(LOADED)
    more = two.minus(one) if one is not None and two is not None else None
    longer_us = None
    if tail is not None and tail.a_ns is not None and tail.b_ns is not None:
        longer_us = (tail.b_ns - tail.a_ns) / 1e3
    told = a.node, None if more is None else more.value, longer_us
    why = _no_price(more, longer_us, differ=tail is not None and tail.differ)
    if why is not None or more is None or tail is None or longer_us is None:
        return Price(*told, None, None, None, why)
    low, high = _quotient(tail, more)
    return Price(*told, -longer_us / more.value, low, high, None)


def _no_price(more: Estimate | None, longer_us: float | None, *, differ: bool) -> str | None:
    """Say why a watt has no price; ``None`` where it has one."""
    if more is None or longer_us is None:
        unknown = "p99.9" if more is not None else "the power of two blocks a side or more"
        return f"{unknown} is not known"
    if not differ:
        return "no difference of p99.9 is shown"
    if abs(more.value) <= more.expanded:
        return "the difference of the powers is below what is resolved"
    if (more.value > 0) == (longer_us > 0):
        which = "more power and is slower" if longer_us > 0 else "less power and is faster"
        return f"B takes {which}: nothing is traded"
    return None


def _quotient(tail: Tail, more: Estimate) -> tuple[float | None, float | None]:
    """Return the interval of µs a watt, from those of p99.9 and of the power.

    Neither contains 0. Half widths of the logarithms add in squares, each side for itself (Zou and
    Donner, "Construction of confidence limits about effect measures", 2008).
    """
    if tail.a_ns is None or tail.b_ns is None or tail.low is None or tail.high is None:
        return None, None
    us = abs(tail.b_ns - tail.a_ns) / 1e3
    edges = sorted(abs(edge - 1) * tail.a_ns / 1e3 for edge in (tail.low, tail.high))
    watts = abs(more.value)
    down = math.hypot(math.log(us / edges[0]), math.log(1 + more.expanded / watts))
    up = math.hypot(math.log(edges[1] / us), math.log(1 - more.expanded / watts))
    return us / watts * math.exp(-down), us / watts * math.exp(up)
