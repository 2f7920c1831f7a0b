"""A run with a trace of the host, made up."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import tailtrim

if TYPE_CHECKING:
    from pathlib import Path


def traced(
    directory: Path, testpmd: tuple[Path, Path], header: dict[str, Any], *more: dict[str, Any]
) -> None:
    """Make a run of 20,000 packets, stalled by a tick for 9 and by shootdowns for 30 µs."""
    shutil.rmtree(directory, ignore_errors=True)
    tailtrim.analyze(*testpmd, out=directory)
    events: list[dict[str, Any]] = [
        {
            "cpu": 1,
            "start_ns": start_ns + n * 1_000_000,
            "end_ns": start_ns + n * 1_000_000 + length_ns,
            "kind": "irq",
            "name": name,
            "detail": detail,
            "sender": sender,
        }
        for n in range(100)
        for start_ns, length_ns, name, detail, sender in (
            (40_000, 9_000, "local_timer", None, None),
            (
                517_000,
                30_000,
                "call_function",
                "flush_tlb_func",
                {"pid": 812, "comm": "stress", "function": "munmap"},
            ),
        )
    ]
    ingress = np.cumsum(2_000 + np.arange(20_000) * 7919 % 4_000)
    egress, free = [], 0
    stalls = [(event["start_ns"], event["end_ns"]) for event in events]
    for arrival in ingress.tolist():
        served = max(arrival, free)
        served = next((end for start, end in stalls if start <= served < end), served)
        free = served + 500
        egress.append(free + 2_000)
    columns = {"ingress_ns": ingress, "egress_ns": np.array(egress)}
    table = pa.table({**columns, "latency_ns": columns["egress_ns"] - ingress})
    pyarrow.parquet.write_table(table, directory / "sample.parquet")
    lines = [json.dumps(line) for line in (header, *events, *more)]
    with pa.output_stream(str(directory / "events.jsonl.zst"), compression="zstd") as stream:
        stream.write(("\n".join(lines) + "\n").encode())


HEADER = {
    "schema": "tailtrim.events/1",
    "error_ns": 100,
    "holes": 0,
    "cpus": "1",
    "missing": ["csd"],
}
