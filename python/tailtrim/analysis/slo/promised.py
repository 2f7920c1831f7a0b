"""Check of a promise against the runs of a report, as far as all their packets can tell."""

from __future__ import annotations

import json
from math import floor, log
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.analysis.slo.bad_packets import bad_packets
from tailtrim.analysis.slo.verdict import Decision, Verdict
from tailtrim.errors import RunDirectoryError
from tailtrim.student_t import critical

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tailtrim.analysis.slo.bad_packets import BadPackets
    from tailtrim.analysis.slo.objective import Objective
    from tailtrim.analysis.slo.promises import Promise
    from tailtrim.analysis.slo.verdict import JudgedRun

#: As often, the packets that are said to be needed are enough; that of ``plan-length``.
_ASSURANCE = "0.8"
_DECISIONS = {
    "met": Decision.PASSED,
    "not met": Decision.FAILED,
    "not decided": Decision.UNDECIDED,
}
#: Clusters are at most so long on average with this confidence: few of them may be short by chance.
_CLUSTERS = "0.8"


def promised(
    measured: Iterable[JudgedRun], asked: Iterable[Objective]
) -> list[tuple[str, list[Verdict]]]:
    """Return verdicts on the promises among the objectives, by group of runs.

    The packets of all runs of a group count together. Bounds are exact for the effective number of
    packets, one-sided: each wrong decision has a probability of at most 1 - confidence.
    """
    promises = [one for one in asked if one.promise is not None]
    groups: dict[str, list[JudgedRun]] = {}
    for one in measured if promises else ():
        groups.setdefault(one.group, []).append(one)
    return [
        (group, [_verdict(runs, objective) for objective in promises])
        for group, runs in groups.items()
    ]


def _verdict(runs: Sequence[JudgedRun], objective: Objective) -> Verdict:
    promise = objective.promise
    assert promise is not None  # noqa: S101 - selected by the caller
    valid = [one for one in runs if not one.invalid]
    if not valid:
        return _unknown(objective, "all runs are invalid")
    try:
        found = [bad_packets(one, promise) for one in valid]
    except (RunDirectoryError, ValueError) as error:
        return _unknown(objective, f"when each packet was sent is not known ({error})")
    packets = sum(one.packets for one in found)
    if not packets:
        return _unknown(objective, "no packet has a known outcome")
    counted = sum(one.counted for one in found)
    confidence = min((one.summary.latency_ns.confidence for one in valid), key=float)
    effect = _effect(found, float(confidence))
    # Duplicates are in no latency: all of them may be good, and all may be bad.
    duplicates = sum(one.summary.ingress.duplicate for one in valid)
    known, worst = (
        json.loads(
            _native.promised(
                bad=bad,
                packets=packets + duplicates,
                design_effect=effect,
                limit=float(promise.share),
                confidence=confidence,
                assurance=_ASSURANCE,
            )
        )
        for bad in (counted, counted + duplicates)
    )
    why = _told(promise, found, effect) + _bound(known, promise, confidence)
    if duplicates:
        why += f"; {duplicates:,} duplicates are in no latency, and may be bad"
    agreed = known["promise"] == worst["promise"]
    if known["promise"] == "met" and not counted:
        why += _clusters_met(packets * float(promise.share), float(confidence))
    if known["more"] is not None:
        rate = valid[0].summary.rate_pps
        seconds = f" ({known['more'] / rate:,.1f} s)" if rate else ""
        why += f"; {known['more']:,} more packets{seconds} would decide in 80 % of cases"
        why += " at this share"
    if len(valid) > 1:
        why += f"; {len(valid)} runs"
    if len(valid) < len(runs):
        why += f"; {len(runs) - len(valid)} invalid runs left out"
    return Verdict(
        objective,
        _DECISIONS[known["promise"]] if agreed else Decision.UNDECIDED,
        counted / packets,
        known["low"],
        worst["high"],
        f"{why}. Source: {promise.source}",
    )


