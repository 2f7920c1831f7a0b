"""Clocks with too few phases met by the packets of a plan: :func:`uncovered`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import _native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.plan.model import Run
    from tailtrim.laboratory.plan.traffic import Traffic

#: Clocks of two hosts are taken to differ by 0.3 ppm at least: the closest of published captures.
_DRIFT_PPB = 300
_NS_PER_S = 1_000_000_000


def uncovered(traffic: Traffic) -> list[tuple[int, float]]:
    """Return clocks in Hz with too few phases met, and the share that would be met.

    A replay is not predicted.
    """
    if traffic.schedule.brings_rate:
        return []
    rate = traffic.rate if traffic.rate is not None else f"{traffic.rate_pps}pps"
    return _native.phases_covered(
        schedule=str(traffic.schedule),
        rate=str(rate),
        frame_bytes=str(traffic.frame_bytes),
        run_ns=round(traffic.duration_s * _NS_PER_S),
        seed=traffic.seed,
        drift_ppb=_DRIFT_PPB,
    )


def notes(runs: Sequence[Run]) -> list[str]:
    """Return a sentence for each schedule of some runs that does not cover all clocks."""
    seen: dict[tuple[str, str, float], Traffic] = {}
    for run in runs:
        one = run.traffic
        rate = str(one.rate) if one.rate is not None else f"{one.rate_pps or 0:,} packets/s"
        seen.setdefault((str(one.schedule), rate, one.duration_s), one)
    told = []
    for (schedule, rate, duration_s), traffic in seen.items():
        clocks = uncovered(traffic)
        if clocks:
            listed = ", ".join(f"{100 * share:.0f} % of {hz} Hz" for hz, share in clocks)
            told.append(
                f"schedule {schedule} at {rate} for {duration_s:g} s meets few phases of some"
                f" clocks ({listed}); schedule golden meets them evenly"
            )
    return told
