"""Reasons to doubt a run: a generator, a tap or a clock that was not up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim import units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.laboratory.nodes.node import Clocks
    from tailtrim.laboratory.plan import Limits
    from tailtrim.results import Summary

#: If CLOCK_REALTIME moves against CLOCK_MONOTONIC by more, it was set. A correction of its
#: frequency (NTP) moves both, so they never drift apart (clock_gettime(2)). Its error is the
#: time between two readings: 20 ns on a busy virtual machine, but for an interrupt in between. Gaps
#: of normal threads were 0.1 to 0.6 ms there at most (benchmarks/runs/2026-11-21-epyc-2core-noise).
_STEP_S = 0.0005
#: Counters of a port for frames that its NIC or driver lost. ``dropped`` is not among them: it also
#: counts what no protocol of the kernel wanted, which a tap has seen.
_AT_THE_NIC = ("missed_errors", "over_errors", "fifo_errors", "crc_errors")


def load_doubts(limits: Limits, generator: dict[str, Any], *, logged: bool = True) -> list[str]:
    """Return how the generator missed its schedule, from its result.

    Args:
        limits: those of the plan.
        generator: its result.
        logged: whether each stall was to be known. By minute it is not: there are more in hours.

    """
    doubts = []
    late = {q["p"]: q["value"] for q in generator["lateness_ns"]["quantiles"]}["0.99"]
    if late is not None and late > limits.lateness_p99_us * 1e3:
        doubts.append(f"the generator was late: p99 {units.time(late)}")
    doubts += _stamp_doubts(limits, generator.get("transmit_stamps") or {})
    if missed := generator.get("missed", 0):
        doubts += [f"the kernel dropped {missed:,} packets that were late"]
    if generator["sent"] < limits.sent_share * generator["due"]:
        doubts.append(f"the generator's port refused {generator['refused']:,} packets")
    if logged and (not_kept := generator["stalls"]["not_kept"]):
        doubts.append(f"the generator stood still or was late {not_kept:,} times more than is kept")
    slow = generator["achieved_pps"] < limits.sent_share * generator["intended_pps"]
    if slow and generator["sent"] > 1:
        doubts.append(
            f"the generator sent {generator['achieved_pps']:,.0f} packets/s, not"
            f" {generator['intended_pps']:,.0f}"
        )
    return doubts


def _stamp_doubts(limits: Limits, stamps: dict[str, Any]) -> Iterator[str]:
    """Yield how far departures were from their time by the stamps of sent packets.

    The limit is that of lateness: a gap is off by what its two packets are late.
    """
    for by, name in (("nic", "NIC"), ("kernel", "kernel")):
        if by not in stamps:
            continue
        error = {q["p"]: q["value"] for q in stamps[by]["gap_error_ns"]["quantiles"]}["0.99"]
        if error is not None and error > limits.lateness_p99_us * 1e3:
            yield (
                f"the generator's gaps were off by the {name}'s stamps of sent packets: p99"
                f" {units.time(error)}"
            )


def tap_doubts(capture: dict[str, Any], generator: dict[str, Any], summary: Summary) -> list[str]:
    """Return what the taps missed, from their result, the generator's and the analysis."""
    doubts = []
    for name, tap in capture["taps"].items():
        if tap["dropped"]:
            doubts.append(f"the {name} tap dropped {tap['dropped']:,} frames")
        if tap["unstamped"]:
            doubts.append(f"the {name} tap left {tap['unstamped']:,} frames without a stamp")
    if summary.ingress.packets != generator["sent"]:
        doubts.append(
            f"{generator['sent']:,} packets were sent, {summary.ingress.packets:,} reached the"
            " ingress tap"
        )
    if any(tap["stamps"] != "hardware" for tap in capture["taps"].values()):
        doubts += (
            f"the clock of the taps was set by {units.time(step['by_ns'])}"
            for step in capture.get("clock_steps", ())
        )
    doubts += _port_doubts(capture, summary)
    if summary.samples == 0:
        doubts.append("no packet passed the device under test")
    return doubts


def _port_doubts(capture: dict[str, Any], summary: Summary) -> list[str]:
    """Return the losses at ports, and of packets that a mirror did not copy.

    Packets that the device has sent arrive at the sink, past any mirror. If fewer are at the egress
    tap, the mirror or the way from it lost them; they would be reported as lost by the device.
    """
    ports = capture.get("ports", {})
    doubts = []
    for tap in ("tap_in", "tap_out"):
        lost = {key: count for key, count in ports.get(tap, {}).items() if key in _AT_THE_NIC}
        if any(lost.values()):
            told = ", ".join(f"{count:,} {key}" for key, count in lost.items() if count)
            doubts.append(f"the port of {tap} lost frames: {told}")
    arrived = ports.get("sink", {}).get("packets")
    if arrived is not None and summary.egress.packets < arrived:
        doubts.append(
            f"{arrived:,} packets reached the load generator's sink, {summary.egress.packets:,} the"
            " egress tap: the mirror, or the way to the tap, lost some"
        )
    return doubts


def clock_doubts(before: Clocks, after: Clocks) -> list[str]:
    """Return whether the clock of the stamps stepped between two readings.

    >>> clock_doubts((100.0, 10.0), (105.0, 15.0))
    []
    >>> clock_doubts((100.0, 10.0), (105.25, 15.0))
    ['the clock stepped by 250 ms']
    >>> clock_doubts((100.0, 10.0), (400.003, 310.0))
    ['the clock stepped by 3.00 ms']

    """
    apart = (after[0] - before[0]) - (after[1] - before[1])
    if abs(apart) > _STEP_S:
        return [f"the clock stepped by {units.time(apart * 1e9)}"]
    return []
