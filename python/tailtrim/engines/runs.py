"""Pairs of the buckets that are matched, on disk until all are: :class:`Runs`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

#: Columns with few values; the others grow.
_REPEATING = ("decided_side", "burst_position")
#: Rows of a run that the merge holds.
_HELD_ROWS = 1 << 13


class Runs:
    """A folder of Parquet files, each with pairs in order; it goes at the end of a ``with``."""

    def __init__(self, scratch: Path | None) -> None:
        """Make the folder, in the usual place for such if none is named."""
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="tailtrim-pairs-", dir=scratch)
        except OSError as error:
            raise OutputError(f"{scratch}: cannot be written: {error.strerror}") from error
        self._paths: list[Path] = []

    def write(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Write a run."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - takes longer to import than most commands run

        path = Path(self._folder.name) / f"run-{len(self._paths):05}.parquet"
        writer = None
        try:
            for batch in batches:
                if writer is None:
                    growing = [name for name in batch.schema.names if name not in _REPEATING]
                    writer = pq.ParquetWriter(
                        path,
                        batch.schema,
                        use_dictionary=list(_REPEATING),
                        column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
                        compression="NONE",
                        write_statistics=False,
                    )
                writer.write_batch(batch)
        except OSError as error:
            failure = OutputError(f"{path.parent}: cannot be written: {error.strerror or error}")
            failure.add_note("--scratch DIR names a disk with more room: about 10 bytes a pair")
            raise failure from error
        finally:
            if writer is not None:
                writer.close()
                self._paths.append(path)

    def batches(self) -> list[Iterator[pa.RecordBatch]]:
        """Return what reads each run."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        return [
            pq.ParquetFile(path, memory_map=True).iter_batches(_HELD_ROWS) for path in self._paths
        ]

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
        self._folder.cleanup()
