"""A distribution, or rates, without the packets behind it as a run directory: :func:`leave`.

A histogram does not have the order of the packets. So no quantile has an interval, there are no
samples, and nothing is known of loss, gaps, bursts or single packets.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.results import Summary
from tailtrim.results.summary import NO_ORDER
from tailtrim.results.writing import Draft, provenance, sha256

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.results.summary import Throughput
    from tailtrim_pos.results.csv_tables import Histogram, Percentiles

_TEN = Decimal(10)


def leave(
    out: Path,
    histogram: Histogram | None,
    percentiles: Percentiles | None,
    inputs: Sequence[Path],
    *,
    throughput: Throughput | None = None,
) -> Summary:
    """Leave a run directory of a histogram, of percentiles (or both), or of rates.

    Where both are there, percentiles are the quantiles: they are exact where buckets are not.

    Raises:
        OutputError: the directory cannot be written.

    """
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run
    import pyarrow.parquet as pq  # noqa: PLC0415

    curve = _curve(histogram, percentiles)
    with Draft(out) as draft:
        nothing = pa.record_batch(
            {"stamp_ns": pa.array([], pa.int64()), "number": pa.array([], pa.int64())}
        )
        name = inputs[0].name
        native = _native.analyze_round_trips(
            (nothing,), (nothing,), names=(name, name), length=0, window_ns=1, directory=draft.path
        )
        native.write_tables(draft.path)
        # An empty table would say that there were no packets.
        (draft.path / "sample.parquet").unlink()
        rows: dict[str, dict[str, list[Any]]] = {
            "quantile": {
                "p": [f"{p:f}" for p in curve],
                "value_ns": list(curve.values()),
                "low_ns": [None] * len(curve),
                "high_ns": [None] * len(curve),
                "effective_samples": [0] * len(curve),
            }
        }
        if histogram is not None:
            latencies_ns, counts = list(histogram.latencies_ns), list(histogram.counts)
            rows["histogram"] = {"latency_ns": latencies_ns, "count": counts}
        for table, columns in rows.items():
            place = draft.path / f"{table}.parquet"
            made = pa.table(columns, schema=pq.read_schema(place))
            pq.write_table(made, place, compression="zstd")
        told = _summary(native.summary_json(), histogram, percentiles)
        if throughput is not None:
            told["throughput"] = asdict(throughput)
        text = json.dumps(told, indent=2)
        draft.commit(text, provenance(inputs, [sha256(path) for path in inputs]))
    return Summary.from_json(text)


def _curve(histogram: Histogram | None, percentiles: Percentiles | None) -> dict[Decimal, int]:
    """Return the quantiles along the curve: those given, or nine a decade of a histogram."""
    if percentiles is not None:
        return dict(sorted(percentiles.values_ns.items()))
    if histogram is None:
        return {}
    shares = []
    decade = 1
    while _TEN ** (decade - 1) <= histogram.samples:
        shares += [1 - tenths * _TEN**-decade for tenths in range(9, 0, -1)]
        decade += 1
    kept = [p for p in shares if (1 - p) * histogram.samples >= 1]
    return {p.normalize(): histogram.at(p) for p in kept}


def _summary(
    empty: str, histogram: Histogram | None, percentiles: Percentiles | None
) -> dict[str, Any]:
    """Fill the summary of no packets with what is known."""
    told: dict[str, Any] = json.loads(empty)
    told["samples"] = histogram.samples if histogram is not None else 0
    told["signature"] |= {"selection": None, "bytes": 0}
    latency = told["latency_ns"]
    for row in latency["quantiles"]:
        p = Decimal(row["p"])
        if percentiles is not None:
            row["value"] = percentiles.values_ns.get(p)
        elif histogram is not None:
            row["value"] = histogram.at(p)
    if percentiles is not None:
        latency["max"] = percentiles.max_ns
    if histogram is not None:
        latency["min"] = histogram.latencies_ns[0]
        latency["iqr"] = histogram.at(Decimal("0.75")) - histogram.at(Decimal("0.25"))
        if latency["max"] is None:
            latency["max"] = histogram.latencies_ns[-1]
        pairs = zip(histogram.latencies_ns, histogram.counts, strict=True)
        total = sum(latency_ns * count for latency_ns, count in pairs)
        latency["mean"] = {"value": round(total / histogram.samples), "low": None, "high": None}
    told["warnings"] = [
        {"code": code, "count": told["samples"], "text": text}
        for code, text in _warnings(histogram, percentiles)
    ]
    return told


def _warnings(
    histogram: Histogram | None, percentiles: Percentiles | None
) -> list[tuple[str, str]]:
    if histogram is None and percentiles is None:
        return [(NO_ORDER, "imported from logs of rates: no latency of a packet is known")]
    of = "a histogram" if histogram is not None else "percentiles"
    unknown = f"imported from {of}: the order of the packets is unknown"
    lacking = "so quantiles have no confidence intervals, and compare and explain do not work"
    told = [(NO_ORDER, f"{unknown}, {lacking}")]
    if histogram is not None and histogram.bucket_ns > 1:
        exact = "minimum, mean and figures" if percentiles is not None else "all latencies"
        text = f"latencies are the lower ends of buckets of {histogram.bucket_ns} ns: {exact}"
        told.append(("buckets", text))
    return told
