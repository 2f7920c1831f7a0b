"""PostgreSQL's binary COPY for rows of 64-bit integers without nulls.

After a header of 19 bytes each row is a 16-bit number of fields, then for each field its length
(32 bits, here always 8) and value, all big endian; a row of -1 fields ends it (PostgreSQL's manual,
COPY, "Binary Format"). Rows of equal length are an array to NumPy.
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


def _row(columns: int) -> np.dtype[Any]:
    fields = [("fields", ">i2")]
    for column in range(columns):
        fields += [(f"length{column}", ">i4"), (f"value{column}", ">i8")]
    return np.dtype(fields)


def encode(batch: pa.RecordBatch) -> bytes:
    """Return the rows of a batch, without header and trailer."""
    rows = np.empty(batch.num_rows, _row(batch.num_columns))
    rows["fields"] = batch.num_columns
    for index, column in enumerate(batch.columns):
        rows[f"length{index}"] = _BYTES
        rows[f"value{index}"] = column.to_numpy(zero_copy_only=False)
    return rows.tobytes()


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
            raise ValueError(f"column {names[index]} is no 64-bit integer, or null")
    return pa.record_batch(
        {
            name: pa.array(values[f"value{index}"].astype(np.int64))
            for index, name in enumerate(names)
        }
    )
