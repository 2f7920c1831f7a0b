"""Round trips as a run directory: probes sent are what enters, replies what leaves."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim import _native
from tailtrim.rundir import Summary
from tailtrim.rundir.writing import Draft, provenance, sha256

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

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


def leave(  # noqa: PLR0913 - keyword-only options, each with a default
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
        summary: the summary as whoever measured wrote it; by default that of the analysis.
        tables: further tables to leave beside the usual ones.

    Returns:
        The summary.

    Raises:
        OutputError: ``out`` cannot be written.

    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - takes longer to import than most commands run

    took_ns = series.round_trip_ns[series.answered]
    longest_ns = int(took_ns.max(initial=0)) + 1
    with tempfile.TemporaryDirectory() as folder, Draft(out) as draft:
        sent, received = Path(folder, "sent.pcap"), Path(folder, "received.pcap")
        numbers = _numbers(len(series.sent_ns))
        _write(sent, series.sent_ns, numbers, series.length)
        arrived_ns = (series.sent_ns + series.round_trip_ns)[series.answered]
        _write(received, arrived_ns, numbers[series.answered], series.length)
        native = _native.analyze(
            sent,
            received,
            signature="0:8",
            masks=[],
            trim_ns=0,
            window_ns=min(timeout_ns or max(longest_ns, 5 * 10**9), _LONGEST_NS),
            quantiles=[],
            confidence="0.95",
            x552_trailer=False,
            salvage=False,
            watched_to_the_end=True,
            directory=draft.path,
            keep_samples=False,
            progress=None,
        )
        native.write_tables(draft.path)
        for name, table in (tables or {}).items():
            pq.write_table(table, draft.path / f"{name}.parquet", compression="zstd")
        text = summary or native.summary_json().replace(f"{folder}/", f"{series.name}, ")
        draft.commit(text, provenance(inputs, [sha256(path) for path in inputs]))
    return Summary.from_json(text)


def _numbers(count: int) -> np.ndarray[Any, Any]:
    import numpy as np  # noqa: PLC0415 - as above

    return np.arange(count, dtype=np.uint64)


def _write(
    path: Path, stamps_ns: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], length: int
) -> None:
    """Write a capture whose frames are the numbers alone, in the order of their stamps."""
    import numpy as np  # noqa: PLC0415 - as above

    records = np.empty(
        len(stamps_ns),
        [("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("length", "<u4"), ("number", ">u8")],
    )
    order = np.argsort(stamps_ns, kind="stable")
    records["s"], records["ns"] = np.divmod(stamps_ns[order], 10**9)
    records["kept"], records["length"] = 8, max(length, 8)
    records["number"] = numbers[order]
    # Nanosecond pcap 2.4, 8 bytes of each frame, Ethernet.
    header = bytes.fromhex("4d3cb2a1 0200 0400 00000000 00000000 08000000 01000000")
    path.write_bytes(header + records.tobytes())
