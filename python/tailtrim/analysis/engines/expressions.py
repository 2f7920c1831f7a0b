"""The matching as relational expressions, the same for every engine.

Only what is exact everywhere is used: select, filter, inner and left equi-join, group by with
count, minimum, maximum and sum of integers, lag, order by. No engine's quantiles, no division, no
truth values in results (docs/decisions/engines.md).

A signature that entered at most once and left at most once is *plain*: which packet became which is
a matter of the two stamps. All others are *tangled*; their packets, usually few, are handed to the
matcher's own rules in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import ibis

from tailtrim.analysis.decode.dataset import COLUMNS, LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ibis.expr.types as ir

#: Columns that a query finds in ``packet``: those of a folder's name and those of its files.
ASKED = ("capture", "bucket", *COLUMNS)
#: Columns that packets are matched by: none of them has nulls.
PACKET = ibis.schema({name: "int64" for name in ASKED if name not in LABEL})
SECOND_NS = 10**9
MILLISECOND_NS = 10**6
#: Beyond every stamp, and far enough from the ends of 64 bits to be subtracted from.
NEVER_NS = 2**62
#: Values of ``kind``.
TANGLED, MATCHED, BEYOND, APART = range(4)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules by which two packets match: the two captures, and times in ns.

    ``matched_from_ns``, ``beyond_from_ns`` and ``outside_from_ns`` are the least latencies at which
    two packets match, lie beyond the window and have nothing to do with each other, as the ledger
    has them. ``in_order``: both captures are, so that ``order_ns`` is ``stamp_ns``; ``bursts``: the
    ingress capture has some.
    """

    ingress: int
    egress: int
    matched_from_ns: int
    beyond_from_ns: int
    outside_from_ns: int
    shift_ns: int
    memory: int
    in_order: bool
    bursts: bool


@dataclass(frozen=True, slots=True)
class Ends:
    """Limits that are known once all pairs are: stamps in ns, as the ledger has them.

    A packet that entered from ``lost_from_ns`` until ``lost_until_ns`` and did not leave is lost.
    An unmatched packet that left until ``entered_before_until_ns`` may have entered before the
    capture began. Packets stamped until ``trimmed_until_ns`` lie within the trim.
    """

    lost_from_ns: int
    lost_until_ns: int
    entered_before_until_ns: int
    trimmed_until_ns: int


def _number(condition: ir.BooleanValue) -> ir.IntegerValue:
    """Return 1 or 0. Not every engine casts a truth value to 64 bits, but all do to 32."""
    return condition.cast("int32").cast("int64")


def taken(packet: ir.Table, rules: Rules) -> ir.Table:
    """Return the packets of both captures, with ``side`` 1 for those that left."""
    both = packet.filter(packet.capture.isin([rules.ingress, rules.egress]))
    both = both.mutate(side=_number(both.capture == rules.egress))
    if rules.shift_ns == 0:
        return both
    return both.mutate(
        stamp_ns=both.stamp_ns + both.side * rules.shift_ns,
        order_ns=both.order_ns + both.side * rules.shift_ns,
    )


def folded(packet: ir.Table, rules: Rules) -> ir.Table:
    """Return one row a signature: how often it entered and left, and when.

    Where a packet entered once, the maximum over its signature is its value: no join is needed.
    Columns that are known beforehand are not aggregated: that saves a third of the time.
    """
    both = taken(packet, rules)
    entered, left = both.side == 0, both.side == 1
    values = {
        "entered": both.count(where=entered),
        "left": both.count(where=left),
        "in_ns": both.stamp_ns.max(where=entered),
        "in_index": both.packet_index.max(where=entered),
        "out_ns": both.stamp_ns.max(where=left),
        "out_index": both.packet_index.max(where=left),
    }
    if not rules.in_order:
        values["in_order_ns"] = both.order_ns.max(where=entered)
        values["out_order_ns"] = both.order_ns.max(where=left)
    if rules.bursts:
        values["in_position"] = both.burst_position.max(where=entered)
    return both.group_by("signature_high", "signature_low").agg(**values)


