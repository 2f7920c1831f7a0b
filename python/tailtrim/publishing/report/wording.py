"""Results in plain words, for terminal and page alike."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.results import support

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailtrim.analysis.slo import Objective, Verdict
    from tailtrim.publishing.report.table import Row
    from tailtrim.results.summary import Egress, Ingress, Mean, Quantile, Summary

INGRESS = {
    "matched": "matched",
    "lost": "lost",
    "duplicate": "duplicate",
    "beyond_window": "beyond the window",
    "cut": "cut at the captures' ends",
    "trimmed": "trimmed",
    "unstamped": "without a stamp",
    "stalled": "behind a stall of the generator",
    "copy": "copies of a mirror port",
}
EGRESS = {
    "matched": "matched",
    "unmatched": "unmatched",
    "copy": "copies",
    "cut": "cut at the capture's start",
    "trimmed": "trimmed",
    "unstamped": "without a stamp",
    "stalled": "behind a stall of the generator",
}

#: Quantiles that tables of many runs have; those in between are in the report.
SHOWN = ("0.5", "0.99", "0.999", "0.9999")

# These are printed even where there are none: readers look for them.
_ALWAYS = ("matched", "lost", "unmatched")


def sum_of(side: Ingress | Egress, words: dict[str, str]) -> str:
    """Return the outcomes as a sum, without those that do not occur."""
    terms = [
        f"{units.count(number)} {words[field]}"
        for field in words
        if (number := getattr(side, field)) or field in _ALWAYS
    ]
    return f"{units.count(side.packets)} = {' + '.join(terms)}"


def undelivered(summary: Summary) -> tuple[int, int]:
    """Return the packets not delivered within the window, and those whose end is known."""
    missing = summary.ingress.lost + summary.ingress.beyond_window
    return missing, summary.ingress.matched + missing


def loss(summary: Summary) -> str:
    """Return the loss in percent, as a range where duplicates may have been lost."""
    missing, known = undelivered(summary)
    duplicates = summary.ingress.duplicate if known else 0
    least, most = (
        units.loss(count, known + duplicates) for count in (missing, missing + duplicates)
    )
    return least if least == most else f"{least}\N{EN DASH}{most}"


def times(summary: Summary) -> units.Times:
    """Return how the latencies of a run are printed, in one way for all of them."""
    latency = summary.latency_ns
    bounded: list[Quantile | Mean] = [*latency.quantiles, *summary.delivery_adjusted_ns]
    bounded += [latency.mean] if latency.mean is not None else []
    groups = [(one.value, one.low, one.high) for one in bounded]
    return units.Times.of([*groups, (latency.min,), (latency.max,)], summary.resolution_ps)


def quantile(one: Quantile | None, style: units.Times) -> str:
    """Return the number of a quantile, marked where the samples do not support it."""
    if one is None:
        return units.NONE
    text = units.INFINITE if one.value is None else style.number(one.value)
    return text if one.supported else text + units.UNSUPPORTED


def bounds(of: Quantile | Mean, style: units.Times) -> str:
    """Return the interval of a quantile or a mean as the cell of a table."""
    return f"{style.bound(of.low)} {units.NONE} {style.bound(of.high)}"


def cells(summary: Summary, style: units.Times) -> list[str]:
    """Return the quantiles of a table of many runs, and the largest latency."""
    known = {one.p: one for one in summary.latency_ns.quantiles if one.value is not None}
    return [
        *(quantile(known.get(p), style) for p in SHOWN),
        style.number(summary.latency_ns.max),
    ]


def legend(text: str, rows: Iterable[Row]) -> str:
    """Return the line below a table, with what the mark means where a row has it."""
    marked = any(units.UNSUPPORTED in str(cell) for row in rows for cell in row.cells)
    return f"{text} {units.UNSUPPORTED_LEGEND}" if marked else text


def resolution(summaries: Iterable[Summary]) -> str:
    """Return the steps of the stamps of measured runs: ``stamps in steps of 12.5 ns``."""
    steps = {one.resolution_ps for one in summaries if one.samples and not one.unordered}
    told = (f"{ps / 10**6:g} µs" if ps >= 10**6 else f"{ps / 1000:g} ns" for ps in sorted(steps))
    return f"stamps in steps of {' and '.join(told)}" if steps else "stamps unknown"


def verdict(summary: Summary) -> str:
    """Return the strongest statement about the tail that the samples support, as a sentence.

    What is left out at the beginning is said in it.
    """
    if not summary.trim_ns or summary.unordered:
        return _verdict(summary)
    time, packets = seconds(summary.trim_ns), units.count(summary.ingress.trimmed)
    return f"Without the first {time} ({packets} packets): {_verdict(summary)}"


def seconds(ns: int) -> str:
    """Return a time in seconds, with as many decimals as it has.

    >>> seconds(100_000_000)
    '0.1 s'

    """
    return f"{units.fixed(ns, units.SECOND, 9).rstrip('0').rstrip('.')} s"


def _verdict(summary: Summary) -> str:
    missing, known = undelivered(summary)
    if (counted := summary.throughput) is not None:
        sent, received = units.rate(counted.sent_pps), units.rate(counted.received_pps)
        return f"{sent} kpkt/s sent, {received} kpkt/s received; no latency is known."
    if summary.unordered:
        largest = summary.latency_ns.max
        told = (
            "" if largest is None else f"; the largest latency was {times(summary).text(largest)}"
        )
        return f"Percentiles without intervals{told}."
    if not summary.samples and summary.invalid:
        return f"No packet was matched: {summary.invalid[0]}."
    if not summary.samples:
        return "No packet was matched, so there is no latency." + _losses(summary, missing, known)
    if summary.invalid:
        return f"Not the latency of the device: {summary.invalid[0]}."
    delivered = "the delivered packets" if missing else "packets"
    highest = best(summary.latency_ns.quantiles)
    left_out = _left_out(summary, known)
    if highest is None or highest.value is None:
        support = "supports" if summary.samples == 1 else "support"
        count = units.counted(summary.samples, "sample")
        text = f"{count} {support} no percentile{_lacking(summary)}."
        if summary.latency_ns.max is not None:
            text += f" The largest latency was {times(summary).text(summary.latency_ns.max)}."
    else:
        text = (
            f"{units.percent(highest.p)} % of {delivered} within"
            f" {times(summary).text(highest.value)}"
            f" ({confidence(summary)} confidence: {interval(highest, times(summary))})."
        )
    return left_out + text + _losses(summary, missing, known)


def _lacking(summary: Summary) -> str:
    """Say what the quantile lacks that is nearest to being supported."""
    quantiles = summary.latency_ns.quantiles
    nearest = max(quantiles, key=lambda one: one.episodes or 0, default=None)
    if nearest is None or support.is_doubtful(nearest, summary):
        return ""
    return f" (p{units.percent(nearest.p)}: {support.shortage(nearest, summary)})"


def _left_out(summary: Summary, known: int) -> str:
    """Say how many packets are in no percentile, if that keeps one from being told."""
    count = summary.ingress.duplicate
    if not count or not any(
        support.is_doubtful(one, summary) for one in summary.latency_ns.quantiles
    ):
        return ""
    return (
        f"{units.count(count)} of {units.count(count + known)} packets are in"
        " no percentile, because they cannot be told apart: whether they were late or lost is"
        " unknown. "
    )


def confidence(summary: Summary) -> str:
    """Return the confidence of the intervals: ``95 %``."""
    return f"{units.percent(summary.latency_ns.confidence)} %"


def interval(quantile: Quantile, style: units.Times) -> str:
    """Return the interval of a quantile in words, with missing bounds named."""
    low, high = quantile.low, quantile.high
    if low is None:
        return units.UNSUPPORTED if high is None else f"at most {style.text(high)}"
    if high is None:
        return f"at least {style.text(low)}"
    same = style.number(low) == style.number(high)
    return "to the resolution of the stamps" if same else style.span(low, high)


def best(quantiles: tuple[Quantile, ...]) -> Quantile | None:
    """Return the highest quantile that the samples support."""
    known = [q for q in quantiles if q.supported and q.value is not None]
    return max(known, key=lambda q: Decimal(q.p), default=None)


def unsupported(summary: Summary) -> tuple[tuple[str, str], ...]:
    """Return the quantiles that the samples do not support, in percent, and why.

    Those with the same reason are together.
    """
    quantiles: dict[str, list[str]] = {}
    if summary.samples and not summary.unordered:
        for quantile in summary.latency_ns.quantiles:
            if not quantile.supported:
                why = _shortage(quantile, summary)
                quantiles.setdefault(why, []).append(units.percent(quantile.p))
    return tuple((", ".join(percents), why) for why, percents in quantiles.items())


def body(summary: Summary) -> str | None:
    """Return minimum, mean and interquartile range."""
    latency, style = summary.latency_ns, times(summary)
    if latency.min is None or latency.iqr is None:
        return None
    parts = [f"minimum {style.text(latency.min)}"]
    if (mean := latency.mean) is not None:
        parts.append(f"mean {style.bounded(mean.value, mean.low, mean.high)}")
    # It may be far below all latencies, whose unit would need more digits.
    range_alone = units.Times.of([[latency.iqr]], summary.resolution_ps).text(latency.iqr)
    return ", ".join([*parts, f"interquartile range {range_alone}"])


def clusters(summary: Summary) -> str | None:
    """Return whether the worst packets come one by one or together."""
    worst = summary.worst
    if not worst.count:
        return None
    since = "" if worst.from_ns is None else f" ({times(summary).text(worst.from_ns)} and more)"
    packets = units.counted(worst.count, "worst packet")
    form = "forms" if worst.count == 1 else "form"
    return f"the {packets}{since} {form} {units.counted(worst.clusters, 'cluster')}"


def known_of(verdict: Verdict) -> str:
    """Return value and interval of an objective, or why there is none."""
    objective = verdict.objective
    if verdict.value is None or objective.what == "loss" or objective.promise is not None:
        return verdict.why
    ends = verdict.low, verdict.high
    return with_interval(objective, verdict.value, *ends, verdict.resolution_ps)


def with_interval(
    objective: Objective,
    value: float,
    low: float | None,
    high: float | None,
    resolution_ps: int = 1_000,
) -> str:
    """Return the value of an objective and its interval, told apart from each other and the limit.

    >>> from tailtrim.analysis.slo import objectives
    >>> with_interval(objectives("p99 < 50us")[0], 49_980, 49_970, None)
    '49.98 µs (49.97 to *)'

    """
    if objective.what != "loss":
        style = units.Times.of([[value, low, high, float(objective.limit)]], resolution_ps)
        return style.bounded(value, low, high)
    ends = [units.UNSUPPORTED if end is None else f"{units.about(end)} %" for end in (low, high)]
    return f"{units.about(value)} %" + ("" if low == high else f" ({' to '.join(ends)})")


def _losses(summary: Summary, missing: int, known: int) -> str:
    if not missing:
        return ""
    text = (
        f" {units.count(missing)} of {units.count(known)} packets"
        f" ({units.loss(missing, known)} %) were not delivered"
    )
    highest = best(summary.delivery_adjusted_ns)
    if highest is None or highest.value is None:
        return text + "."
    return (
        f"{text}: counted as infinitely late, {units.percent(highest.p)} % of all packets are"
        f" within {times(summary).text(highest.value)}."
    )


def _shortage(quantile: Quantile, summary: Summary) -> str:
    if support.is_doubtful(quantile, summary):
        return "not supported: too many packets are in no percentile"
    separator = ", " if summary.samples < quantile.samples_needed else ": "
    return (
        f"not supported by {units.counted(summary.samples, 'sample')}{separator}"
        f"{support.shortage(quantile, summary)}"
    )
