"""A comparison for a terminal, and as the papers' figure of relative improvement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tailtrim.compare import BETTER, NO_DIFFERENCE, NOT_SUPPORTED, WORSE
from tailtrim.report import units
from tailtrim.report.figures.figure import Axis, Band, Figure, Line, Panel
from tailtrim.report.figures.percentiles import reciprocal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tailtrim.compare import Comparison, Difference, Length, Repetition, Row, SentRow
    from tailtrim.report.figures.figure import Floats, Integers

VERDICTS = {
    BETTER: "better",
    WORSE: "worse",
    NO_DIFFERENCE: "no difference shown",
    NOT_SUPPORTED: "not supported",
}
_STYLES = {BETTER: "green", WORSE: "bold red", NO_DIFFERENCE: "", NOT_SUPPORTED: "dim"}
_HOUR = 3_600
#: Percentages from here on are told without a decimal.
_TENTHS_BELOW = 10
_MINUTES = 120
#: Points of a line in a decade.
_FINE = 120
#: Settings that are listed; the JSON has all.
_LISTED = 12


def render(comparisons: Sequence[Comparison]) -> Group:
    """Return what ``rich`` prints of comparisons."""
    parts: list[RenderableType] = []
    for comparison in comparisons:
        parts += [*_parts(comparison), Text()]
    return Group(*parts, Text(legend(comparisons), style="dim"))


def legend(comparisons: Sequence[Comparison]) -> str:
    """Say what the columns mean."""
    confidence = units.percent(comparisons[0].confidence) if comparisons else "95"
    margin = comparisons[0].margin if comparisons else 0.0
    beyond = f" by more than {100 * margin:g} %" if margin else ""
    return (
        f"B / A above 1: B is slower. The interval is that of each percentile alone, with"
        f" {confidence} % confidence; the verdicts, better or worse{beyond}, hold for all"
        " percentiles together. The last two columns: a difference beyond these would have been"
        " shown in four of five such comparisons."
    )


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    for side, one in (("A", comparison.a), ("B", comparison.b)):
        runs = f"{len(one.runs)} run{'s' * (len(one.runs) > 1)}"
        text = f"{side}  {units.printable(one.name)} ({units.count(one.samples)} samples, {runs})"
        yield Text(text, style="bold")
    yield _table(comparison)
    yield Text(maxima(comparison))
    if comparison.sent:
        yield Text("Of all packets sent, lost ones infinitely late:")
        yield _sent(comparison)
    if text := losses(comparison):
        yield Text(text, style=_STYLES[comparison.losses.verdict] if comparison.losses else "")
    for note in notes(comparison):
        yield Text(f"note: {note}")
    yield from _differences(comparison.differences)


def _table(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("%", "A µs", "B µs", "B/A", "from", "to"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for name in ("−", "+"):  # noqa: RUF001 - a minus
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparison.quantiles:
        cells = cells_of(row)
        table.add_row(*cells[:6], Text(cells[6], style=_STYLES[row.verdict]), *cells[7:])
    return table


def _sent(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("%", "A µs", "B µs", "B/A", "from", "to"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in comparison.sent:
        cells = sent_cells(row)
        table.add_row(*cells[:6], Text(cells[6], style=_STYLES[row.verdict]))
    return table


def sent_cells(row: SentRow) -> list[str]:
    """Return a row of the table of packets sent, for terminal and page alike."""
    values = ["lost" if ns is None else units.microseconds(ns) for ns in (row.a_ns, row.b_ns)]
    tested = row.verdict != NOT_SUPPORTED
    ratio = units.NONE if row.ratio is None else f"{row.ratio:.3f}"
    bounds = [
        units.NONE if not tested else "open" if bound is None else f"{bound:.3f}"
        for bound in (row.low, row.high)
    ]
    return [units.percent(row.p), *values, ratio, *bounds, VERDICTS[row.verdict]]


def cells_of(row: Row) -> list[str]:
    """Return a row of the table, for terminal and page alike."""
    value = [units.NONE if ns is None else units.microseconds(ns) for ns in (row.a_ns, row.b_ns)]
    tested = row.verdict != NOT_SUPPORTED
    bounds = [
        units.NONE if not tested else "open" if bound is None else f"{bound:.3f}"
        for bound in (row.low, row.high)
    ]
    ratio = units.NONE if row.ratio is None else f"{row.ratio:.3f}"
    shown = [
        units.NONE if not tested else "none" if limit is None else _change(limit)
        for limit in (row.better_from, row.worse_from)
    ]
    return [units.percent(row.p), *value, ratio, *bounds, VERDICTS[row.verdict], *shown]


def _change(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    text = f"{percent:+,.1f}%" if abs(percent) < _TENTHS_BELOW else f"{percent:+,.0f}%"
    return text.replace("-", "\N{MINUS SIGN}")


def maxima(comparison: Comparison) -> str:
    """Say what the largest latencies are."""
    a, b = comparison.a.max_ns, comparison.b.max_ns
    if a is None or b is None:
        return "One side has no samples."
    change = f" ({_change(b / a)})" if a > 0 and b > 0 else ""
    return (
        f"Max: {units.microseconds(a)} and {units.microseconds(b)} µs{change}; no number of"
        " samples makes a verdict of maxima."
    )


def losses(comparison: Comparison) -> str:
    """Say what was lost, and what is shown of that; empty where nothing was."""
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
        text += f" Loss: {VERDICTS[comparison.losses.verdict]} (p {comparison.losses.p_value:.2g})."
    return text


def _share(count: int, outcomes: dict[str, int]) -> str:
    known = outcomes["matched"] + outcomes["lost"] + outcomes["beyond_window"]
    return f"{units.count(count)} ({units.loss(count, known)} %)" if count else "none"


def notes(comparison: Comparison) -> Iterator[str]:
    """Return what a reader must know before trusting the verdicts."""
    if comparison.resampling == "blocks":
        yield (
            "one run a side: what differs from run to run is in no interval; with repetitions it"
            " would be"
        )
    if comparison.drifts:
        yield (
            "a run drifts: how far the next one would be off is known from one slow change only,"
            " and the intervals are wide; repetitions would narrow them"
        )
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        for left in side.left_out:
            yield f"{name} without {units.printable(left)}"


def _differences(found: Sequence[Difference]) -> Iterator[RenderableType]:
    if not found:
        yield Text("No setting that is recorded differs.")
        return
    yield Text("What was set up differently:")
    for one in found[:_LISTED]:
        yield Text(f"  {difference(one)}")
    if len(found) > _LISTED:
        yield Text(f"  and {len(found) - _LISTED} more, which --json lists")


def difference(one: Difference) -> str:
    """Return a setting and its two values in a line."""
    a, b = (units.printable(value or "not recorded") for value in (one.a, one.b))
    return f"{one.where} {units.printable(one.what)}: {a} → {b}"


def length_lines(length: Length, confidence: str) -> Iterator[str]:
    """Return what ``tailtrim plan-length`` prints, line by line."""
    what = "latency" if length.of_latency else "share of packets beyond it"
    yield (
        f"p{units.percent(length.p)} within {100 * length.precision:g} % of its {what}"
        f" ({units.percent(confidence)} % confidence):"
    )
    yield f"  samples   {units.count(length.samples)}{_duration(length, length.samples)}"
    bounded = f"{units.count(length.bounded_from)}{_duration(length, length.bounded_from)}"
    yield f"  at least  {bounded}, for any upper bound"
    if length.design_effect > 1:
        yield (
            f"  {length.design_effect:.3g} samples are worth one independent one: late packets come"
            " together"
        )
    if not length.of_latency:
        yield "  How steep the tail is, only a run tells: --from RUN."


def _duration(length: Length, samples: int) -> str:
    if not length.rate_pps:
        return ""
    seconds = samples / length.rate_pps
    told = f"{seconds:,.1f} s"
    if seconds >= _HOUR:
        told = f"{seconds / 3600:,.1f} h"
    elif seconds >= _MINUTES:
        told = f"{seconds / 60:,.1f} min"
    return f" ({told} at {length.rate_pps:,.0f} packets/s)"


def improvement(comparisons: Sequence[Comparison]) -> Figure | None:
    """Latency of A over that of B by percentile, as Figure 7 of "Ducked Tails" has it."""
    drawn = [(index, one) for index, one in enumerate(comparisons) if _supported(one) > 1]
    if not drawn:
        return None
    lines, bands = [], []
    most = 10.0
    for index, one in drawn:
        x, y = _curve(one)
        limit = _supported(one)
        most = max(most, float(x[-1]))
        split = int(np.searchsorted(x, limit, side="right"))
        lines.append(Line(index, x[:split], y[:split]))
        if split < x.size:
            lines.append(Line(index, x[split - 1 :], y[split - 1 :], faded=True))
        bands.append(_band(index, one))
    low = min(float(line.y.min()) for line in lines)
    high = max(float(line.y.max()) for line in lines)
    return Figure(
        key="improvement",
        title="Relative improvement by percentile",
        caption=(
            "Latency of A over that of B: at 100 % both are the same, above it B is faster. The"
            " band is the interval of each percentile alone. Paler beyond what both sides' samples"
            " support."
        ),
        panels=(
            Panel(
                Axis("Percentile", "nines", 1.0, 1.25 * most),
                _axis(low, high),
                tuple(lines),
                bands=tuple(bands),
                rules=(100.0,),
            ),
        ),
    )


def _axis(low: float, high: float) -> Axis:
    low, high = min(low, 100.0), max(high, 100.0)
    label = "Latency of A relative to B (%)"
    if high / low > 20:  # noqa: PLR2004 - a linear axis would flatten the rest
        return Axis(label, "log", low / 1.3, high * 1.3, unit="%")
    room = max(0.12 * (high - low), 2.0)
    return Axis(label, "linear", low - room, high + room, unit="%")


def _supported(comparison: Comparison) -> float:
    supported = [reciprocal(point.p) for point in comparison.curve if point.supported]
    return max(supported, default=1.0)


def _curve(comparison: Comparison) -> tuple[Floats, Floats]:
    sides = [_latencies(group.repetitions) for group in comparison.groups]
    fewest = min(side[1][-1] for side in sides)
    x = np.logspace(0, np.log10(fewest), max(2, int(_FINE * np.log10(fewest))))
    a, b = (_quantiles(x, *side) for side in sides)
    positive = (a > 0) & (b > 0)
    return x[positive], 100.0 * a[positive] / b[positive]


def _latencies(repetitions: Sequence[Repetition]) -> tuple[Integers, Integers]:
    columns = [run.samples()["latency_ns"].to_numpy() for run in repetitions]
    values, counts = np.unique(np.concatenate(columns), return_counts=True)
    return values, np.cumsum(counts)


def _quantiles(x: Floats, values: Integers, up_to: Integers) -> Floats:
    """Return the quantiles at 1 - 1/x by nearest rank."""
    samples = int(up_to[-1])
    ranks = np.clip(samples - np.floor(samples / x), 1, samples)
    quantiles: Floats = values[np.searchsorted(up_to, ranks)].astype(np.float64)
    return quantiles


def _band(index: int, comparison: Comparison) -> Band:
    """Return the interval at each point of the curve, in a cell around it."""
    points = [point for point in comparison.curve if point.ratio]
    at = np.array([reciprocal(point.p) for point in points])
    between = np.sqrt(at[1:] * at[:-1])
    edges = np.concatenate([[1.0], between, at[-1:] * 1.05])

    def percent(ratios: list[float | None]) -> Floats:
        return np.array([100.0 / ratio if ratio else np.nan for ratio in ratios])

    value = percent([point.ratio for point in points])
    return Band(
        index,
        edges,
        percent([point.high for point in points]),
        percent([point.low for point in points]),
        np.append(value, value[-1:]),
    )
