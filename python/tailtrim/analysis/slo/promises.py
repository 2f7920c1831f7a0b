"""Promises of standards and papers, by name: :data:`PROMISES`.

A packet is *bad* if it is lost or later than the deadline. Standards ask for a share of packets
that are not bad (reliability), or for a share of the time in which the service is available. By
3GPP TS 22.261, clause 3.1, a service is unavailable when a message is not received within the
end-to-end latency and the survival time; without a survival time, with every bad packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

_PAPER = "Gallenmüller et al. 2020, 5G QoS: Impact of Security Functions on Latency (NOMS)"
_APERIODIC = "3GPP TS 22.104, clause 5.3, table 5.3-1"
_US, _MS = 10**3, 10**6


@dataclass(frozen=True, slots=True)
class Promise:
    """Promise of a deadline: all packets but ``share`` arrive within ``deadline_ns``.

    With a survival time, a bad packet counts when no good one was sent for so long before it.
    """

    name: str
    deadline_ns: int
    share: Fraction
    #: Document, clause and table.
    source: str
    survival_ns: int = 0


_ALL = (
    Promise("urllc-1ms", _MS, Fraction(1, 10**5), f"{_PAPER}, sections I and V"),
    Promise("urllc-350us", 350 * _US, Fraction(1, 10**5), f"{_PAPER}, section V"),
    Promise(
        "itu-m2410",
        _MS,
        Fraction(1, 10**5),
        "Report ITU-R M.2410-0, clauses 4.7.1 and 4.10 (URLLC)",
    ),
    Promise(
        "ts22261-motion-control", _MS, Fraction(1, 10**6), "3GPP TS 22.261 V17.14.0, annex D.1"
    ),
    Promise(
        "ts22104-motion-control",
        500 * _US,
        Fraction(1, 10**5),
        "3GPP TS 22.104, clause 5.2, table 5.2-1, motion control (A.2.2.1), every 500 µs",
    ),
    Promise(
        "ts22104-link-replacement",
        _MS,
        Fraction(1, 10**6),
        f"{_APERIODIC}, wired-2-wireless link replacement (A.2.2.4)",
    ),
    Promise(
        "ts22104-emergency-stop",
        8 * _MS,
        Fraction(1, 10**8),
        f"{_APERIODIC}, mobile operation panel, emergency stop (A.2.4.1A)",
        survival_ns=16 * _MS,
    ),
    Promise(
        "ts22104-robot-video",
        10 * _MS,
        Fraction(1, 10**6),
        f"{_APERIODIC}, mobile robots, video streaming (A.2.2.3)",
    ),
    Promise(
        "ts22104-control-panel",
        30 * _MS,
        Fraction(1, 10**6),
        f"{_APERIODIC}, mobile control panels (A.2.4.1)",
    ),
    Promise(
        "ts22104-load-control",
        50 * _MS,
        Fraction(1, 10**6),
        f"{_APERIODIC}, smart grid, millisecond level precise load control (A.4.5)",
    ),
    Promise(
        "ts22104-augmented-reality",
        10 * _MS,
        Fraction(1, 10**3),
        f"{_APERIODIC}, augmented reality (A.2.4.2)",
    ),
)
#: By name. Where a standard gives a range of availabilities, it is the lowest.
PROMISES = {promise.name: promise for promise in _ALL}
