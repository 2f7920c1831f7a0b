"""Conversion of a run of an experiment to a trial of a search."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim import units
from tailtrim.analysis.compare import plan_length
from tailtrim.errors import RunDirectoryError, TailtrimError
from tailtrim.laboratory.capacity.lateness import beyond, late_packets, late_spans
from tailtrim.laboratory.capacity.trial import LOST, Count, TrialResult
from tailtrim.laboratory.experiment.validity import load_doubts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.laboratory.capacity.lateness import LateSpan
    from tailtrim.laboratory.capacity.promise import Condition
    from tailtrim.laboratory.capacity.trial import Trial
    from tailtrim.laboratory.plan import Limits
    from tailtrim.results import RunDirectory
    from tailtrim.results.experiments import Outcome

#: With fewer packets beyond the deadline nothing is known of how they cluster: as many as
#: :func:`.plan_length` needs.
_TELLING = 10
#: Of such a share of the packets it has to be known whether they were good. The others are taken to
#: be as these: were none of them bad, a share of bad packets would be a tenth smaller at most.
_KNOWN = 0.9
#: One loss in so small a part of a trial is at its start by chance in one of ten trials, in both of
#: two in one of a hundred.
_DEAF_SHARE = 0.1


def trial_result(  # noqa: PLR0913 - what a run has
    trial: Trial,
    took_s: float,
    outcome: Outcome,
    run: RunDirectory | None,
    conditions: Sequence[Condition],
    *,
    limits: Limits,
) -> TrialResult:
    """Return what a trial showed.

    Args:
        trial: the trial that was asked for.
        took_s: how long it took with all around it.
        outcome: outcome of its run.
        run: its run directory, if it has one.
        conditions: conditions that packets have to meet, in addition to loss.
        limits: those of the plan. Its generator may be late by more: packets that may be good or
            bad because of that count for neither side.

    Raises:
        RunDirectoryError: the run directory is damaged.

    """
    if run is None:
        return TrialResult(trial, took_s, invalid=outcome.failed or outcome.skipped or "no result")
    generator = run.generator()
    spans = late_spans(run)
    # Where it is not known which packets were late, a late generator makes the trial invalid.
    lateness = _lateness(limits, generator) if spans is not None else set()
    invalid = "; ".join(doubt for doubt in outcome.invalid if doubt not in lateness) or None
    unsent, share = _unsent(generator)
    lost = run.summary.ingress.lost + run.summary.ingress.beyond_window + unsent
    packets = run.summary.ingress.matched + lost
    spans = spans or []
    pps = packets / trial.duration_s
    perhaps = min(lost, late_packets(spans, pps, beyond_ns=limits.lateness_p99_us * 1e3))
    counts = {LOST: Count(lost - perhaps, packets, unknown=perhaps)}
    for one in conditions:
        late, unknown = _late(run, one, spans)
        effect = _design_effect(run, one, late)
        counts[one.text] = Count(lost - perhaps + late, packets, effect, perhaps + unknown)
    if invalid is None and any(one.known < _KNOWN * one.packets for one in counts.values()):
        most = max(one.unknown / one.packets for one in counts.values())
        invalid = f"the generator was late: of {100 * most:.0f} % of the packets nothing is known"
    cold = any(one.code == "lost_at_start" for one in run.summary.warnings) or _deaf(run)
    median_ns = next(
        (one.value for one in run.summary.latency_ns.quantiles if one.p == "0.5"), None
    )
    return TrialResult(trial, took_s, counts, invalid, share, _own_pps(run), cold, median_ns)


def _lateness(limits: Limits, generator: dict[str, Any]) -> set[str]:
    """Return what is said against a run only because its generator was late for a while."""
    if "streams" in generator:
        return set()
    lenient = limits.model_copy(update={"lateness_p99_us": math.inf})
    return {*load_doubts(limits, generator)} - {*load_doubts(lenient, generator)}


def _deaf(run: RunDirectory) -> bool:
    """Whether all packets at the start were lost, for a tenth of the trial at most, and no others.

    A capture alone may have begun late at egress; of a testbed both taps are ready before.
    """
    summary, tap = run.summary, run.summary.ingress_tap
    ingress, begin_ns, end_ns = summary.ingress, tap.first_ns or 0, tap.last_ns or 0
    if not ingress.lost or not summary.samples or ingress.trimmed:
        return False
    within_s = _DEAF_SHARE * (end_ns - begin_ns) / units.SECOND
    second = run.table("second", columns=("second", "lost"))
    last_s = second["second"].to_numpy()[second["lost"].to_numpy() > 0].max()
    if last_s > within_s:
        return False
    entered_ns = run.table("sample", columns=("ingress_ns",))["ingress_ns"].to_numpy()
    deaf_s = (int(entered_ns.min()) - begin_ns) / units.SECOND
    most = 1 + 1.05 * deaf_s * (summary.rate_pps or 0.0)
    return bool(last_s <= deaf_s <= within_s and ingress.lost + ingress.beyond_window <= most)


def _own_pps(run: RunDirectory) -> float | None:
    """Return what the device is able to forward by its own count, if it was busy at all."""
    counted = run.device()
    try:
        return float(counted["received"] * 1e9 / counted["busy_ns"])
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def _unsent(generator: dict[str, Any]) -> tuple[int, float]:
    """Return how many packets the generator did not send, and which share of its load it sent."""
    try:
        if "streams" in generator:
            (probes,) = [stream["probes"] for stream in generator["streams"]]
            return probes["refused"], 1 - probes["refused"] / max(probes["due"], 1)
        share = min(generator["achieved_pps"] / generator["intended_pps"], 1.0)
        return max(generator["due"] - generator["sent"], 0), share
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise RunDirectoryError(
            f"generator.json: not what a generator counted ({error})"
        ) from error


def _late(run: RunDirectory, condition: Condition, spans: list[LateSpan]) -> tuple[int, int]:
    """Return how many delivered packets are not within a deadline, and how many are unknown."""
    if condition.deadline_ns is None:
        return 0, 0
    if spans:
        table = run.table("sample", columns=("ingress_ns", "latency_ns"))
        ingress_ns, latency_ns = (table[name].to_numpy() for name in ("ingress_ns", "latency_ns"))
        bad, unknown = beyond(ingress_ns, latency_ns, spans, condition.deadline_ns)
        return int(bad.sum()), int(unknown.sum())
    table = run.table("histogram", columns=("latency_ns", "count"))
    latency_ns, count = (table[name].to_numpy() for name in ("latency_ns", "count"))
    return int(np.sum(count[latency_ns >= condition.deadline_ns])), 0


def _design_effect(run: RunDirectory, condition: Condition, late: int) -> float:
    """Return how many packets are worth one independent one, as to being bad.

    The larger one of that at the condition's quantile, lost packets among them, which there is
    also where no packet is bad, and that at the deadline.
    """
    summary, effect = run.summary, 1.0
    for one in summary.delivery_adjusted_ns:
        if one.p == condition.p and one.effective_samples:
            known = summary.ingress.matched + summary.ingress.lost + summary.ingress.beyond_window
            effect = max(effect, known / one.effective_samples)
    share = late / max(summary.samples, 1)
    if late >= _TELLING and share < 1 / 2:
        with suppress(TailtrimError):
            length = plan_length(f"{1 - share:.12f}", precision=0.9, pilot=run)
            effect = max(effect, length.design_effect)
    # All packets of a run are one cluster at most.
    return min(effect, max(summary.samples, 1))
