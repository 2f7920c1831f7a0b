"""The tables of a run directory as numpy columns, checked against its summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from tailtrim.results import RunDirectory

    Column = npt.NDArray[Any]

_BATCH = 1 << 16


def columns(run: RunDirectory, table: str, *names: str) -> list[Column]:
    """Read columns of a table.

    Raises:
        RunDirectoryError: when the table cannot be read or lacks a column.

    """
    return _columns(run.table(table), names, run.path / f"{table}.parquet")


def histogram(run: RunDirectory) -> tuple[Column, Column]:
    """Latencies in ns, ascending, and how often each occurred.

    Raises:
        RunDirectoryError: when they cannot be read or are not as many as the summary says.

    """
    latencies, counts = columns(run, "histogram", "latency_ns", "count")
    check_samples(run, "histogram", int(counts.sum()))
    return latencies, counts


def samples(run: RunDirectory) -> Iterator[tuple[Column, Column, Column]]:
    """Ingress stamp, egress stamp and latency in ns of the samples, a batch at a time.

    Raises:
        RunDirectoryError: when they cannot be read.

    """
    path = run.table_path("sample")
    names = ("ingress_ns", "egress_ns", "latency_ns")
    try:
        # With pre_buffer, the default, every byte read stays in memory until the end.
        with pq.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(names)):
                ingress_ns, egress_ns, latency_ns = _columns(batch, names, path)
                yield ingress_ns, egress_ns, latency_ns
    except (OSError, pa.ArrowException) as error:
        raise RunDirectoryError(f"{path}: the table cannot be read: {error}") from error


def check_samples(run: RunDirectory, table: str, found: int) -> None:
    """See that a table has as many samples as the summary.

    Raises:
        RunDirectoryError: when it has more or fewer.

    """
    if found != run.summary.samples:
        error = RunDirectoryError(
            f"{run.path / table}.parquet: samples found: {found:,}, "
            f"expected {run.summary.samples} as in summary.json"
        )
        error.add_note("The directory is not as `tailtrim analyze` left it: analyze again.")
        raise error


def _columns(table: Any, names: tuple[str, ...], path: Path) -> list[Column]:
    missing = [name for name in names if name not in table.schema.names]
    if missing:
        message = f"{path}: no column {missing[0]!r}, expected {', '.join(names)}"
        raise RunDirectoryError(message)
    return [np.asarray(table.column(name)) for name in names]
