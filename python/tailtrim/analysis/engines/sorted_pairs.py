"""Pairs of the buckets that are matched, on disk until all are: :class:`SortedPairs`."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

#: Columns with few values; the others grow.
_REPEATING = ("decided_side", "burst_position")
#: Rows that the merge holds, of all runs, and of one at most. Arrow's memory is several times as
#: large: 512 runs of 2^13 rows each took 2 GiB.
_HELD_ROWS = 1 << 20
_HELD_ROWS_OF_RUN = 1 << 13
#: Bytes of a column that are read ahead, and about those of its pages. Otherwise Arrow reads whole
#: files: 18 MiB for each 2 million pairs, and a billion of them have 512 files open.
_AHEAD = 1 << 14


class SortedPairs:
    """A folder of Parquet files, each with pairs in order; it goes at the end of a ``with``."""

    def __init__(self, scratch: Path | None) -> None:
        """Make the folder, in the usual place for such if none is named."""
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="tailtrim-pairs-", dir=scratch)
        except OSError as error:
            raise OutputError(f"{scratch}: cannot be written: {error.strerror}") from error
        self._paths: list[Path] = []
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Write a run. Its rows are taken at once and written while the next ones are computed."""
        held = [batch for batch in batches if batch.num_rows]
        self._written()
        if held:
            path = Path(self._folder.name) / f"run-{len(self._paths):05}.parquet"
            self._paths.append(path)
            self._writing = self._pool.submit(self._write, path, held)

    def _written(self) -> None:
        """Make sure that the file written last is whole."""
        if self._writing is not None:
            self._writing.result()

    @staticmethod
    def _write(path: Path, batches: list[pa.RecordBatch]) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 - takes longer to import than most commands run

        growing = [name for name in batches[0].schema.names if name not in _REPEATING]
        try:
            with pq.ParquetWriter(
                path,
                batches[0].schema,
                use_dictionary=list(_REPEATING),
                column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
                compression="NONE",
                data_page_size=_AHEAD,
                write_statistics=False,
            ) as writer:
                # From the end, so that written rows are released.
                batches.reverse()
                while batches:
                    writer.write_batch(batches.pop())
        except OSError as error:
            failure = OutputError(f"{path.parent}: cannot be written: {error.strerror or error}")
            failure.add_note(Remedy("{scratch} names a disk with more room"))
            raise failure from error

    def batches(self) -> list[Iterator[pa.RecordBatch]]:
        """Return what reads each run."""
        self._written()
        rows = min(_HELD_ROWS // max(len(self._paths), 1), _HELD_ROWS_OF_RUN)
        return [self._read(path, rows) for path in self._paths]

    def _read(self, path: Path, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a run; the next ones are read while the merge uses these."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        file = pq.ParquetFile(path, buffer_size=_AHEAD, pre_buffer=False)
        batches = file.iter_batches(rows)
        ahead = self._pool.submit(next, batches, None)
        while (batch := ahead.result()) is not None:
            ahead = self._pool.submit(next, batches, None)
            yield batch

    def __enter__(self) -> Self:
        """Return the runs."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the folder."""
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()
