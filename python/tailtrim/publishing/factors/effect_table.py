"""The table, for a terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tailtrim import units
from tailtrim.publishing.report.comparison_wording import VERDICTS
from tailtrim.publishing.report.table import Cell, Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from tailtrim.publishing.factors.effects import Case, Effect, Effects

#: The columns of the file, and of those what a terminal has room for.
HEAD_80 = ("", "p50", "IQR", "p99", "change", "from", "to", "verdict")
_SHORT = {VERDICTS["no_difference_shown"]: "none", VERDICTS["not_supported"]: ""}
TAIL = "Tail: the highest percentile that both sides support."
HEAD = ("", "p50", "IQR", "p99", "max", "p50: change", "from", "to", "verdict", "tail")
_COLUMNS = (
    Column("", page="Case", kind="left"),
    *map(Column, HEAD[1:-2]),
    Column("verdict", kind="left"),
    Column("tail", label="tail", kind="text"),
)
#: Runs that do not count, each with its reason.
_LISTED = 3


def render(effects: Effects) -> Group:
    """Return what ``rich`` prints."""
    parts: list[RenderableType] = []
    for loop in effects.loops:
        found = table(effects, loop)
        # Eighty columns: the maximum and the tail's verdict are in the file.
        heads = zip(HEAD_80, (*found.columns[:4], *found.columns[5:9]), strict=True)
        columns = [column._replace(head=head) for head, column in heads]
        columns[0] = columns[0]._replace(head=_style(effects, loop).unit)
        rows = [
            row._replace(cells=(*row.cells[:3], *row.cells[4:7], _short(row.cells[7])))
            for row in found.rows
        ]
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
            name, *cells = _cells(case, style)
            kind = case.median.verdict if case.median else ""
            rows.append(Row(name, [*cells[:7], Cell(cells[7], kind=kind), cells[8]]))
    return Table(_COLUMNS, rows, caption=f"{loop} in {style.unit}".strip())


def _style(effects: Effects, loop: str) -> units.Times:
    """Return how the times of a table are printed."""
    groups: list[Iterable[float | None]] = []
    for case in effects.of(loop):
        groups += [[ns] for ns in (case.quantiles_ns or {}).values()]
        groups += [case.median.change_ns] if case.median else []
    return units.Times.of(groups)


def _short(cell: str | Cell) -> str:
    text = cell if isinstance(cell, str) else cell.text
    return _SHORT.get(text, text)


def markdown(effects: Effects) -> str:
    """Return the same as Markdown."""
    lines = [f"# {effects.kind.capitalize()} of {effects.name}", ""]
    lines += [f"{legend(effects)} {TAIL}", ""]
    for loop in effects.loops:
        style = _style(effects, loop)
        lines += [f"## {loop}", ""] if loop else []
        lines += [f"Times in {style.unit}.", ""]
        lines.append(f"| {' | '.join(HEAD)} |")
        lines.append("|---" + "|--:" * (len(HEAD) - 3) + "|---|---|")
        lines += [
            f"| {' | '.join(_cells(case, style))} |"
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
        f"{measured}. Baseline: {first}. {effects.row}; the verdict holds for all"
        " percentiles of the row together, beyond 1 %."
    )
    bounds = (ns for case in effects.cases if case.median for ns in case.median.change_ns)
    if any(ns is None for ns in bounds):
        text += f" {units.UNSUPPORTED_LEGEND}"
    if effects.together:
        values = ", ".join(f"{name} {value}" for name, value in effects.together.items())
        text += f" Together: {values}."
    return text


def _cells(case: Case, style: units.Times) -> list[str]:
    """Return a row."""
    known = case.quantiles_ns or {}
    times = [*map(style.number, (known["0.5"], case.iqr_ns or 0, known["0.99"], known["1"]))]
    effect = case.median
    if effect is None:
        shown = ["", "", "", VERDICTS["not_supported"] if case.factor else ""]
    else:
        change, *bounds = map(style.change, effect.change_ns)
        shown = [change, *bounds, VERDICTS[effect.verdict]]
    lost = f" ({units.count(case.lost)} lost)" if case.lost else ""
    return [units.printable(case.name) + lost, *times, *shown, _tail(case.tail)]


def _tail(effect: Effect | None) -> str:
    if effect is None:
        return ""
    return f"p{units.percent(effect.p)} ×{effect.ratio:.2f} {VERDICTS[effect.verdict]}"  # noqa: RUF001


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
