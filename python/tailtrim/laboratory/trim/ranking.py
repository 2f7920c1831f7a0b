"""Ranking of the host's changes by expected gain: those against causes of late packets first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.analysis.explain.host_explanation import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.analysis.explain.host_explanation import HostExplanation
    from tailtrim.laboratory.trim.trial import Candidate
    from tailtrim.results import RunDirectory


def by_causes(candidates: Sequence[Candidate], costs_ns: Mapping[str, float]) -> list[Candidate]:
    """Return the candidates, those with checks ordered by the cost of their causes.

    Those without stay where they are: before them, in the order of the plan.

    Args:
        candidates: in the order of the plan, then of the catalogue.
        costs_ns: by how much the quantile is longer for the causes of each check of the audit.

    """

    def gain_ns(one: Candidate) -> float:
        return max((costs_ns.get(check, 0.0) for check in one.checks or ()), default=0.0)

    planned = [one for one in candidates if one.checks is None]
    known = [one for one in candidates if one.checks is not None]
    return planned + sorted(known, key=gain_ns, reverse=True)


def costs(explained: RunDirectory, p: str) -> dict[str, float] | None:
    """Return the part of a run's quantile that the causes of each check add, in ns.

    Args:
        explained: the run.
        p: the quantile as summaries write it.

    Returns:
        the costs; ``None`` if the run has no explanation that rests on a trace.

    Raises:
        RunDirectoryError: the explanation cannot be read.

    """
    explanation = read(explained)
    return None if explanation is None else _costs(explanation, p)


def _costs(explanation: HostExplanation, p: str) -> dict[str, float]:
    verdict = explanation.verdict
    # Without this quantile among those of the explanation, the part of all lateness stands for it.
    whole_ns = explanation.at(p, verdict.quantiles_ns)
    found: dict[str, float] = {}
    for cause in verdict.causes:
        without_ns = explanation.at(p, cause.without_ns)
        cost_ns = cause.excess_ns
        if whole_ns is not None and without_ns is not None:
            cost_ns = whole_ns - without_ns
        for check in cause.signature.checks if cause.signature else ():
            found[check] = max(found.get(check, 0), cost_ns)
    return found
