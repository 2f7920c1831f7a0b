"""The tail as it would be without the costliest causes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report.figures import percentiles
from tailtrim.report.figures.distributions import measured
from tailtrim.report.figures.explained_run import CAUSES, LOOKS, OTHER, QUEUE
from tailtrim.report.figures.figure import Figure, Line
from tailtrim.report.inputs.run_tables import ReportedRun

if TYPE_CHECKING:
    from tailtrim.report.figures.explained_run import ExplainedRun

_MOST = 3
# Without a cause of less the curve is the same.
_LEAST_PPM = 10_000
# Between fewer quantiles a line would be a guess.
_DENSE = 8


def without_causes(explained: ExplainedRun) -> Figure | None:
    """Latency by percentile of a run, and what the quantiles were without each of its causes."""
    run = explained.run
    causes = [cause for cause in explained.causes[:_MOST] if cause.share_ppm >= _LEAST_PPM]
    # The looks are those of the causes in the other figures; the first one is the run's here.
    alone = ReportedRun(OTHER, run.name, run.directory)
    if not measured([alone]) or not causes:
        return None
    panel = percentiles.panel([alone])
    samples = run.summary.samples
    at = np.array([percentiles.reciprocal(p) for p in explained.explanation.quantiles])
    known = np.argsort(at)[: int((at <= samples).sum())]
    lines = tuple(
        Line(
            look,
            at[known],
            np.array(cause.without_ns, dtype=float)[known] / panel.y.unit_ns,
            draw="line" if known.size >= _DENSE else "points",
            part="without",
        )
        for look, cause in enumerate(causes, start=1)
        if cause.without_ns
    )
    return Figure(
        key=f"without-{explained.number}",
        title="Latency by percentile, without the costliest causes",
        caption=(
            "The tail of this run, with its confidence interval, and what its quantiles were"
            " without each of the costliest causes: busy periods replayed with all of its stalls"
            " removed, the queue behind them included."
        ),
        panels=(replace(panel, lines=panel.lines + lines),),
        looks=(LOOKS[QUEUE], *CAUSES[: len(causes)]),
        names=(run.name, *(f"without {label}" for label in explained.labels[: len(causes)])),
    )
