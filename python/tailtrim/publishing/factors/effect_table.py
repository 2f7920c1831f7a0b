"""The table, for a terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tailtrim import units
from tailtrim.publishing.report.table import Cell, Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from tailtrim.publishing.factors.effects import Case, Effects

HEAD = ("", "p50", "IQR", "p99", "max", "changed most", "change", "from", "to", "verdict")
_COLUMNS = (
    Column("", page="Case", kind="left"),
    *map(Column, HEAD[1:5]),
    Column("changed most", kind="left"),
    *map(Column, HEAD[6:9]),
    Column("verdict", kind="left"),
)
#: Runs that do not count, each with its reason.
_LISTED = 3


def render(effects: Effects) -> Group:
    """Return what ``rich`` prints."""
    parts: list[RenderableType] = []
    for loop in effects.loops:
        found = table(effects, loop)
        # Eighty columns: interquartile range and maximum are in the file.
        kept = [place for place in range(1, len(HEAD)) if HEAD[place] not in {"IQR", "max"}]
        columns = [found.columns[place] for place in (0, *kept)]
        columns[0] = columns[0]._replace(head=_style(effects, loop).unit)
        columns[3] = columns[3]._replace(head="most")
        rows = [row._replace(cells=[row.cells[at - 1] for at in kept]) for row in found.rows]
        parts += [*([Text(loop, style="bold")] if loop else [])]
        parts += [Table(columns, rows).terminal(gap=1), Text()]
    parts += [Text(line) for line in (*slope_lines(effects), *skipped(effects))]
    parts.append(Text(legend(effects), style="dim"))
    return Group(*parts)


def table(effects: Effects, loop: str) -> Table:
    """Return the table of the cases with a value of the loop variables."""
    rows = []
    style = _style(effects, loop)
    for case in effects.of(loop):
        if case.quantiles_ns is not None:
            name, *cells, verdict = _cells(case, effects.repeated, style)
            rows.append(Row(name, [*cells, Cell(verdict, kind=case.verdict.kind)]))
    return Table(_COLUMNS, rows, caption=f"{loop} in {style.unit}".strip())


def _style(effects: Effects, loop: str) -> units.Times:
    """Return how the times of a table are printed."""
    groups: list[Iterable[float | None]] = []
    cases = effects.of(loop)
    for case in cases:
        groups += [[ns] for ns in (case.quantiles_ns or {}).values()]
        groups += [case.most.change_ns] if case.most else []
    return units.Times.of(groups, max((case.resolution_ps for case in cases), default=1_000))


def markdown(effects: Effects) -> str:
    """Return the same as Markdown."""
    lines = [f"# {effects.kind.capitalize()} of {effects.name}", ""]
    lines += [legend(effects), ""]
    for loop in effects.loops:
        style = _style(effects, loop)
        lines += [f"## {loop}", ""] if loop else []
        lines += [f"Times in {style.unit}.", ""]
        lines.append(f"| {' | '.join(HEAD)} |")
        lines.append("|---" + "|--:" * 4 + "|---" + "|--:" * 3 + "|---|")
        lines += [
            f"| {' | '.join(_cells(case, effects.repeated, style))} |"
            for case in effects.of(loop)
            if case.quantiles_ns is not None
        ]
        lines.append("")
    for title, told in (
        ("What a rule costs", list(slope_lines(effects))),
        ("Skipped and left out", list(skipped(effects))),
    ):
        if told:
            lines += [f"## {title}", "", *(f"* {line}" for line in told), ""]
    return "\n".join(lines)


def legend(effects: Effects) -> str:
    """Say what is compared with what."""
    first = ", ".join(f"{name} {value}" for name, value in effects.baseline.items())
    measured = ", ".join(filter(None, (effects.measured, effects.caveat)))
    text = (
        f"{measured}. Baseline: {first}. {effects.row}, with the percentile that changed most (of"
        " those that differ, if any does), and its change with a 95 % interval. The verdict holds"
        f" for all percentiles of the row together; changes below 1 % are none. With as many"
        f" {effects.repeated} of a row as it needs, it is decided in four of five cases, or, where"
        " it has no interval, gets one."
    )
    bounds = (ns for case in effects.cases if case.most for ns in case.most.change_ns)
    if any(ns is None for ns in bounds):
        text += f" {units.UNSUPPORTED_LEGEND}"
    if effects.together:
        values = ", ".join(f"{name} {value}" for name, value in effects.together.items())
        text += f" Together: {values}."
    return text


def _cells(case: Case, repeated: str, style: units.Times) -> list[str]:
    """Return a row."""
    known = case.quantiles_ns or {}
    times = [*map(style.number, (known["0.5"], case.iqr_ns or 0, known["0.99"], known["1"]))]
    lost = f" ({units.count(case.lost)} lost)" if case.lost else ""
    most = case.most
    change = ["", "", ""] if most is None else list(map(style.change, most.change_ns))
    where = "" if most is None else f"p{units.percent(most.p)}"
    verdict = case.verdict.told(repeated) if case.factor else ""
    return [units.printable(case.name) + lost, *times, where, *change, verdict]


def slope_lines(effects: Effects) -> Iterator[str]:
    """Say what a rule costs."""
    for slope in effects.slopes:
        where = "a firewall in between" if slope.firewall == "between" else slope.firewall
        yield (
            f"{', '.join(filter(None, (where, slope.loop)))}: {slope.ns_per_rule:,.1f} ns a rule"
            f" ({slope.low:,.1f} to {slope.high:,.1f}, 95 %) at the median, from {slope.runs} runs;"
            f" the line explains {100 * slope.straight:.1f} % of how they differ."
        )


def skipped(effects: Effects) -> Iterator[str]:
    """Say what was not measured, or not all of it, and why; once for all loop variables."""
    for text, cases in _by_reason(effects.cases).items():
        named: dict[str, list[str]] = {}
        for case in cases:
            named.setdefault(case.name, []).append(case.loop)
        every = len(effects.loops)
        told = [
            name if len(loops) == every else f"{name} ({'; '.join(loops)})"
            for name, loops in named.items()
        ]
        yield f"{', '.join(told)}: {text}"
    runs = [(text, case) for case in effects.cases for text in case.left_out if _is_run(text)]
    if runs:
        first = [
            ": ".join((", ".join(filter(None, (case.name, case.loop))), text))
            for text, case in runs[:_LISTED]
        ]
        more = f" …; {effects.kind}.json has all" if len(runs) > _LISTED else ""
        count = "1 run does" if len(runs) == 1 else f"{len(runs)} runs do"
        yield f"{count} not count: {'; '.join(first)}{more}"


def _is_run(text: str) -> bool:
    return text.startswith("run-")


def _by_reason(cases: Sequence[Case]) -> dict[str, list[Case]]:
    reasons: dict[str, list[Case]] = {}
    for case in cases:
        if case.skipped:
            reasons.setdefault(f"skipped: {units.printable(case.skipped)}", []).append(case)
        for text in (text for text in case.left_out if not _is_run(text)):
            reasons.setdefault(f"without {units.printable(text)}", []).append(case)
    return reasons
