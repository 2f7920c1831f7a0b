"""Which changes of the host are expected to gain most: those against causes of late packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.report.inputs.host_explanation import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailtrim.report.inputs.host_explanation import HostExplanation
    from tailtrim.rundir import RunDirectory
    from tailtrim.trim.trial import Candidate


def by_causes(
    candidates: Sequence[Candidate],
    checks: Mapping[str, Sequence[str]],
    explained: RunDirectory,
    p: str,
) -> list[Candidate]:
    """Return the candidates with those first whose cause costs the quantile most.

    The others keep their order behind them.

    Args:
        candidates: in the order of the catalogue.
        checks: the checks of the audit that each one is for.
        explained: a run with an explanation.
        p: the quantile as summaries write it.

    Raises:
        RunDirectoryError: the explanation cannot be read.
        ValueError: the run has none that rests on a trace.

    """
    explanation = read(explained)
    if explanation is None:
        raise ValueError(f"{explained.path}: no explanation of a trace, expected a run with one")
    costs_ns = _costs(explanation, p)

    def gain_ns(one: Candidate) -> int:
        return max((costs_ns.get(check, 0) for check in checks.get(one.name, ())), default=0)

    return sorted(candidates, key=gain_ns, reverse=True)


def _costs(explanation: HostExplanation, p: str) -> dict[str, int]:
    """Return by how much the quantile is longer for the causes of each check, in ns."""
    verdict = explanation.verdict
    # Without this quantile among those of the explanation, the part of all lateness stands for it.
    whole_ns = explanation.at(p, verdict.quantiles_ns)
    costs: dict[str, int] = {}
    for cause in verdict.causes:
        without_ns = explanation.at(p, cause.without_ns)
        cost_ns = cause.excess_ns
        if whole_ns is not None and without_ns is not None:
            cost_ns = whole_ns - without_ns
        for check in cause.signature.checks if cause.signature else ():
            costs[check] = max(costs.get(check, 0), cost_ns)
    return costs
