"""Round trips as a run directory: probes sent are its ingress, replies its egress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.results import Summary
from tailtrim.results.writing import Draft, provenance, sha256

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    import pyarrow as pa

_LONGEST_NS = 2**62


@dataclass(frozen=True)
class Series:
    """Round trips in any order: when each probe left, and how long it took, -1 where no reply came.

    ``sent_ns`` and ``round_trip_ns`` are integer arrays of the same length; ``length`` is that of a
    frame in bytes.
    """

    name: str
    sent_ns: np.ndarray[Any, Any]
    answered: np.ndarray[Any, Any]
    round_trip_ns: np.ndarray[Any, Any]
    length: int


def write_run(  # noqa: PLR0913 - keyword-only options, each with a default
    out: str | os.PathLike[str],
    series: Series,
    *,
    inputs: Sequence[Path] = (),
    timeout_ns: int | None = None,
    summary: str | None = None,
    tables: dict[str, pa.Table] | None = None,
) -> Summary:
    """Analyse round trips as ``analyze`` does captures, and leave a run directory.

    Args:
        out: where to.
        series: the round trips.
        inputs: the files that they come from, for the provenance.
        timeout_ns: after which a reply counts as late; by default none does.
        summary: the summary as the measuring tool wrote it; by default that of the analysis.
        tables: tables to leave in addition to the usual ones.

    Returns:
        The summary.

    Raises:
        OutputError: ``out`` cannot be written.

    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - takes longer to import than most commands run

    took_ns = series.round_trip_ns[series.answered]
    longest_ns = int(took_ns.max(initial=0)) + 1
    numbers = _numbers(len(series.sent_ns))
    received_ns = (series.sent_ns + series.round_trip_ns)[series.answered]
    with Draft(out) as draft:
        native = _native.analyze_round_trips(
            [_side(series.sent_ns, numbers)],
            [_side(received_ns, numbers[series.answered])],
            names=(f"{series.name}, sent.pcap", f"{series.name}, received.pcap"),
            length=series.length,
            window_ns=min(timeout_ns or max(longest_ns, 5 * 10**9), _LONGEST_NS),
            directory=draft.path,
        )
        native.write_tables(draft.path)
        for name, table in (tables or {}).items():
            pq.write_table(table, draft.path / f"{name}.parquet", compression="zstd")
        text = summary or native.summary_json()
        draft.commit(text, provenance(inputs, [sha256(path) for path in inputs]))
    return Summary.from_json(text)


def _numbers(count: int) -> np.ndarray[Any, Any]:
    import numpy as np  # noqa: PLC0415 - as above

    return np.arange(count, dtype=np.int64)


def _side(stamps_ns: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]) -> pa.RecordBatch:
    """Put the packets of a side in the order of their stamps."""
    import numpy as np  # noqa: PLC0415 - as above
    import pyarrow as pa  # noqa: PLC0415 - as above

    order = np.argsort(stamps_ns, kind="stable")
    return pa.record_batch(
        {
            "stamp_ns": pa.array(stamps_ns[order].astype(np.int64)),
            "number": pa.array(numbers[order]),
        }
    )
