"""The observation of a trial, from its run and its meter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tailtrim.analysis.energy import LOADED, measured
from tailtrim.laboratory.trim.trial import Observation

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.analysis.energy.measured import State
    from tailtrim.results import Summary
    from tailtrim.results.experiments import Outcome


def observation(outcome: Outcome, summary: Summary | None, p: str) -> Observation:
    """Return the tail of all packets sent, their loss and the delivered rate.

    An invalid run has no tail, and the changes are not blamed for it.

    Args:
        outcome: of the run.
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


def with_power(seen: Observation, run: Path, node: str | None) -> Observation:
    """Return the observation with the mean power of its run, see :func:`power`."""
    found = power(run, node)
    return seen if found is None else replace(seen, watts=found.watts)


def power(run: Path, node: str | None) -> State | None:
    """Return the power while packets passed; ``None`` where it is not known.

    Args:
        run: the directory of the run.
        node: the device's; ``None`` where the whole testbed is one machine.

    Raises:
        RunDirectoryError: the record of a meter cannot be read.

    """
    energy = measured.read(run)
    for one in energy.nodes if energy else ():
        state = one.states.get(LOADED)
        if node in (None, one.node) and state is not None and state.watts is not None:
            return state
    return None
