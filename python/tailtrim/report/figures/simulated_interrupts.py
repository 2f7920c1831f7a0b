"""The figure of simulated latencies under periodic interrupts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tailtrim.report import units
from tailtrim.report.figures.figure import Axis, Figure, Line, Panel

if TYPE_CHECKING:
    from tailtrim.explain import Simulation

_WORST = 5_000


def observed(simulation: Simulation) -> Figure:
    """Latencies over time as packets of a simulation observe them: the worst, as in reports."""
    at = np.array(simulation.sent_ns, dtype=np.float64) / units.SECOND
    latency = np.array(simulation.latencies_ns, dtype=np.int64)
    order = np.sort(np.argsort(-latency, kind="stable")[:_WORST])
    highest = int(latency.max(initial=simulation.latency_ns + 1))
    y = Axis.of_times("Latency", simulation.latency_ns, highest, from_zero=True)
    run_s = simulation.run_ns / units.SECOND
    x = Axis("Time (s)", "linear", 0.0, run_s, unit="s")
    points = Line(0, at[order], latency[order] / y.unit_ns, draw="points")
    return Figure(
        key="interrupts",
        title="Packets that met an interrupt",
        caption="Slanted lines are the beat of packets and interrupts (aliasing).",
        panels=(Panel(x, y, (points,)),),
    )
