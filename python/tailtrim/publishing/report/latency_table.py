"""The rows of the latency table, for terminal and page alike."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.publishing.report import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.results.summary import Quantile, Summary


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One run in the table; a quantile is ``None`` where the run was not asked for it."""

    name: str
    summary: Summary
    style: units.Times
    rate: str
    loss: str
    #: Further copies of packets that the device sent.
    copies: int
    quantiles: tuple[Quantile | None, ...]
    adjusted: tuple[Quantile | None, ...] | None
    max_ns: int | None


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """The table: ``columns`` are quantiles in percent, ascending.

    ``beyond`` are quantiles that no run has the samples to tell from the maximum: they have no
    column of their own. ``needed`` are the independent samples that the columns without an upper
    bound take.
    """

    columns: tuple[str, ...]
    beyond: tuple[str, ...]
    needed: tuple[tuple[str, int], ...]
    rows: tuple[LatencyRow, ...]

    @property
    def unit(self) -> str:
        """The unit of its latencies."""
        return self.rows[0].style.unit

    @property
    def marked(self) -> bool:
        """True where a quantile or a bound is not supported."""
        shown = (q for row in self.rows for of in (row.quantiles, row.adjusted or ()) for q in of)
        return any(not q.supported or q.low is None for q in shown if q is not None)

    @property
    def duplicated(self) -> bool:
        """True where a device sent packets more than once: only then is there a column for it."""
        return any(row.copies for row in self.rows)

    @classmethod
    def of(cls, summaries: Sequence[Summary], names: Sequence[str]) -> LatencyTable:
        """Arrange the runs."""
        asked = {quantile.p for summary in summaries for quantile in summary.latency_ns.quantiles}
        most = max((summary.samples for summary in summaries), default=0)
        ordered = sorted(asked, key=Decimal)
        # Percentiles that were imported come without the number of their samples.
        known = {
            quantile.p
            for summary in summaries
            for quantile in summary.latency_ns.quantiles
            if quantile.value is not None and summary.unordered and not summary.samples
        }
        shown = [p for p in ordered if (1 - Decimal(p)) * most >= 1 or p in known]
        needed = {
            quantile.p: quantile.samples_needed
            for summary in summaries
            for quantile in summary.latency_ns.quantiles
            if not quantile.supported
        }
        styles = units.Times.alike([*map(wording.times, summaries)])
        return cls(
            tuple(map(units.percent, shown)),
            tuple(units.percent(p) for p in ordered if p not in shown),
            tuple((units.percent(p), needed[p]) for p in shown if p in needed),
            tuple(
                _row(summary, name, style, shown)
                for summary, name, style in zip(summaries, names, styles, strict=True)
            ),
        )


def _row(summary: Summary, name: str, style: units.Times, shown: Sequence[str]) -> LatencyRow:
    missing, _ = wording.undelivered(summary)
    return LatencyRow(
        name=name,
        summary=summary,
        style=style,
        rate=units.rate(summary.rate_pps),
        loss=wording.loss(summary),
        copies=summary.egress.copy,
        quantiles=_pick([q for q in summary.latency_ns.quantiles if q.value is not None], shown),
        adjusted=_pick(summary.delivery_adjusted_ns, shown) if missing else None,
        max_ns=summary.latency_ns.max,
    )


def _pick(quantiles: Sequence[Quantile], shown: Sequence[str]) -> tuple[Quantile | None, ...]:
    known = {quantile.p: quantile for quantile in quantiles}
    return tuple(known.get(p) for p in shown)
