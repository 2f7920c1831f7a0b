"""Columns of tables as arrays of numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    Integers = np.ndarray[Any, np.dtype[np.int64]]


def integers(column: pa.ChunkedArray) -> Integers:
    """Return the integers of a column; 0 in place of those that are not there.

    ``to_numpy`` and ``fill_null`` bring pandas where that is installed: half a second.

    Raises:
        ValueError: the column is of another type.

    """
    from pyarrow import types  # noqa: PLC0415 - whoever has a column has loaded it

    if not types.is_integer(column.type):
        raise ValueError(f"found a column of type {column.type}, expected integers")
    chunks = [np.from_dlpack(_filled(chunk)) for chunk in column.chunks]
    return np.concatenate([np.empty(0, np.int64), *chunks]).astype(np.int64)


def _filled(chunk: pa.Array) -> pa.Array:
    if chunk.null_count == 0:
        return chunk
    import pyarrow.compute as pc  # noqa: PLC0415 - few columns need it
    from pyarrow import Array, py_buffer  # noqa: PLC0415

    zeros = py_buffer(bytes(len(chunk) * chunk.type.bit_width // 8))
    return pc.coalesce(chunk, Array.from_buffers(chunk.type, len(chunk), [None, zeros]))
