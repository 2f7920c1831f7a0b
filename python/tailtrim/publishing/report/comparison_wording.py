"""Comparisons in words, the same for terminal and page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis.compare import SentRow, Verdict
from tailtrim.publishing.report.table import Cell, Column, Table
from tailtrim.publishing.report.table import Row as TableRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailtrim.analysis.compare import Comparison, CurvePoint, Difference, Row

#: Percentages from here on are told without a decimal.
_TENTHS_BELOW = 10
#: Percentiles in the first sentence, and from which factor on it is told as one, not in percent.
_TOLD, _TIMES_FROM = ("0.5", "0.99"), 1.5


def legend(comparisons: Sequence[Comparison]) -> str:
    """Explain the columns."""
    confidence = units.percent(comparisons[0].confidence) if comparisons else "95"
    margin = comparisons[0].margin if comparisons else 0.0
    beyond = f" by more than {100 * margin:g} %" if margin else ""
    rows: list[Row | SentRow] = []
    for found in comparisons:
        rows += [*found.quantiles, *found.sent]
    tested = [one for one in rows if one.supported]
    marked = any(end is None for one in tested for end in (one.low, one.high))
    explained = f" {units.UNSUPPORTED_LEGEND}" if marked else ""
    return (
        f"B / A above 1: B is slower. The interval is that of each percentile alone, with"
        f" {confidence} % confidence; the verdicts, better or worse{beyond}, hold for all"
        " percentiles together, and so does that there is no difference beyond what is told. With"
        " as many runs a side as it needs, a row is decided in four of five cases, or, where it"
        f" has no interval, gets one.{explained}"
    )


def quantiles(comparison: Comparison) -> Table:
    """Return the table of quantiles, with the minimum detectable effects."""
    interval = f"{units.percent(comparison.confidence)} % interval"
    detectable = "Minimum detectable"
    style = _style(comparison, comparison.quantiles)
    columns = [
        *_columns(interval, style.unit),
        Column("\N{MINUS SIGN}", "better", "Detectable: better", group=detectable),
        Column("+", "worse", "Detectable: worse", group=detectable),
    ]
    return Table(columns, [_row(row, style) for row in comparison.quantiles])


def sent(comparison: Comparison) -> Table:
    """Return the table of quantiles of all packets sent, lost ones infinitely late."""
    style = _style(comparison, comparison.sent)
    return Table(_columns("", style.unit), [_row(row, style) for row in comparison.sent])


def rates(comparisons: Sequence[Comparison]) -> Table | None:
    """Return the table of rates of sides whose packets were counted; ``None`` without any."""
    rows = []
    for one in comparisons:
        if (found := one.rates) is not None:
            pairs = (found.a_sent_pps, found.a_received_pps, found.b_sent_pps, found.b_received_pps)
            ratio = f"{found.b_received_pps / found.a_received_pps:.3f}" if pairs[1] else units.NONE
            name = one.label or f"{one.a.name} → {one.b.name}"
            rows.append(TableRow(units.printable(name), [*map(units.rate, pairs), ratio]))
    heads = ("A sent", "A received", "B sent", "B received", "B / A")
    caption = (
        "Rates in kpkt/s, means over the runs of each side. B / A below 1: B receives less. They"
        " are not tested."
    )
    return Table([Column("", kind="left"), *map(Column, heads)], rows, caption) if rows else None


def _style(comparison: Comparison, rows: Sequence[Row | SentRow]) -> units.Times:
    """Return how the latencies of a table are printed, those of both sides told apart."""
    return units.Times.of([[row.a_ns, row.b_ns] for row in rows], comparison.resolution_ps)


def _columns(group: str, unit: str) -> list[Column]:
    return [
        Column("%", "Percentile"),
        Column(f"A {unit}"),
        Column(f"B {unit}"),
        Column("B / A"),
        Column("from", label="B / A from", group=group),
        Column("to", label="B / A to", group=group),
        Column("verdict", "Verdict", kind="left"),
    ]


def _row(row: Row | SentRow, style: units.Times) -> TableRow:
    missing = "lost" if isinstance(row, SentRow) else units.NONE
    values = [missing if ns is None else style.number(ns) for ns in (row.a_ns, row.b_ns)]
    tested = row.supported
    bounds = [_bound(bound) if tested else units.NONE for bound in (row.low, row.high)]
    ratio = units.NONE if row.ratio is None else f"{row.ratio:.3f}"
    detectable = [
        units.NONE if not tested else "none" if limit is None else _change(limit)
        for limit in (() if isinstance(row, SentRow) else (row.better_from, row.worse_from))
    ]
    cells: list[str | Cell] = [*values, ratio, *bounds, Cell(row.told(), kind=row.kind)]
    cells += detectable
    return TableRow(units.percent(row.p), cells, "" if tested else "none")


def _bound(ratio: float | None) -> str:
    return units.UNSUPPORTED if ratio is None else f"{ratio:.3f}"


def _change(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    text = f"{percent:+,.1f}%" if abs(percent) < _TENTHS_BELOW else f"{percent:+,.0f}%"
    return text.replace("-", "\N{MINUS SIGN}")


def maxima(comparison: Comparison) -> str:
    """Return the largest latencies in a sentence."""
    a, b = comparison.a.max_ns, comparison.b.max_ns
    if a is None or b is None:
        return "One side has no samples."
    change = f" ({_change(b / a)})" if a > 0 and b > 0 else ""
    style = units.Times.of([[a, b]], comparison.resolution_ps)
    return (
        f"Max: {style.number(a)} and {style.text(b)}{change}. Maxima are not"
        " tested: they grow with the number of samples."
    )


def extremes(comparison: Comparison) -> str:
    """Return the points of the curve where B is slowest and fastest beside A; empty without any."""
    known = [(point.ratio, point) for point in comparison.curve if point.supported and point.ratio]
    if not known:
        return ""
    worst, best = (choose(known, key=lambda one: one[0])[1] for choose in (max, min))
    return f"Worst point of the curve: {_point(worst)}; best: {_point(best)}."


def _point(point: CurvePoint) -> str:
    low, high = map(_bound, (point.low, point.high))
    return f"p{units.percent(point.p)}, B / A {point.ratio:.3f} ({low} to {high})"


def losses(comparison: Comparison) -> str:
    """Return losses and their verdict in a sentence; empty where nothing was lost."""
    parts = []
    for name in ("lost", "beyond_window", "duplicate"):
        a, b = comparison.a.outcomes[name], comparison.b.outcomes[name]
        if a or b:
            word = name.replace("_", " the ")
            parts.append(
                f"{word}: {_share(a, comparison.a.outcomes)} and {_share(b, comparison.b.outcomes)}"
            )
    if not parts:
        return ""
    text = "Packets " + "; ".join(parts) + "."
    if comparison.losses and (comparison.a.outcomes["lost"] or comparison.b.outcomes["lost"]):
        text += f" Loss: {comparison.losses.told()} (p {comparison.losses.p_value:.2g})."
    return text


def _share(count: int, outcomes: dict[str, int]) -> str:
    known = outcomes["matched"] + outcomes["lost"] + outcomes["beyond_window"]
    return f"{units.count(count)} ({units.loss(count, known)} %)" if count else "none"


def verdict(comparison: Comparison) -> str:
    """Return the verdict of a comparison, with the percentile that changed most."""
    most = comparison.most_changed
    words = Verdict(verdict=comparison.verdict).told()
    if comparison.verdict != comparison.latency_verdict and comparison.losses:
        words = (
            f"Latency: {Verdict(verdict=comparison.latency_verdict).told()}; loss:"
            f" {Verdict(verdict=comparison.losses.verdict).told()}"
        )
    if most is None or most.ratio is None:
        return f"{words}."
    bounds = map(_bound, (most.low, most.high))
    span = " to ".join(bounds) if most.supported else "without an interval"
    told = f"p{units.percent(most.p)} changed most: B / A {most.ratio:.3f} ({span})"
    return f"{words}. {told}, {most.told()}."


def factors(comparison: Comparison) -> str:
    """Return by what factor B is slower or faster, at percentiles with a verdict; empty without.

    Where the samples bound the ratio on one side alone, the factor is that bound.
    """
    told = []
    for row in comparison.quantiles:
        bound, other = (row.low, row.high) if row.verdict == "worse" else (row.high, row.low)
        open_ = other is None and bound is not None
        factor = bound if open_ else row.ratio
        if row.verdict in {"better", "worse"} and factor and (row.p in _TOLD or open_):
            at_least = "at least " * open_
            told.append(f"{at_least}{_factor(factor, row.verdict)} at p{units.percent(row.p)}")
    return f"{units.printable(comparison.b.name)} is {', '.join(told)}." if told else ""


def _factor(ratio: float, verdict: str) -> str:
    word = "slower" if verdict == "worse" else "faster"
    factor = ratio if ratio > 1 else 1 / ratio
    if factor < _TIMES_FROM:
        return f"{100 * abs(ratio - 1):.2g} % {word}"
    return f"{factor:.2g} times {word}"


def notes(comparison: Comparison) -> Iterator[str]:
    """Return caveats of the verdicts."""
    if comparison.resampling == "blocks":
        yield (
            "one run on each side: the intervals do not include differences between runs; those"
            " of repeated runs do"
        )
    if comparison.drifts:
        yield (
            "the latency of a run drifts, so the intervals are wide; repeated runs would narrow"
            " them"
        )
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        for left in side.left_out:
            yield f"{name} without {units.printable(left)}"


def no_difference(comparison: Comparison) -> str:
    """State that no setting differs, as far as that is known."""
    if comparison.settings == 0:
        return "Host, device and traffic are not recorded on both sides: what differs is unknown."
    return f"None of {units.count(comparison.settings)} recorded settings differs."


def difference(one: Difference) -> str:
    """Return a setting and its two values in a line."""
    a, b = (units.printable(value or "not recorded") for value in (one.a, one.b))
    return f"{one.where} {units.printable(one.what)}: {a} → {b}"
