"""The table, for a terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tailtrim.report import units
from tailtrim.report.comparison_wording import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tailtrim.factors.effects import Case, Effect, Effects

#: The columns of the file, and of those what a terminal has room for.
HEAD_80 = ("µs", "p50", "IQR", "p99", "change", "from", "to", "verdict")
_SHORT = {VERDICTS["no_difference_shown"]: "none", VERDICTS["not_supported"]: ""}
TAIL = "Tail: the highest percentile that both sides support."
HEAD = ("", "p50 µs", "IQR", "p99", "max", "p50: change µs", "from", "to", "verdict", "tail")
#: Runs that do not count, each with its reason.
_LISTED = 3
_MINUS = "\N{MINUS SIGN}"


def render(effects: Effects) -> Group:
    """Return what ``rich`` prints."""
    parts: list[RenderableType] = []
    for loop in effects.loops:
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for index, name in enumerate(HEAD_80):
            ends = index in {0, len(HEAD_80) - 1}
            # Boot lines are long; numbers are not cut.
            wraps = index == 0
            justify: Literal["left", "right"] = "left" if ends else "right"
            table.add_column(name, justify=justify, no_wrap=not wraps, overflow="fold")
        for case in effects.of(loop):
            if case.quantiles_ns is not None:
                row = cells(case)
                # Eighty columns: the maximum and the tail's verdict are in the file.
                table.add_row(*row[:4], *row[5:8], _SHORT.get(row[8], row[8]))
        parts += [*([Text(loop, style="bold")] if loop else []), table, Text()]
    parts += [Text(line) for line in (*slope_lines(effects), *skipped(effects))]
    parts.append(Text(legend(effects), style="dim"))
    return Group(*parts)


def markdown(effects: Effects) -> str:
    """Return the same as Markdown."""
    lines = [f"# {effects.kind.capitalize()} of {effects.name}", ""]
    lines += [f"{legend(effects)} {TAIL}", ""]
    for loop in effects.loops:
        lines += [f"## {loop}", ""] if loop else []
        lines.append(f"| {' | '.join(HEAD)} |")
        lines.append("|---" + "|--:" * (len(HEAD) - 3) + "|---|---|")
        lines += [
            f"| {' | '.join(cells(case))} |"
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
    measured = ", ".join(filter(None, (f"{effects.measured} in µs", effects.caveat)))
    text = (
        f"{measured}. Baseline: {first}. {effects.row}; the verdict holds for all"
        " percentiles of the row together, beyond 1 %."
    )
    if effects.together:
        values = ", ".join(f"{name} {value}" for name, value in effects.together.items())
        text += f" Together: {values}."
    return text


def cells(case: Case) -> list[str]:
    """Return a row."""
    known = case.quantiles_ns or {}
    micros = [
        units.microseconds(value)
        for value in (known["0.5"], case.iqr_ns or 0, known["0.99"], known["1"])
    ]
    effect = case.median
    if effect is None:
        shown = ["", "", "", VERDICTS["not_supported"] if case.factor else ""]
    else:
        change, *bounds = map(_signed, effect.change_ns)
        shown = [change, *bounds, VERDICTS[effect.verdict]]
    lost = f" ({units.count(case.lost)} lost)" if case.lost else ""
    return [units.printable(case.name) + lost, *micros, *shown, _tail(case.tail)]


def _tail(effect: Effect | None) -> str:
    if effect is None:
        return ""
    return f"p{units.percent(effect.p)} ×{effect.ratio:.2f} {VERDICTS[effect.verdict]}"  # noqa: RUF001


def _signed(ns: float | None) -> str:
    return "open" if ns is None else f"{ns / 1000:+,.1f}".replace("-", _MINUS)


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
