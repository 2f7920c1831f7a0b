"""Bounds of the difference of two nodes' clocks, as ptp4l (PTP) and chronyd (NTP) there tell.

Stamps of the kernel are of CLOCK_REALTIME, stamps of a NIC of its own clock. ptp4l sets the one
with software time stamping and the other with hardware time stamping; between these two, phc2sys
tells its offset to its log only, so it is not known here.

Bounds against the source, of which two nodes add up:

* PTP: offset + mean path delay. The offset is measured as if both ways took the same time. With
  ways of t1 and t2 it is wrong by (t1 - t2) / 2, which is at most the mean (t1 + t2) / 2. Both
  nodes need the same grandmaster. Before ptp4l has measured a delay there is no bound.
* NTP: offset + root dispersion + half of the root delay, as chronyc(1) has it. A chronyd without a
  source, which keeps its own time (``local``), has a bound with its clients only.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.node import Node

#: Stamps of a NIC, which has its own clock.
BY_NIC = "hardware"
#: A shell script that tells what :func:`parsed` reads.
ASK = """
for what in TIME_STATUS_NP CURRENT_DATA_SET PORT_PROPERTIES_NP; do
    pmc -u -b 0 "GET $what" 2>/dev/null
done
echo ---
chronyc -n -c tracking 2>/dev/null
echo ---
for known in ptp4l phc2sys chronyd ntpd systemd-timesyncd; do
    pgrep -x "$known" >/dev/null 2>&1 && echo "$known"
done
echo ---
nsenter --net=/proc/1/ns/net -- ip -oneline address show scope global 2>/dev/null
:
"""
#: Of chronyc -c tracking: reference ID, source, offset, root delay, root dispersion, leap status.
_REFERENCE, _SOURCE, _OFFSET, _DELAY, _DISPERSION, _LEAP = 0, 1, 4, 10, 11, 13
_UNSYNCHRONISED = "Not synchronised"
# The reference ID of a chronyd with ``local`` and without a source: 127.127.1.1.
_OWN_TIME = "7F7F0101"
_ADDRESS = re.compile(r"\binet6? ([0-9a-f.:]+)")


@dataclass(frozen=True, slots=True)
class ClockBound:
    """Largest difference of a clock from its source, in ns, and the name of that source."""

    by: str
    source: str
    ns: int
    #: For PTP: whether it is the clock of a NIC (hardware) or of the kernel (software).
    stamping: str = ""
    #: For a node that keeps its own time: its addresses, which are the source of its clients.
    own: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Discipline:
    """Synchronisation of a node's clocks: programs that run there, and bounds that they tell."""

    programs: tuple[str, ...]
    bounds: tuple[ClockBound, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as the record of a run has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """Bound of the difference of two clocks, in ns; ``None`` if there is none, with the reason."""

    ns: int | None
    why: str


def discipline(node: Node) -> Discipline:
    """Return what keeps the clocks of a node.

    Raises:
        RunError: the node cannot be reached.

    """
    return parsed(node.call("sh", "-c", ASK).stdout)


def parsed(told: str) -> Discipline:
    """Return what pmc, chronyc, the lists of programs and addresses say, between ``---``."""
    ptp, ntp, programs, addresses = ([*told.split("---\n"), "", "", ""])[:4]
    found = (_ptp(ptp), _ntp(ntp, tuple(_ADDRESS.findall(addresses))))
    bounds = [bound for bound in found if bound is not None]
    return Discipline(tuple(programs.split()), tuple(bounds))


def difference(one: Discipline, other: Discipline, stamps: str) -> Difference:
    """Return how far the clocks that stamp on two nodes may be apart.

    Args:
        one: what keeps the clocks of the one.
        other: and of the other.
        stamps: the source of stamps, ``hardware`` or ``kernel``.

    """
    known = []
    for near in one.bounds:
        for far in other.bounds:
            if _is_of(near, stamps) and _is_of(far, stamps) and _have_one_time(near, far):
                named = {side.source for side in (near, far) if side.own is None}
                source = named.pop() if len(named) == 1 else "the time of NTP"
                known.append(Difference(near.ns + far.ns, f"{near.by}, source {source}"))
    if known:
        return min(known, key=lambda found: found.ns or 0)
    clock = "the NICs" if stamps == BY_NIC else "CLOCK_REALTIME"
    runs = " and ".join(", ".join(side.programs) or "nothing" for side in (one, other))
    why = f"no bound for {clock} by ptp4l or chronyd with one time on both; there runs {runs}"
    return Difference(None, why)


def _is_of(bound: ClockBound, stamps: str) -> bool:
    """Whether a bound is of the clock that stamps."""
    hardware = bound.by == "PTP" and bound.stamping != "software"
    return hardware == (stamps == BY_NIC)


def _have_one_time(near: ClockBound, far: ClockBound) -> bool:
    """Whether two bounds are against the same time."""
    if near.by != far.by:
        return False
    if near.by == "PTP":
        return near.source == far.source
    return all(
        one.own is None or other.source in one.own for one, other in ((near, far), (far, near))
    )


def _ptp(told: str) -> ClockBound | None:
    fields = dict(re.findall(r"^\s+(\w+)\s+(\S+)\s*$", told, re.MULTILINE))
    try:
        grandmaster, steps = fields["gmIdentity"], int(fields["stepsRemoved"])
        if steps == 0:
            ns = Decimal()
        elif fields["gmPresent"] == "true" and (delay := Decimal(fields["meanPathDelay"])) > 0:
            ns = abs(Decimal(fields["offsetFromMaster"])) + delay
        else:
            return None
        return ClockBound("PTP", grandmaster, ceil(ns), fields["timestamping"].lower())
    except (KeyError, ValueError, ArithmeticError):
        return None


def _ntp(told: str, addresses: tuple[str, ...]) -> ClockBound | None:
    fields = told.strip().split(",")
    try:
        if fields[_LEAP] == _UNSYNCHRONISED:
            return None
        root_s = Decimal(fields[_DISPERSION]) + Decimal(fields[_DELAY]) / 2
        away_s = abs(Decimal(fields[_OFFSET])) + root_s
        own = addresses if fields[_REFERENCE] == _OWN_TIME else None
        source = "its own time" if own is not None else fields[_SOURCE]
        return ClockBound("NTP", source, ceil(away_s * 1_000_000_000), own=own)
    except (IndexError, ValueError, ArithmeticError):
        return None