def judged(folded: ir.Table, rules: Rules) -> ir.Table:
    """Add the ``kind`` of each signature, and the known columns that :func:`folded` left out.

    Apart from folding, because engines keep what is folded and need not keep this.
    """
    one = folded
    if rules.in_order:
        one = one.mutate(in_order_ns=one.in_ns, out_order_ns=one.out_ns)
    if not rules.bursts:
        one = one.mutate(in_position=one.entered * 0)
    tangled = (one.entered > 1) | (one.left > 1)
    pair = (one.entered == 1) & (one.left == 1)
    latency_ns = one.out_ns - one.in_ns
    matched = pair & (latency_ns >= rules.matched_from_ns) & (latency_ns < rules.beyond_from_ns)
    # A packet that left too late differs from one that never left only if it entered first.
    beyond = (
        pair
        & (one.in_order_ns <= one.out_order_ns)
        & (latency_ns >= rules.beyond_from_ns)
        & (latency_ns < rules.outside_from_ns)
    )
    # Integers, not cases: a literal is not 64-bit everywhere. 1 matched, 2 beyond, 3 apart.
    apart = _number(~matched & ~beyond)
    return one.mutate(kind=_number(~tangled) * (1 + _number(beyond) + 2 * apart))


def pairs(one: ir.Table) -> ir.Table:
    """Return the matched packets of plain signatures in the order in which they were decided."""
    matched = one.filter(one.kind == MATCHED)
    in_first = matched.in_order_ns <= matched.out_order_ns
    return matched.select(
        decided_ns=ibis.greatest(matched.in_order_ns, matched.out_order_ns),
        decided_side=_number(in_first),
        decided_index=ibis.ifelse(in_first, matched.out_index, matched.in_index),
        ingress_ns=matched.in_ns,
        egress_ns=matched.out_ns,
        ingress_index=matched.in_index,
        burst_position=matched.in_position,
    ).order_by("decided_ns", "decided_side", "decided_index")


def rest(one: ir.Table) -> ir.Table:
    """Return the signatures that are not pairs."""
    return one.filter(one.kind != MATCHED)


def repeated(one: ir.Table) -> ir.Table:
    """Return the signatures that are tangled."""
    return one.filter(one.kind == TANGLED).select("signature_high", "signature_low")


def unpaired(one: ir.Table) -> ir.Table:
    """Return the plain signatures without a pair."""
    return one.filter((one.kind == BEYOND) | (one.kind == APART))


def carriers(packet: ir.Table, keys: ir.Table, rules: Rules) -> ir.Table:
    """Return the packets of tangled signatures, and the place at which each is forgotten."""
    packets = taken(packet, rules).join(keys, ["signature_high", "signature_low"])
    # Of what left nothing is forgotten: it finds no such packet.
    return packets.select(
        "signature_high",
        "signature_low",
        "order_ns",
        "side",
        "packet_index",
        "stamp_ns",
        "burst_position",
        forgotten_at=packets.packet_index + rules.memory - packets.side * NEVER_NS,
    )


def forgetting(packet: ir.Table, carrying: ir.Table, rules: Rules) -> ir.Table:
    """Return the ingress packets at which packets of tangled signatures are forgotten."""
    entered = packet.filter(packet.capture == rules.ingress)
    places = carrying.select("forgotten_at").distinct()
    found = entered.join(places, entered.packet_index == places.forgotten_at)
    return found.select("forgotten_at", later_ns=found.order_ns)


def tangled(carrying: ir.Table, later: ir.Table) -> ir.Table:
    """Return the packets of tangled signatures, by signature and in their order.

    ``forgotten_ns`` is the running maximum at the ingress packet that comes ``rules.memory`` later.
    """
    joined = carrying.left_join(later, "forgotten_at")
    return joined.select(
        "signature_high",
        "signature_low",
        "order_ns",
        "side",
        "packet_index",
        "stamp_ns",
        "burst_position",
        forgotten_ns=joined.later_ns.fill_null(NEVER_NS),
    ).order_by("signature_high", "signature_low", "order_ns", "side", "packet_index")


