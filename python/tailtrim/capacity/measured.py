"""What a run of an experiment counts as a trial."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.capacity.trial import LOST, Count, Seen
from tailtrim.compare import plan_length
from tailtrim.errors import RunDirectoryError, TailtrimError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.capacity.promise import Condition
    from tailtrim.capacity.trial import Trial
    from tailtrim.experiment import Outcome
    from tailtrim.rundir import RunDirectory

#: With fewer packets beyond the deadline nothing is known of how they cluster: as many as
#: :func:`.plan_length` needs.
_TELLING = 10


def seen(
    trial: Trial,
    took_s: float,
    outcome: Outcome,
    run: RunDirectory | None,
    conditions: Sequence[Condition],
) -> Seen:
    """Return what a trial showed.

    Args:
        trial: what was asked for.
        took_s: how long it took with all around it.
        outcome: what became of its run.
        run: its run directory, if it has one.
        conditions: what packets are held against beside loss.

    Raises:
        RunDirectoryError: the run directory is damaged.

    """
    if run is None:
        return Seen(trial, took_s, invalid=outcome.failed or outcome.skipped or "no result")
    generator = run.generator()
    invalid = "; ".join(outcome.invalid) or None
    unsent, share = _unsent(generator)
    lost = run.summary.ingress.lost + run.summary.ingress.beyond_window + unsent
    known = run.summary.ingress.matched + lost
    counts = {LOST: Count(lost, known)}
    for one in conditions:
        late = 0 if one.deadline_ns is None else _late(run, one.deadline_ns)
        counts[one.text] = Count(lost + late, known, _design_effect(run, one, late))
    return Seen(trial, took_s, counts, invalid, share)


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


def _late(run: RunDirectory, deadline_ns: int) -> int:
    """Return how many delivered packets are not within a deadline."""
    table = run.table("histogram", columns=("latency_ns", "count"))
    latency_ns, count = (table[name].to_numpy() for name in ("latency_ns", "count"))
    return int(np.sum(count[latency_ns >= deadline_ns]))


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
