"""OpenMetrics, which Prometheus and its relatives read.

Two files say the same: ``NAME.openmetrics`` is version 1.0, with the latencies as a histogram of
buckets at 1, 2 and 5 of each decade; ``NAME.openmetrics2`` is version 2.0 (a release candidate),
with these buckets and a native histogram. Only version 2.0 has native histograms as text. All
times are seconds. Each value has the time of the last packet, on the clock of the captures, so that
``promtool tsdb create-blocks-from openmetrics`` puts a run where it was.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from tailtrim.publishing.export import Conversion, histograms, tables
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tailtrim.publishing.export.histograms import Buckets
    from tailtrim.results import RunDirectory
    from tailtrim.results.summary import Egress, Ingress, Summary

_NS = 10**9
_LATENCY = "tailtrim_latency_seconds"


@dataclass(frozen=True, slots=True)
class _Gauge:
    """A metric family: each value with its labels; those that are unknown are left out."""

    name: str
    unit: str
    told: str
    values: tuple[tuple[dict[str, str], str | None], ...]


def write(run: RunDirectory, out: Path) -> Conversion:
    """Write ``NAME.openmetrics`` and ``NAME.openmetrics2``, NAME being that of the run directory.

    Raises:
        RunDirectoryError: the histogram cannot be read.
        OutputError: a file cannot be written.

    """
    name = run.name.encode("utf-8", "backslashreplace").decode()
    at = _stamp(run.summary)
    buckets = histograms.buckets(*tables.histogram(run))
    gauges = [line for gauge in _gauges(run.summary) for line in _lines(gauge, name, at)]
    texts = {
        "openmetrics": _classic(buckets, name, at),
        "openmetrics2": _composite(buckets, name, at),
    }
    files = []
    for suffix, histogram in texts.items():
        files.append(out / f"{run.name}.{suffix}")
        lines = [*_head(_LATENCY, "histogram", "seconds", "Latency of packets."), *histogram]
        with replacing(files[-1]) as file:
            file.write("\n".join([*lines, *gauges, "# EOF", ""]).encode())
    return Conversion(tuple(files))


def _stamp(summary: Summary) -> str:
    """Return the time of the last packet behind a space; nothing where no packet has a stamp."""
    known = [tap.last_ns for tap in (summary.ingress_tap, summary.egress_tap)]
    last_ns = max((ns for ns in known if ns is not None), default=None)
    return "" if last_ns is None else f" {_seconds(last_ns // 10**6 * 10**6)}"


def _seconds(ns: float) -> str:
    return repr(ns / _NS)


def _known_s(ns: float | None) -> str | None:
    return None if ns is None else _seconds(ns)


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
        values = tuple(
            ({"quantile": one.p}, _known_s(getattr(one, bound))) for one in latency.quantiles
        )
        yield _Gauge(f"tailtrim_latency_{what}_seconds", "seconds", told, values)
    adjusted = tuple(
        ({"quantile": one.p}, "+Inf" if one.value is None else _seconds(one.value))
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


def _outcomes(side: Ingress | Egress) -> tuple[tuple[dict[str, str], str], ...]:
    names = [field.name for field in fields(side) if field.name != "packets"]
    return tuple(({"outcome": name}, str(getattr(side, name))) for name in names)


def _lines(gauge: _Gauge, run: str, at: str) -> Iterator[str]:
    known = [(labels, value) for labels, value in gauge.values if value is not None]
    if known:
        yield from _head(gauge.name, "gauge", gauge.unit, gauge.told)
    for labels, value in known:
        yield f"{gauge.name}{_labels({'run': run, **labels})} {value}{at}"


def _head(name: str, kind: str, unit: str, told: str) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
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
