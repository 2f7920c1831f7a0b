"""One part of a decoded capture: a Parquet file in each bucket."""

from __future__ import annotations

from concurrent.futures import wait
from contextlib import suppress
from typing import TYPE_CHECKING

from tailtrim.analysis.decode.dataset import COLUMNS
from tailtrim.results.drafts import settle

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    import pyarrow as pa
    import pyarrow.parquet as pq

    from tailtrim import _native

#: Rows that a decoder holds for each bucket before it writes them.
_ROWS_OF_BUCKET = 1 << 13
_FEWEST_ROWS = 1 << 18
#: Stamps and places grow: their differences are small.
_GROWING = ("packet_index", "stamp_ns", "order_ns", "gap_ns", "sequence")
_SIGNATURE = ("signature_high", "signature_low")
_REPEATING = ("length", "burst_position", "misplaced", "flow")


class Part:
    """The files of a part, under other names until :meth:`commit`, without which they go."""

    def __init__(self, folder: Path, number: int, buckets: int, pool: Executor) -> None:
        """Begin a part that the pool's threads write; remove the files of an interrupted one."""
        self._pool = pool
        self._drafts: list[tuple[Path, Path]] = []
        for bucket in range(buckets):
            place = folder / f"bucket={bucket:02}"
            place.mkdir(parents=True, exist_ok=True)
            path = place / f"part-{number:05}.parquet"
            path.unlink(missing_ok=True)
            # Readers of folders pass over names that begin with a dot.
            self._drafts.append((path.with_name(f".{path.name}"), path))
        self._writers: list[pq.ParquetWriter | None] = [None] * buckets

    def add(self, decoder: _native.NativeDecoder) -> None:
        """Write what the decoder read last."""
        writing = [
            self._pool.submit(self._write, bucket, decoder) for bucket in range(len(self._drafts))
        ]
        # None may be left at work on files that are removed because another one failed.
        wait(writing)
        for written in writing:
            written.result()

    def _write(self, bucket: int, decoder: _native.NativeDecoder) -> None:
        batch = decoder.bucket(bucket)
        if not batch.num_rows:
            return
        writer = self._writers[bucket]
        if writer is None:
            writer = self._writers[bucket] = _writer(self._drafts[bucket][0], batch)
        writer.write_batch(batch)

    def commit(self) -> None:
        """Give the files their names."""
        for bucket, writer in enumerate(self._writers):
            if writer is not None:
                writer.close()
                self._writers[bucket] = None
        for draft, path in self._drafts:
            if draft.exists():
                settle(draft, path)

    def __enter__(self) -> Self:
        """Return the part."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the files, unless the part was committed."""
        for writer in self._writers:
            if writer is not None:
                # The error that keeps the file from being closed is reported already.
                with suppress(OSError):
                    writer.close()
                # Else it is closed again when it is collected, and complains.
                writer.is_open = False
        for draft, _ in self._drafts:
            draft.unlink(missing_ok=True)


def read_rows(
    decoder: _native.NativeDecoder,
    part: Part | None,
    buckets: int,
    most: int,
    tell: Callable[[], object],
) -> int:
    """Read at most so many rows, into a part if there is one; return how many: fewer at the end."""
    rows = max(_FEWEST_ROWS, buckets * _ROWS_OF_BUCKET)
    done = 0
    while done < most:
        read = decoder.read(min(rows, most - done))
        if read == 0:
            break
        if part is not None:
            part.add(decoder)
        done += read
        tell()
    return done


def _writer(path: Path, batch: pa.RecordBatch) -> pq.ParquetWriter:
    import pyarrow.compute as pc  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    high = pc.min_max(batch.column("signature_high")).as_py()
    # A packet number as signature is spread by a constant factor: growing numbers keep small
    # differences. Nothing compresses a hash.
    counted = high["min"] == high["max"] == 0
    growing = (*_GROWING, *_SIGNATURE) if counted else _GROWING
    random = () if counted else _SIGNATURE
    return pq.ParquetWriter(
        path,
        batch.schema,
        use_dictionary=list(_REPEATING),
        column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
        compression={name: "NONE" if name in random else "ZSTD" for name in COLUMNS},
    )