def _unknown(objective: Objective, why: str) -> Verdict:
    return Verdict(objective, Decision.UNDECIDED, None, None, None, why)


def _effect(found: Sequence[BadPackets], confidence: float) -> float:
    """Return the design effect of all packets together.

    It is the largest of three: that of the blocks, that of the clusters, and with several runs that
    of the runs, as much larger as Student's t is than a normal deviate.
    """
    packets = sum(one.packets for one in found)
    effect = sum(one.effect * one.packets for one in found) / packets
    effect = max(effect, _of_clusters(found))
    share = sum(one.counted for one in found) / packets
    free = len([one for one in found if one.packets]) - 1
    if free < 1 or not share:
        return effect
    squares = sum(
        (one.counted - share * one.packets) ** 2 / (share * one.packets)
        for one in found
        if one.packets
    )
    wider = 1.0
    if 0.5 < confidence < 1:  # noqa: PLR2004 - the deviate is positive
        wider = critical(free, 2 * confidence - 1) / NormalDist().inv_cdf(confidence)
    return max(effect, squares / free * wider**2)


def _clusters_met(expected: float, confidence: float) -> str:
    """Say how large clusters may be where none was met, though so many bad packets are allowed.

    Half of the error is left to the runs that meet few clusters, and short ones.
    """
    largest = floor(expected / -log((1 - confidence) / 2))
    if largest <= 1:
        return ", if bad packets come one by one"
    return f", if no more than {largest:,} bad packets come together on average"


def _of_clusters(found: Sequence[BadPackets]) -> float:
    """Return the design effect of clusters of bad packets.

    Clusters of s packets have the effect Σ s² / Σ s. Where each one may be the last of its cluster
    with the same probability, sizes are geometric, and it is 2 m - 1 for a mean of m. Of S bad
    packets, k begin a cluster: m is at most the inverse of the exact lower bound of that share.
    """
    bad, clusters = (sum(getattr(one, name) for one in found) for name in ("counted", "clusters"))
    if not bad:
        return 1.0
    begin: float = json.loads(
        _native.promised(
            bad=clusters,
            packets=bad,
            design_effect=1.0,
            limit=0.5,
            confidence=_CLUSTERS,
            assurance=_ASSURANCE,
        )
    )["low"]
    seen: float = sum(one.squares for one in found) / bad
    return max(seen, 2 / begin - 1)


def _told(promise: Promise, found: Sequence[BadPackets], effect: float) -> str:
    packets, lost, late = (
        sum(getattr(one, name) for one in found) for name in ("packets", "lost", "late")
    )
    text = (
        f"{lost + late:,} of {packets:,} packets lost ({lost:,}) or later than"
        f" {_time(promise.deadline_ns)} ({late:,})"
    )
    if effect > 1:
        text += f", worth {packets / effect:,.0f} independent packets"
    if longest := max(one.longest for one in found):
        longest_ns = max(one.longest_ns for one in found)
        text += f", at most {longest:,} successive ones ({_time(longest_ns)})"
    if promise.survival_ns:
        counted = sum(one.counted for one in found)
        text += (
            f", {counted:,} beyond the survival time of {_time(promise.survival_ns)}, availability"
            f" {100 * (1 - counted / packets):.8g} %"
        )
    return text


def _bound(known: dict[str, Any], promise: Promise, confidence: str) -> str:
    share = f"{float(confidence) * 100:g} % confidence; the limit is {float(promise.share):g}"
    if known["promise"] == "not met":
        return f": a share of {known['low']:.2g} or more with {share}"
    return f": a share of {known['high']:.2g} or less with {share}"


def _time(time_ns: int) -> str:
    for unit_ns, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "µs")):
        if time_ns >= unit_ns:
            return f"{time_ns / unit_ns:.4g} {unit}"
    return f"{time_ns} ns"
