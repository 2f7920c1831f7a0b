"""OpenMetrics, which Prometheus and its relatives read.

Three files say the same: ``NAME.prom`` is for the node exporter's directory of text files, which
takes no times; ``NAME.openmetrics`` is version 1.0, whose values have the time of the last packet,
on the clock of the captures, so that ``promtool tsdb create-blocks-from openmetrics`` puts a run
where it was. Both have the latencies as a histogram of buckets at 1, 2 and 5 of each decade, and
``promtool check metrics`` accepts them: hence times in whole seconds, and ``p`` as label, since
``quantile`` is for summaries alone. ``NAME.openmetrics2`` is version 2.0 (a release candidate),
with these buckets and a native histogram. Only version 2.0 has native histograms as text. All times
are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from tailtrim.analysis.roundtrip.measured_part import of_run
from tailtrim.publishing.export import Conversion, histograms, tables
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tailtrim.analysis.slo import Objective
    from tailtrim.publishing.export.histograms import Buckets
    from tailtrim.results import RunDirectory
    from tailtrim.results.summary import Egress, Ingress, Summary

_NS = 10**9
_LATENCY = "tailtrim_latency_seconds"


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A metric family: each value with its labels; those that are unknown are left out."""

    name: str
    unit: str | None
    told: str
    values: tuple[tuple[dict[str, str], str | None], ...]


def write(run: RunDirectory, out: Path, *, objectives: Sequence[Objective] = ()) -> Conversion:
    """Write ``NAME.prom`` and its kind (see the module), NAME being that of the run directory.

    Raises:
        RunDirectoryError: the histogram cannot be read.
        OutputError: a file cannot be written.

    """
    name = run.name.encode("utf-8", "backslashreplace").decode()
    at = _stamp(run.summary)
    buckets = histograms.buckets(*tables.histogram(run))
    gauges = [*_what(run), *_gauges(run.summary), *_judged(run, objectives)]
    files = []
    for suffix, histogram, stamp in (
        ("prom", _classic, ""),
        ("openmetrics", _classic, at),
        ("openmetrics2", _composite, at),
    ):
        files.append(out / f"{run.name}.{suffix}")
        lines = [
            *_head(_LATENCY, "histogram", "seconds", "Latency of packets."),
            *histogram(buckets, name, stamp),
            *(line for gauge in gauges for line in _lines(gauge, name, stamp)),
        ]
        with replacing(files[-1]) as file:
            file.write("\n".join([*lines, "# EOF", ""]).encode())
    return Conversion(tuple(files))


def _stamp(summary: Summary) -> str:
    """Return the time of the last packet behind a space; nothing where no packet has a stamp."""
    last_ns = _last_ns(summary)
    return "" if last_ns is None else f" {last_ns // _NS}"


def _last_ns(summary: Summary) -> int | None:
    known = [tap.last_ns for tap in (summary.ingress_tap, summary.egress_tap)]
    return max((ns for ns in known if ns is not None), default=None)


def _seconds(ns: float) -> str:
    return repr(ns / _NS)


def _known_s(ns: float | None) -> str | None:
    return None if ns is None else _seconds(ns)


