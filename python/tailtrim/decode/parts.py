"""One part of a decoded capture: a Parquet file in each bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.decode.dataset import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow.parquet as pq

    from tailtrim import _native

#: Stamps and places grow: their differences are small.
_GROWING = ("packet_index", "stamp_ns", "order_ns")
#: Nothing compresses a hash.
_RANDOM = ("signature_high", "signature_low")
_REPEATING = ("length", "burst_position", "misplaced")


class Part:
    """The files of a part, under other names until :meth:`commit`."""

    def __init__(self, folder: Path, number: int, buckets: int) -> None:
        """Begin a part; what an interrupted one left goes."""
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
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run
        import pyarrow.parquet as pq  # noqa: PLC0415

        for bucket, (draft, _) in enumerate(self._drafts):
            batch = pa.record_batch(decoder.bucket(bucket))
            if not batch.num_rows:
                continue
            writer = self._writers[bucket]
            if writer is None:
                writer = self._writers[bucket] = pq.ParquetWriter(
                    draft,
                    batch.schema,
                    use_dictionary=list(_REPEATING),
                    column_encoding=dict.fromkeys(_GROWING, "DELTA_BINARY_PACKED"),
                    compression={name: "NONE" if name in _RANDOM else "ZSTD" for name in COLUMNS},
                )
            writer.write_batch(batch)

    def commit(self) -> None:
        """Give the files their names."""
        self.close()
        for draft, path in self._drafts:
            if draft.exists():
                draft.rename(path)

    def close(self) -> None:
        """Close the files."""
        for bucket, writer in enumerate(self._writers):
            if writer is not None:
                writer.close()
                self._writers[bucket] = None
