"""Rates sent and received against the load, of packets that were counted: :func:`throughput`."""

from __future__ import annotations

from dataclasses import replace
from statistics import median_low
from typing import TYPE_CHECKING

import numpy as np

from tailtrim import units
from tailtrim.publishing.report.figures.figure import Axis, Figure, Line, Panel
from tailtrim.publishing.report.figures.looks import FLOOR_DASH, distinct
from tailtrim.publishing.report.figures.sweep import x_axis
from tailtrim.publishing.report.inputs.run_groups import series, series_name, variables

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tailtrim.publishing.report.figures.looks import Look
    from tailtrim.publishing.report.inputs.run_tables import ReportedRun
    from tailtrim.results.summary import Throughput

_KILO = 1_000


def throughput(runs: Sequence[ReportedRun]) -> Figure | None:
    """Return the rates against the first loop variable with numbers, a pair of lines a series."""
    counted = [
        (run.recorded, run.summary.throughput)
        for run in runs
        if run.recorded is not None and run.summary.throughput is not None
    ]
    variable = next(iter(variables([run for run, _ in counted])), None)
    if variable is None:
        return None
    found: dict[Hashable, tuple[str, dict[float, list[Throughput]]]] = {}
    for run, rates in counted:
        if (at := variable.of(run)) is not None and not run.outcome.invalid:
            name = series_name(run, variable)
            _, points = found.setdefault(series(run, variable), (name, {}))
            points.setdefault(at, []).append(rates)
    lines: list[Line] = []
    names: list[str] = []
    looks: list[Look] = []
    for (name, points), look in zip(found.values(), distinct(len(found)), strict=True):
        x = sorted(points)
        for way, dash in ("received", ()), ("sent", FLOOR_DASH):
            of = [median_low(getattr(one, f"{way}_pps") for one in points[load]) for load in x]
            lines.append(Line(len(names), np.array(x), np.array(of) / _KILO, draw="line"))
            names.append(units.printable(f"{name} {way}".strip()))
            looks.append(replace(look, dash=dash))
    most = max((float(line.y.max()) for line in lines), default=0.0)
    y = Axis("Rate (kpkt/s)", "linear", 0.0, 1.08 * most or 1.0, unit="kpkt/s")
    against = variable.label.partition(" (")[0]
    return Figure(
        key=f"sweep-{variable.name}-throughput",
        title=f"Throughput against {against[:1].lower()}{against[1:]}",
        caption="Mean rates that the load generator counted; of repeated runs, the median.",
        panels=(Panel(x_axis(variable), y, tuple(lines)),),
        names=tuple(names),
        looks=tuple(looks),
    )
