"""A search for readers: its progress, its headline, and the table of its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tailtrim.report import units
from tailtrim.trim.tree import duration
from tailtrim.trim.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from tailtrim.trim.recorded import RecordedSearch
    from tailtrim.trim.report import Findings
    from tailtrim.trim.report.costs import Cost, Processors, Shift
    from tailtrim.trim.trial import Observation, Trial
    from tailtrim.trim.verdict import Found, Gain

LEGEND = (
    "The interval of an effect holds wherever the search stopped. Costs are those of what is kept,"
    " with intervals of 95 %."
)
_POWER_UNKNOWN = "Power: not known, no meter was read (docs/energy.md)"
_STYLES = {"better": "green", "worse": "bold red"}


class Cell(NamedTuple):
    """A number, and its interval where there is one."""

    value: str = units.NONE
    interval: str = ""


class Row(NamedTuple):
    """A change, or all that are kept together; ``values`` are those of a change of the plan."""

    change: str
    values: str
    verdict: str
    good: str
    effect: Cell
    throughput: Cell
    power: Cell
    cpus: str
    why: str


def progress(trial: Trial, seen: Observation, left: int) -> str:
    """Return a line about a trial that has ended."""
    tail = units.time(round(seen.tail_ns)) if seen.tail_ns else "no tail"
    changes = " + ".join(sorted(trial.changes)) or "baseline"
    why = "".join(f": {reason}" for reason in (seen.failed, seen.doubt) if reason)
    costs = sorted(seen.costs_ns.items(), key=lambda one: -one[1])
    causes = [f"{check} {units.time(round(cost))}" for check, cost in costs if cost > 0]
    why += f": longer by the causes of {', '.join(causes)}" if causes else ""
    told = f"{trial.folder}  {trial.phase:<9}  {tail:>9}  {changes}{why}"
    return f"{told}  (at most {left} more)"


def headline(search: RecordedSearch) -> str:
    """Return the result of a search in a line."""
    result, p = search.result, f"p{units.percent(search.quantile)}"
    if result is None:
        return f"The search has not ended: {len(search.seen)} trials so far"
    took = f"{result.trials} trials in {duration(result.seconds)}"
    if result.total is None:
        return f"Nothing is kept: no gain is proven at {p} ({took})"
    value, span = _gain(result.total)
    return f"{p} of all packets: {value} ({span}, {_confidence(result.total)}), {took}"


def rows(found: Findings) -> list[Row]:
    """Return a row for each change, those that are kept first, and one for these together."""
    result, costs = found.search.result, found.costs
    if result is None:
        return []
    taken = costs.processors.taken if costs.processors else {}
    changes = [
        _row(one, found.search, costs.each.get(one.name), taken.get(one.name, ""))
        for verdict in Verdict
        for one in result.found
        if one.verdict is verdict
    ]
    if result.total is None or costs.together is None or costs.processors is None:
        return changes
    together = Row(
        "all that is kept",
        "",
        "",
        "better",
        _gain(result.total),
        _throughput(costs.together.delivered_pps),
        _watts(costs.together.watts),
        _cpus(costs.processors),
        f"compared with the baseline in new runs; interval with {_confidence(result.total)}",
    )
    return [*changes, together]


def notes(found: Findings) -> Iterator[str]:
    """Yield the notes below the table."""
    result, together = found.search.result, found.costs.together
    if together is not None and together.watts is None:
        yield _POWER_UNKNOWN
    if result is not None and result.needed_trials is not None:
        yield f"To decide the rest: about {result.needed_trials:,} more trials"


def metered(found: Findings) -> bool:
    """Whether the power of anything that is kept is known."""
    costs = (found.costs.together, *found.costs.each.values())
    return any(one is not None and one.watts is not None for one in costs)


def render(found: Findings) -> Group:
    """Return the table as ``rich`` prints it, with the headline and the reasons."""
    shown = rows(found)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    power = ("Power",) if metered(found) else ()
    effect = f"p{units.percent(found.search.quantile)}"
    for head in ("Change", "Verdict", effect, "Throughput", *power, "CPUs taken"):
        table.add_column(head, overflow="fold")
    for row in shown:
        costs = (row.effect, row.throughput, *([row.power] if power else []))
        table.add_row(
            Text("\n".join(filter(None, (row.change, row.values)))),
            Text(row.verdict, style=_STYLES.get(row.good, "")),
            *(Text("\n".join(filter(None, cell))) for cell in costs),
            Text(row.cpus),
        )
    parts: list[RenderableType] = [Text(headline(found.search))]
    if shown:
        parts += [Text(), table, Text()]
        parts += [Text(f"{row.change}: {row.why}") for row in shown]
        parts += [Text(), *map(Text, notes(found)), Text(LEGEND, style="dim")]
    return Group(*parts)


def _row(one: Found, search: RecordedSearch, cost: Cost | None, cpus: str) -> Row:
    of_group = f" (all of {one.group} together)" if one.of_group else ""
    sure = f"; interval with {_confidence(one.gain)}" if one.gain else ""
    return Row(
        units.printable(one.name),
        units.printable(" → ".join(search.values(one.name) or ())),
        str(one.verdict),
        {Verdict.KEPT: "better", Verdict.WORSE: "worse"}.get(one.verdict, ""),
        _gain(one.gain),
        _throughput(cost.delivered_pps if cost else None),
        _watts(cost.watts if cost else None),
        units.printable(cpus) or units.NONE,
        units.printable(f"{one.reason}{of_group}{sure}"),
    )


def _gain(gain: Gain | None) -> Cell:
    if gain is None:
        return Cell()
    low, high = sorted((-100 * gain.low, -100 * gain.high))
    return Cell(f"{-100 * gain.share:+.1f} %", f"{low:+.1f} to {high:+.1f} %")


def _confidence(gain: Gain) -> str:
    return f"{100 * gain.confidence:.4g} % confidence"


def _throughput(found: Shift | None) -> Cell:
    return Cell() if found is None else Cell(f"{100 * found.change:+.2f} %", _span(found, 100, "%"))


def _watts(found: Shift | None) -> Cell:
    return Cell() if found is None else Cell(f"{found.change:+,.2f} W", _span(found, 1, "W"))


def _span(found: Shift, scale: int, unit: str) -> str:
    if found.low is None or found.high is None:
        return "one pair, no interval"
    return f"{scale * found.low:+,.2f} to {scale * found.high:+,.2f} {unit}"


def _cpus(found: Processors) -> str:
    """Return the CPUs that other work loses to all that is kept."""
    parts = [units.printable(", ".join(found.taken.values()))] if found.taken else []
    before, after = found.polls_before, found.polls_after
    if after is None:
        parts.append("whether the device polls is not known")
    elif after and before:
        parts.append("the device polls with and without the changes: one CPU is always busy")
    elif after:
        parts.append("the device polls: one CPU more is always busy")
    elif before:
        parts.append("the device does not poll any more: one CPU less is always busy")
    return "; ".join(parts) or units.NONE
