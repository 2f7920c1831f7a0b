"""PostgreSQL's binary COPY for rows of 64-bit integers.

After a header of 19 bytes each row is a 16-bit number of fields, then for each field its length
(32 bits, here 8, or -1 for null) and value, all big endian; a row of -1 fields ends it
(PostgreSQL's manual, COPY, "Binary Format"). Rows of equal length are an array to NumPy; a null has
no value, so its bytes are taken out of the array. The columns read here have no nulls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
_BYTES = 8
_LENGTH_BYTES = 4
_NULL = -1


def _row(columns: int) -> np.dtype[Any]:
    fields = [("fields", ">i2")]
    for column in range(columns):
        fields += [(f"length{column}", ">i4"), (f"value{column}", ">i8")]
    return np.dtype(fields)


def encode(batch: pa.RecordBatch) -> bytes:
    """Return the rows of a batch, without header and trailer."""
    row = _row(batch.num_columns)
    rows = np.empty(batch.num_rows, row)
    rows["fields"] = batch.num_columns
    kept = None
    for index, column in enumerate(batch.columns):
        rows[f"length{index}"] = _BYTES
        if column.null_count:
            there = column.is_valid().to_numpy(zero_copy_only=False)
            rows[f"length{index}"][~there] = _NULL
            kept = np.ones((len(rows), row.itemsize), np.bool_) if kept is None else kept
            end = row.itemsize - (batch.num_columns - 1 - index) * (_LENGTH_BYTES + _BYTES)
            kept[:, end - _BYTES : end] = there[:, np.newaxis]
            column = column.fill_null(0)  # noqa: PLW2901 - the same column
        rows[f"value{index}"] = column.to_numpy(zero_copy_only=False)
    if kept is None:
        return rows.tobytes()
    return rows.view(np.uint8).reshape(kept.shape)[kept].tobytes()


def decode(
    chunks: Iterable[bytes | bytearray | memoryview], names: Sequence[str], *, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a whole COPY, header and trailer included.

    Raises:
        ValueError: a row holds something else than 64-bit integers.

    """
    row = _row(len(names))
    buffer = bytearray()
    header = True
    for chunk in chunks:
        buffer += chunk
        if header:
            if len(buffer) < len(HEADER):
                continue
            del buffer[: len(HEADER)]
            header = False
        if len(buffer) >= batch_rows * row.itemsize:
            whole = len(buffer) // row.itemsize * row.itemsize
            yield _batch(bytes(buffer[:whole]), row, names)
            del buffer[:whole]
    if buffer.endswith(TRAILER):
        del buffer[-len(TRAILER) :]
    yield _batch(bytes(buffer), row, names)


def _batch(rows: bytes, row: np.dtype[Any], names: Sequence[str]) -> pa.RecordBatch:
    values = np.frombuffer(rows, row)
    for index in range(len(names)):
        if not (values[f"length{index}"] == _BYTES).all():
            raise ValueError(f"column {names[index]} is null or not a 64-bit integer")
    return pa.record_batch(
        {
            name: pa.array(values[f"value{index}"].astype(np.int64))
            for index, name in enumerate(names)
        }
    )
