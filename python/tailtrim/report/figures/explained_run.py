"""A run with why its packets were late, as figures tell it: names and looks of its causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailtrim.report.cause_wording import labels
from tailtrim.report.figures.palette import DARK, LIGHT, MARKERS, Look

if TYPE_CHECKING:
    from tailtrim.explain.host_events import HostEvents
    from tailtrim.report.inputs.host_explanation import HostCause, HostExplanation
    from tailtrim.report.inputs.run_tables import ReportedRun

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
        """What to call :attr:`causes`."""
        return labels(self.explanation.verdict.causes)[: len(self.causes)]

    @property
    def names(self) -> tuple[str, ...]:
        """What the looks stand for."""
        spare = [""] * (MOST_CAUSES - len(self.causes))
        return ("other causes", *self.labels, *spare, "queueing behind packets", "unknown")
