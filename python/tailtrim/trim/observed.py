"""What a run says of its trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.trim.trial import Observation

if TYPE_CHECKING:
    from tailtrim.experiment import Outcome
    from tailtrim.rundir import Summary


def observation(outcome: Outcome, summary: Summary | None, p: str) -> Observation:
    """Return the tail of all packets sent, and what it cost.

    An invalid run has no tail, and the changes are not blamed for it.

    Args:
        outcome: what became of the run.
        summary: its numbers, if it is complete.
        p: the quantile as summaries write it.

    """
    broke = outcome.failed or outcome.skipped
    if broke or summary is None:
        return Observation(None, failed=broke or "the run is not complete")
    loss = summary.loss or 0.0
    offered = summary.rate_pps
    rate_pps = offered * (1 - loss) if offered is not None else None
    if outcome.invalid:
        return Observation(None, loss=loss, doubt="; ".join(outcome.invalid))
    found = next((one for one in summary.delivery_adjusted_ns if one.p == p), None)
    if found is None or found.value is None or found.value <= 0:
        told = f"{loss:.2%} of the packets were lost: the {float(p):.3%} quantile is among them"
        return Observation(None, loss=loss, rate_pps=rate_pps, failed=told)
    return Observation(float(found.value), loss=loss, rate_pps=rate_pps)
