"""A search for readers: its progress, its headline, and the table of its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tailtrim import units
from tailtrim.laboratory.trim.tree import duration
from tailtrim.publishing.report.table import Cell, Column, Row, Table
from tailtrim.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDED, WORSE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from tailtrim.laboratory.trim.recorded import RecordedSearch
    from tailtrim.laboratory.trim.trial import Observation, Trial
    from tailtrim.laboratory.trim.verdict import Found, Gain
    from tailtrim.publishing.trim_report import Findings
    from tailtrim.publishing.trim_report.costs import Cost, Processors, Shift

LEGEND = (
    "The interval of an effect holds wherever the search stopped. Costs are those of what is kept,"
    " with intervals of 95 %."
)
_POWER_UNKNOWN = "Power: not known, no meter was read (docs/energy.md)"
_UNKNOWN = Cell(units.NONE, kind="none")


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
    gain = _gain(result.total)
    return f"{p} of all packets: {gain.text} ({gain.below}, {_confidence(result.total)}), {took}"


def changes(found: Findings) -> Table:
    """Return a row for each change, those that are kept first, and one for these together."""
    power = ("Power",) if metered(found) else ()
    effect = f"p{units.percent(found.search.quantile)}"
    columns = [
        *(Column(head, kind="left") for head in ("Change", "Verdict")),
        *map(Column, (effect, "Throughput", *power)),
        *(Column(head, label=head, kind="text") for head in ("CPUs taken", "Why")),
    ]
    return Table(columns, _rows(found, measured=bool(power)))


def _rows(found: Findings, *, measured: bool) -> list[Row]:
    result, costs = found.search.result, found.costs
    if result is None:
        return []
    taken = costs.processors.taken if costs.processors else {}
    rows = [
        _row(one, found.search, costs.each.get(one.name), taken.get(one.name, ""), measured)
        for verdict in (BETTER, NO_DIFFERENCE, WORSE, NOT_DECIDED)
        for one in sorted(result.found, key=lambda one: not one.tried)
        if one.verdict == verdict
    ]
    if result.total is not None and costs.together is not None and costs.processors is not None:
        sure = f"compared with the baseline in new runs; interval with {_confidence(result.total)}"
        cells: list[str | Cell] = ["", _gain(result.total), *_costs(costs.together, measured)]
        rows.append(Row(Cell("all that is kept"), [*cells, _cpus(costs.processors), sure]))
    return rows


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
    shown = changes(found)
    rows = [row._replace(cells=row.cells[:-1]) for row in shown.rows]
    parts: list[RenderableType] = [Text(headline(found.search))]
    if rows:
        parts += [Text(), Table(shown.columns[:-1], rows).terminal(), Text()]
        parts += [Text(f"{row.title}: {row.cells[-1]}") for row in shown.rows]
        parts += [Text(), *map(Text, notes(found)), Text(LEGEND, style="dim")]
    return Group(*parts)


def _row(one: Found, search: RecordedSearch, cost: Cost | None, cpus: str, measured: bool) -> Row:
    of_group = f" (all of {one.group} together)" if one.of_group else ""
    sure = f"; interval with {_confidence(one.gain)}" if one.gain else ""
    kept = "kept" if one.verdict == BETTER else ""
    values = units.printable(" → ".join(search.values(one.name) or ()))
    return Row(
        Cell(units.printable(one.name), values),
        [
            Cell(one.told("more trials"), kept, one.kind),
            _gain(one.gain),
            *_costs(cost, measured),
            units.printable(cpus) or units.NONE,
            units.printable(f"{one.reason}{of_group}{sure}"),
        ],
    )


def _costs(cost: Cost | None, measured: bool) -> list[Cell]:
    watts = [_watts(cost.watts if cost else None)] if measured else []
    return [_throughput(cost.delivered_pps if cost else None), *watts]


def _gain(gain: Gain | None) -> Cell:
    if gain is None:
        return _UNKNOWN
    low, high = sorted((-100 * gain.low, -100 * gain.high))
    return Cell(f"{-100 * gain.share:+.1f} %", f"{low:+.1f} to {high:+.1f} %")


def _confidence(gain: Gain) -> str:
    return f"{100 * gain.confidence:.4g} % confidence"


def _throughput(found: Shift | None) -> Cell:
    if found is None:
        return _UNKNOWN
    return Cell(f"{100 * found.change:+.2f} %", _span(found, 100, "%"))


def _watts(found: Shift | None) -> Cell:
    return _UNKNOWN if found is None else Cell(f"{found.change:+,.2f} W", _span(found, 1, "W"))


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
