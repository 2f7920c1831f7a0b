"""Causes of late packets: :func:`explain` for a run, :func:`simulate` for a sending schedule.

:func:`worst_packets` explains the worst packets of a run that was kept by minute.

A capture alone shows causes that recur; the counters of interrupts name their vectors, which is
statistics. A trace of the host (``events.jsonl.zst`` in the run directory) names the cause of each
late packet.
"""

from tailtrim.analysis.explain.explanation import (
    Batch,
    Explanation,
    Interval,
    LateRow,
    Limit,
    PeriodicCause,
    PhaseDifference,
    Schedule,
    explain,
)
from tailtrim.analysis.explain.interrupts import InterruptRate, read_interrupts
from tailtrim.analysis.explain.simulation import Interrupt, Simulation, simulate
from tailtrim.analysis.explain.traced import Host
from tailtrim.analysis.explain.worst import WorstPacket, WorstPackets, worst_packets

__all__ = [
    "Batch",
    "Explanation",
    "Host",
    "Interrupt",
    "InterruptRate",
    "Interval",
    "LateRow",
    "Limit",
    "PeriodicCause",
    "PhaseDifference",
    "Schedule",
    "Simulation",
    "WorstPacket",
    "WorstPackets",
    "explain",
    "read_interrupts",
    "simulate",
    "worst_packets",
]