def _what(run: RunDirectory) -> Iterator[_Gauge]:
    """Yield when the run was, and of round trips which part is measured: not always all of it."""
    told = "Time of the last packet, on the clock of the captures: how old the other values are."
    last_ns = _last_ns(run.summary)
    last = None if last_ns is None else str(last_ns // _NS)
    yield _Gauge("tailtrim_last_packet_timestamp_seconds", "seconds", told, (({}, last),))
    if (part := of_run(run)) is not None:
        # Without what the application saw, which is another number in each run.
        labels = {"part": part.partition("; ")[0]}
        told = "Part of the round trips that the latencies are of."
        yield _Gauge("tailtrim_round_trip_info", None, told, ((labels, "1"),))


def _gauges(summary: Summary) -> Iterator[_Gauge]:
    latency = summary.latency_ns
    mean_ns = latency.mean.value if latency.mean else None
    single = (
        ("min", "Smallest latency.", latency.min),
        ("mean", "Mean latency.", mean_ns),
        ("max", "Largest latency.", latency.max),
    )
    for what, told, ns in single:
        yield _Gauge(f"tailtrim_latency_{what}_seconds", "seconds", told, (({}, _known_s(ns)),))
    confidence = f"{float(latency.confidence) * 100:g} %"
    several = (
        ("quantile", "Quantile of latency by nearest rank.", "value"),
        ("quantile_low", f"Lower bound of the quantile, {confidence} confidence.", "low"),
        ("quantile_high", f"Upper bound of the quantile, {confidence} confidence.", "high"),
    )
    for what, told, bound in several:
        values = tuple(({"p": one.p}, _known_s(getattr(one, bound))) for one in latency.quantiles)
        yield _Gauge(f"tailtrim_latency_{what}_seconds", "seconds", told, values)
    told = "Whether the samples support the quantile; one that they do not is close to the largest."
    supported = tuple(({"p": one.p}, str(int(one.supported))) for one in latency.quantiles)
    yield _Gauge("tailtrim_latency_quantile_supported", None, told, supported)
    adjusted = tuple(
        ({"p": one.p}, "+Inf" if one.value is None else _seconds(one.value))
        for one in (summary.delivery_adjusted_ns if summary.samples else ())
    )
    told = "Quantile of latency, a lost packet being infinitely late."
    yield _Gauge("tailtrim_latency_delivery_adjusted_seconds", "seconds", told, adjusted)
    loss = None if summary.loss is None else repr(summary.loss)
    told = "Share of the packets with a known end that were not delivered."
    yield _Gauge("tailtrim_loss_ratio", "ratio", told, (({}, loss),))
    told = "What became of the packets that entered."
    yield _Gauge("tailtrim_ingress_packets", "packets", told, _outcomes(summary.ingress))
    told = "What became of the packets that left."
    yield _Gauge("tailtrim_egress_packets", "packets", told, _outcomes(summary.egress))


def _judged(run: RunDirectory, objectives: Sequence[Objective]) -> Iterator[_Gauge]:
    """Yield whether each objective holds; of one that is not decided, only that it is not."""
    if not objectives:
        return
    # Takes longer to import than most runs take to convert.
    from tailtrim.analysis.slo import Decision, JudgedRun, promised, verdicts  # noqa: PLC0415

    found = verdicts(run.summary, [one for one in objectives if one.promise is None])
    for _, of_promises in promised([JudgedRun(run.name, run)], objectives):
        found += of_promises
    known = {Decision.PASSED: "1", Decision.FAILED: "0"}
    of_each = [({"objective": str(one.objective)}, known.get(one.decision)) for one in found]
    told = "Whether the objective holds; absent where that is not decided."
    yield _Gauge("tailtrim_objective_met", None, told, tuple(of_each))
    told = "Whether the packets decide if the objective holds."
    decided = tuple((labels, str(int(value is not None))) for labels, value in of_each)
    yield _Gauge("tailtrim_objective_decided", None, told, decided)


def _outcomes(side: Ingress | Egress) -> tuple[tuple[dict[str, str], str], ...]:
    names = [field.name for field in fields(side) if field.name != "packets"]
    return tuple(({"outcome": name}, str(getattr(side, name))) for name in names)


def _lines(gauge: _Gauge, run: str, at: str) -> Iterator[str]:
    known = [(labels, value) for labels, value in gauge.values if value is not None]
    if known:
        yield from _head(gauge.name, "gauge", gauge.unit, gauge.told)
    for labels, value in known:
        yield f"{gauge.name}{_labels({'run': run, **labels})} {value}{at}"


def _head(name: str, kind: str, unit: str | None, told: str) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    if unit is not None:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {told}"


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _classic(found: Buckets, run: str, at: str) -> Iterator[str]:
    for bound, count in _cumulative(found):
        yield f"{_LATENCY}_bucket{_labels({'run': run, 'le': bound})} {count}{at}"
    # In version 1.0 the sum only grows: there is none where some latencies are negative.
    if not found.negative.size:
        yield f"{_LATENCY}_count{_labels({'run': run})} {found.count}{at}"
        yield f"{_LATENCY}_sum{_labels({'run': run})} {_seconds(found.sum_ns)}{at}"


def _cumulative(found: Buckets) -> list[tuple[str, int]]:
    known = [(_seconds(bound_ns), count) for bound_ns, count in found.cumulative]
    return [*known, ("+Inf", found.count)]


def _composite(found: Buckets, run: str, at: str) -> Iterator[str]:
    parts = [
        f"count:{found.count}",
        f"sum:{_seconds(found.sum_ns)}",
        f"schema:{found.schema}",
        "zero_threshold:0.0",
        f"zero_count:{found.zeros}",
    ]
    for name, side in (("negative", found.negative), ("positive", found.positive)):
        if side.size:
            parts.append(f"{name}_spans:[{_joined(side.spans)}]")
            parts.append(f"{name}_buckets:[{','.join(map(str, side.counts))}]")
    parts.append(f"bucket:[{_joined(_cumulative(found))}]")
    yield f"{_LATENCY}{_labels({'run': run})} {{{','.join(parts)}}}{at}"


def _joined(pairs: Iterable[tuple[object, object]]) -> str:
    return ",".join(f"{one}:{other}" for one, other in pairs)
