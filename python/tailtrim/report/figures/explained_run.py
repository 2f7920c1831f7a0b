"""A run with the causes of its late packets: their names and looks, and its tail without them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report.cause_wording import labels
from tailtrim.report.figures import percentiles
from tailtrim.report.figures.distributions import measured
from tailtrim.report.figures.figure import Figure, Line
from tailtrim.report.figures.palette import DARK, LIGHT, MARKERS, Look
from tailtrim.report.inputs.run_tables import ReportedRun

if TYPE_CHECKING:
    from tailtrim.explain.host_events import HostEvents
    from tailtrim.report.inputs.host_explanation import HostCause, HostExplanation

# Places among the names of a figure, and so the looks; the costliest causes are 1, 2, …
OTHER, QUEUE, UNKNOWN = 0, 5, 6
MOST_CAUSES = 4
#: How the costliest causes look, in every figure of a run.
CAUSES = tuple(Look(LIGHT[place], DARK[place], MARKERS[place + 1]) for place in range(MOST_CAUSES))
#: What is known but shares a look, and what is not known, are as far apart as can be.
LOOKS = (
    Look("#8A6D00", "#F0D264", "v"),
    *CAUSES,
    Look("#16191D", "#E8EAED", "P"),
    Look("#858B92", "#A9AFB6", "X"),
)
_MOST = 3
# Without a cause of less the curve is the same.
_LEAST_PPM = 10_000
# Between fewer quantiles a line would be a guess.
_DENSE = 8


@dataclass(frozen=True, slots=True)
class ExplainedRun:
    """A run, why its packets were late, and what the trace holds if it was kept."""

    run: ReportedRun
    explanation: HostExplanation
    events: HostEvents | None

    @property
    def number(self) -> int:
        """The run's place among those of the report, from 1."""
        return self.run.index + 1

    @property
    def causes(self) -> tuple[HostCause, ...]:
        """The costliest causes, which have looks of their own."""
        costly = [cause for cause in self.explanation.verdict.causes if cause.excess_ns > 0]
        return tuple(costly[:MOST_CAUSES])

    @property
    def labels(self) -> list[str]:
        """Names of :attr:`causes`."""
        return labels(self.explanation.verdict.causes)[: len(self.causes)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the looks."""
        spare = [""] * (MOST_CAUSES - len(self.causes))
        return ("other causes", *self.labels, *spare, "queueing behind packets", "unknown")


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