def outcomes(one: ir.Table, ends: Ends, origin_ns: int) -> ir.Table:
    """Count what became of packets of plain signatures that were not matched.

    ``ingress`` is 1 lost, 2 in flight at an end of the capture, 3 beyond the window; ``egress`` 1
    unmatched, 2 possibly entered before the capture; 0 nothing. ``millisecond_ns`` is the start of
    the millisecond in which an undelivered packet entered, since the origin.
    """
    apart = unpaired(one)
    is_open = (apart.kind == APART) & (apart.entered == 1)
    lost = is_open & apart.in_ns.between(ends.lost_from_ns, ends.lost_until_ns)
    beyond = apart.kind == BEYOND
    unmatched = apart.left == 1
    before = unmatched & (apart.out_ns <= ends.entered_before_until_ns)
    until_ns = ends.trimmed_until_ns
    fates = apart.select(
        ingress=_number(lost) + 2 * _number(is_open & ~lost) + 3 * _number(beyond),
        ingress_trimmed=_number((is_open | beyond) & (apart.in_ns <= until_ns)),
        millisecond_ns=ibis.ifelse(
            lost | beyond, start_ns(apart.in_ns, origin_ns, MILLISECOND_NS), apart.entered * 0
        ),
        egress=_number(unmatched) + _number(before),
        egress_trimmed=_number(unmatched & (apart.out_ns <= until_ns)),
    )
    return fates.group_by(
        "ingress", "ingress_trimmed", "millisecond_ns", "egress", "egress_trimmed"
    ).agg(packets=fates.count())


def start_ns(stamp_ns: ir.IntegerValue, origin_ns: int, step_ns: int) -> ir.IntegerValue:
    """Return the start of a stamp's step since the origin: downwards, also before it."""
    since_ns = stamp_ns - origin_ns
    return since_ns - (since_ns % step_ns + step_ns) % step_ns


def gaps_in_order(packet: ir.Table, capture: int, shift_ns: int, after_ns: int) -> ir.Table:
    """Count the gaps of a capture that is in order: each packet brings its own."""
    one = packet.filter((packet.capture == capture) & (packet.packet_index > 0))
    counting = one.filter(one.stamp_ns + shift_ns - one.gap_ns > after_ns)
    return counting.group_by("gap_ns").agg(packets=counting.count())


def gaps_within(packet: ir.Table, capture: int, shift_ns: int, after_ns: int) -> ir.Table:
    """Count the gaps between successive stamps within one second of the clock.

    By second, so that each can be sorted on its own; :func:`ends` has what lies between.
    """
    placed = packet.filter((packet.capture == capture) & (packet.misplaced == 0))
    stamps = placed.select(stamp_ns=placed.stamp_ns + shift_ns)
    stamps = stamps.mutate(part=stamps.stamp_ns - stamps.stamp_ns % SECOND_NS)
    ordered = stamps.mutate(
        before_ns=stamps.stamp_ns.lag().over(group_by=stamps.part, order_by=stamps.stamp_ns)
    )
    counting = ordered.filter(ordered.before_ns.notnull() & (ordered.before_ns > after_ns))
    gap = counting.select(gap_ns=counting.stamp_ns - counting.before_ns)
    return gap.group_by("gap_ns").agg(packets=gap.count())


def ends(packet: ir.Table, capture: int, shift_ns: int) -> ir.Table:
    """Return the first and last stamp of each second of the clock, ascending."""
    placed = packet.filter((packet.capture == capture) & (packet.misplaced == 0))
    stamps = placed.select(stamp_ns=placed.stamp_ns + shift_ns)
    stamps = stamps.mutate(part=stamps.stamp_ns - stamps.stamp_ns % SECOND_NS)
    return (
        stamps.group_by("part")
        .agg(first_ns=stamps.stamp_ns.min(), last_ns=stamps.stamp_ns.max())
        .order_by("part")
    )


def loads(packet: ir.Table, capture: int, shift_ns: int, origin_ns: int) -> ir.Table:
    """Count packets and bytes by second."""
    one = packet.filter(packet.capture == capture)
    timed = one.select(
        second_ns=start_ns(one.stamp_ns + shift_ns, origin_ns, SECOND_NS), length=one.length
    )
    return timed.group_by("second_ns").agg(
        packets=timed.count(),
        # A sum of 64-bit integers is wider in some engines.
        bytes=timed.length.sum().cast("decimal(38,0)").cast("int64"),
    )


def signatures(packet: ir.Table, capture: int, indices: Sequence[int]) -> ir.Table:
    """Return the signatures of these packets."""
    chosen = packet.filter((packet.capture == capture) & packet.packet_index.isin(list(indices)))
    return chosen.select("packet_index", "signature_high", "signature_low")
