"""Experiments for a terminal: a line for each run.

The wire's line is beside those of the runs that it is the floor of.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tailtrim import units
from tailtrim.laboratory.plan import COUNTED, TRACED
from tailtrim.publishing.report import live_runs, wording
from tailtrim.publishing.report.table import Cell, Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tailtrim.laboratory.plan import Run
    from tailtrim.results import RunDirectory, Summary
    from tailtrim.results.experiments import Outcome

    Complete = tuple[Run, Outcome, RunDirectory]


def render(complete: Sequence[Complete]) -> Group:
    """Return what ``rich`` prints of the complete runs of an experiment.

    Runs with the same traffic are together, the wire first: what it takes is the testbed's own.
    """
    # A column that is empty mostly is there only where a device sent packets more than once.
    copies = any(result.summary.egress.copy for _, _, result in complete)
    heads = ("kpkt/s", "loss %", *(("copies",) if copies else ()))
    styles = units.Times.alike([wording.times(one[2].summary) for one in complete])
    style_of = {one[1].run: style for one, style in zip(complete, styles, strict=True)}
    groups: dict[str, list[Complete]] = {}
    for one in complete:
        groups.setdefault(_traffic(one[0]), []).append(one)
    rows: list[Row] = []
    for group in groups.values():
        variables = _variables(group)
        if len(groups) > 1 and variables:
            rows.append(Row(variables, [""] * (len(heads) + len(wording.SHOWN) + 1), "none"))
        for run, outcome, result in sorted(group, key=_order):
            name = Cell(_name(run, outcome, variables), kind="none" * (run.dut.preset == "wire"))
            rows.append(Row(name, _cells(result.summary, style_of[outcome.run], copies=copies)))
    heads = (*heads, *(units.percent(p) for p in wording.SHOWN), "Max")
    table = Table([Column("", kind="left"), *map(Column, heads)], rows)
    unit = styles[0].unit if styles else ""
    stamps = wording.resolution(result.summary for _, _, result in complete)
    legend = wording.legend(f"Percentiles of latency in {unit} ({stamps}).", rows)
    named = [(_name(run, outcome, ""), result) for run, outcome, result in complete]
    parts: list[RenderableType] = [table.terminal(), Text(legend, style="dim")]
    if (late := live_runs.departures(named)) is not None:
        parts += [late.table.terminal(), Text(late.legend, style="dim"), *map(Text, late.notes)]
    warmed = live_runs.warm_ups(named)
    parts += [Text(units.printable(f"{device}: {told}")) for device, told in warmed]
    cost = _cost_of_tracing(complete)
    return Group(*parts, *([Text(cost)] if cost else []))


def _cost_of_tracing(complete: Sequence[Complete]) -> str | None:
    """Say what recording adds, from runs that were done without and with it."""
    pairs: dict[str, dict[bool, list[Summary]]] = {}
    for run, outcome, result in complete:
        if outcome.untraced is not None:
            continue
        same = run.model_dump_json(include={"dut", "traffic", "loop"})
        pairs.setdefault(same, {}).setdefault(run.traced, []).append(result.summary)
    both = [pair for pair in pairs.values() if len(pair) > 1]
    if not both:
        return None
    told = []
    for p in ("0.5", "0.99"):
        added = median(
            median(_values(pair[True], p)) - median(_values(pair[False], p)) for pair in both
        )
        style = units.Times.of([[added]])
        told.append(f"{style.change(added)} {style.unit} at p{units.percent(p)}")
    return f"Tracing adds {', '.join(told)} (median of {len(both)} pairs of runs)."


def _values(summaries: Sequence[Summary], p: str) -> list[int]:
    found = (q.value for one in summaries for q in one.latency_ns.quantiles if q.p == p)
    return [value for value in found if value is not None] or [0]


def _traffic(run: Run) -> str:
    return run.traffic.model_dump_json()


def _order(one: Complete) -> tuple[bool, int]:
    run = one[0]
    return run.dut.preset != "wire", run.number


def _variables(group: Sequence[Complete]) -> str:
    """Return the loop variables that all runs of the same traffic share."""
    first, *others = (run.loop for run, _, _ in group)
    shared = {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }
    return ", ".join(f"{name}={value}" for name, value in shared.items())


def _name(run: Run, outcome: Outcome, variables: str) -> str:
    shared = set(variables.split(", "))
    told = run.dut.told
    own = [
        text
        for name, value in run.loop.items()
        if value not in told and (text := f"{name}={value}") not in shared
    ]
    name = " ".join([run.dut.label, *own])
    if run.traced:
        name += TRACED if outcome.untraced is None else COUNTED
    if run.repetition:
        name += f" #{run.repetition + 1}"
    if run.floor:
        name += " (floor)"
    return units.printable(f"{name} (invalid)" if outcome.invalid else name)


def _cells(summary: Summary, style: units.Times, *, copies: bool) -> list[str]:
    cells = [units.rate(summary.rate_pps), wording.loss(summary)]
    if copies:
        cells.append(units.count(summary.egress.copy))
    return [*cells, *wording.cells(summary, style)]
