"""Value and interval of a quantity over all runs of one combination."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from tailtrim.analysis import slo
from tailtrim.publishing.report.wording import with_interval
from tailtrim.student_t import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.analysis.slo import Objective, Verdict
    from tailtrim.results import RunDirectory, Summary


@dataclass(frozen=True, slots=True)
class Known:
    """A quantity in the unit of its objective; a bound is ``None`` where it is not known.

    ``decisive`` is whether the interval has the confidence that was asked for.
    """

    value: float | None
    low: float | None
    high: float | None
    why: str
    decisive: bool = True


def known(runs: Sequence[RunDirectory], objective: Objective, confidence: float) -> Known:
    """Return the value and the interval of all runs together.

    Of one run they are its own. Of several, the value is the geometric mean, and the interval is
    Student's of the logarithms: it includes the spread of the runs. It contains the common part of
    the intervals of all runs, since runs may agree only because stamps have a resolution. The
    largest latency is that of all runs, and the loss that of all their packets.
    """
    summaries = [run.summary for run in runs]
    if len(runs) > 1 and objective.what == "loss":
        summaries = [_pooled(summaries)]
    found = [slo.verdicts(summary, [objective])[0] for summary in summaries]
    least = min(float(summary.latency_ns.confidence) for summary in summaries)
    one = _one(found[0]) if len(found) == 1 else _several(found, objective, confidence)
    if one.low == one.high or confidence <= least:
        return one
    told = f"its intervals have {least:.4g} confidence, {confidence:.4g} is asked for"
    return replace(one, decisive=False, why=f"{told}: analyse the captures with this --confidence")


def _one(verdict: Verdict) -> Known:
    return Known(verdict.value, verdict.low, verdict.high, verdict.why)


def _several(found: Sequence[Verdict], objective: Objective, confidence: float) -> Known:
    values = [one.value for one in found if one.value is not None]
    if len(values) < len(found):
        return Known(None, None, None, next(one.why for one in found if one.value is None))
    if objective.what == "max":
        return Known(max(values), max(values), max(values), f"the largest of {len(found)} runs")
    unbounded = next((one for one in found if one.high is None), None)
    if min(values) <= 0 or math.isinf(max(values)) or unbounded is not None:
        why = unbounded.why if unbounded else "not all values are positive"
        return Known(max(values), None, None, f"not known in each of {len(found)} runs: {why}")
    logarithms = [math.log(value) for value in values]
    low, high = (math.exp(end) for end in interval(logarithms, confidence))
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
    why = f"{confidence * 100:g} % confidence over {len(found)} runs"
    value = math.exp(fmean(logarithms))
    return Known(value, min(low, max(lows, default=low)), max(high, min(highs)), why)


def _pooled(summaries: Sequence[Summary]) -> Summary:
    first = summaries[0]
    counts = {
        name: sum(getattr(one.ingress, name) for one in summaries)
        for name in ("matched", "lost", "beyond_window")
    }
    return replace(first, ingress=replace(first.ingress, **counts))


def sentence(name: str, quantity: str, one: Known, objective: Objective) -> str:
    """Return what is known as the beginning of a sentence."""
    if one.value is None:
        return f"{quantity} of {name} is not known ({one.why})"
    return (
        f"{quantity} of {name} is {with_interval(objective, one.value, one.low, one.high)},"
        f" {one.why}"
    )
