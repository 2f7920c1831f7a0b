"""Tables on the page of runs: objectives, latency, outcomes of packets, jitter, bursts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.analysis import slo
from tailtrim.publishing.report import wording
from tailtrim.publishing.report.table import Cell, Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tailtrim.publishing.report.inputs.run_tables import ReportedRun
    from tailtrim.publishing.report.latency_table import LatencyRow, LatencyTable
    from tailtrim.results.summary import Mean, Quantile, Spread

_RUN = Column("Run", kind="left")
_SPREAD = {"iqr": "IQR", "min": "Min", "p50": "50", "p99": "99", "p999": "99.9", "max": "Max"}


def objectives(
    runs: Sequence[ReportedRun], asked: Sequence[slo.Objective]
) -> list[tuple[str, Table]]:
    """Return tables of verdicts: of each run but the floor, and on promises of runs together."""
    measured = [
        slo.JudgedRun(
            run.name,
            run.directory,
            run.recorded.outcome.label if run.recorded else run.name,
            bool(run.recorded and run.recorded.outcome.invalid),
        )
        for run in runs
        if not run.is_floor
    ]
    single = [one for one in asked if one.promise is None]
    found = {
        "Objectives": [(one.name, slo.verdicts(one.summary, single)) for one in measured if single],
        "Promises": slo.promised(measured, asked),
    }
    return [(title, _verdicts(rows)) for title, rows in found.items() if rows]


def _verdicts(rows: Sequence[tuple[str, list[slo.Verdict]]]) -> Table:
    asked = [str(verdict.objective) for verdict in rows[0][1]]
    return Table(
        [_RUN, *(Column(one, kind="left objective") for one in asked)],
        [
            Row(
                name,
                [
                    Cell(one.word, wording.known_of(one), one.decision.name.lower())
                    for one in verdicts
                ],
            )
            for name, verdicts in rows
        ],
    )


def latency(table: LatencyTable) -> Table:
    """Return the table of percentiles with their intervals."""
    confidence = ", ".join(sorted({wording.confidence(row.summary) for row in table.rows}))
    unit = table.unit
    group = f"Percentiles in {unit}, each with its {confidence} confidence interval"
    columns = [
        _RUN,
        Column("Rate\nkpkt/s", label="Rate, kpkt/s"),
        Column("Loss\n%", label="Loss, %"),
        *([Column("Copies")] if table.duplicated else []),
        Column(f"Min\n{unit}", label=f"Min, {unit}"),
        Column(f"Mean\n{unit}", label=f"Mean, {unit}"),
        *(Column(p, label=f"p{p}", group=group) for p in table.columns),
        Column("Max", group=group),
    ]
    return Table(columns, [line for row in table.rows for line in _latencies(row, table)])


def _latencies(row: LatencyRow, table: LatencyTable) -> Iterator[Row]:
    found, style = row.summary.latency_ns, row.style
    copies = [units.count(row.copies)] if table.duplicated else []
    ends = style.number(found.min), _mean(found.mean, style)
    quantiles = (_quantile(one, style) for one in row.quantiles)
    yield Row(row.name, [row.rate, row.loss, *copies, *ends, *quantiles, style.number(row.max_ns)])
    if row.adjusted is not None:
        empty = [""] * (4 + len(copies))
        adjusted = (_quantile(one, style) for one in row.adjusted)
        yield Row("delivery-adjusted", [*empty, *adjusted, "∞"], "part")


def _quantile(of: Quantile | None, style: units.Times) -> Cell:
    if of is None:
        return Cell(units.NONE, kind="none")
    kind = "" if of.supported else "unsupported"
    return Cell(wording.quantile(of, style), wording.bounds(of, style), kind)


def _mean(of: Mean | None, style: units.Times) -> Cell:
    bounds = "" if of is None or of.low is None else wording.bounds(of, style)
    return Cell(style.number(of.value if of else None), bounds, "" if of else "none")


def latency_notes(table: LatencyTable, *, told: bool) -> Iterator[str]:
    """Yield the notes below; ``told`` is whether each run has said what its samples support."""
    stamps = wording.resolution(row.summary for row in table.rows)
    yield f"Digits follow the intervals and the resolution: {stamps}."
    if table.marked:
        needed = ", ".join(f"p{p}: {units.count(samples)}" for p, samples in table.needed)
        yield units.UNSUPPORTED_LEGEND + (
            ""
            if told or not needed
            else f" Needed for {needed}. Late packets that follow each other are not independent."
        )
    if table.beyond:
        which = "it" if len(table.beyond) == 1 else "them"
        yield f"p{', p'.join(table.beyond)}: too few samples to tell {which} from the maximum."
    if any(row.adjusted for row in table.rows):
        yield "Delivery-adjusted: a lost packet is infinitely late."


def outcomes(runs: Sequence[ReportedRun], side: str, words: Mapping[str, str], title: str) -> Table:
    """Return the counts of all outcomes of one side; each row adds up to its last cell."""
    rows = []
    for run in runs:
        counted = getattr(run.summary, side)
        counts = [units.count(getattr(counted, field)) for field in words]
        rows.append(Row(run.name, [*counts, Cell(units.count(counted.packets), kind="total")]))
    columns = [_RUN, *map(Column, words.values()), Column("= all", label="all")]
    return Table(columns, rows, title, "sums")


def jitter(runs: Sequence[ReportedRun]) -> Table:
    """Return the spread of latencies, of gaps at both taps, and of the delay variation."""
    rows = []
    styles = units.Times.alike([_style(_spreads(run).values(), run) for run in runs])
    for run, style in zip(runs, styles, strict=True):
        for name, spread in _spreads(run).items():
            first = name == "Latency"
            cells = [name, *_spread(spread, style)]
            rows.append(Row(run.name if first else "", cells, "" if first else "part"))
    unit = styles[0].unit if styles else ""
    return Table([_RUN, Column(f"in {unit}", kind="left what"), *_spread_columns()], rows)


def _spreads(run: ReportedRun) -> dict[str, Spread]:
    summary = run.summary
    return {
        "Latency": run.spread,
        "Gaps at ingress": summary.ingress_gap_ns,
        "Gaps at egress": summary.egress_gap_ns,
        "Delay variation (RFC 3393)": summary.delay_variation_ns,
    }


def bursts(run: ReportedRun) -> Table | None:
    """Return the spread of latencies by position in the burst; ``None`` without bursts."""
    if run.summary.bursts is None:
        return None
    positions = run.summary.bursts.positions
    style = _style((one.latency_ns for one in positions), run)
    rows = [
        Row(str(one.position), [units.count(one.samples), *_spread(one.latency_ns, style)])
        for one in positions
    ]
    columns = [Column("Position", kind="left"), Column("Samples"), *_spread_columns()]
    return Table(columns, rows, f"in {style.unit}")


def _spread_columns() -> Iterator[Column]:
    for head in _SPREAD.values():
        yield Column(head, label=f"p{head}" if head[0].isdigit() else head)


def _style(spreads: Iterable[Spread], run: ReportedRun) -> units.Times:
    times = ([getattr(one, field)] for one in spreads for field in _SPREAD)
    return units.Times.of(times, run.summary.resolution_ps)


def _spread(spread: Spread, style: units.Times) -> list[str]:
    return [style.number(getattr(spread, field)) for field in _SPREAD]
