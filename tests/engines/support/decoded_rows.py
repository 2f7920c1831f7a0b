"""Rows of a decoded directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from tailtrim.analysis.decode import Decoded


def rows(decoded: Decoded, number: int) -> list[tuple[Any, ...]]:
    """Return the rows of a capture in the order of the file."""
    found: list[tuple[Any, ...]] = []
    for path in decoded.files(number):
        with path.open("rb") as file:
            columns = pq.ParquetFile(file).read().to_pydict()
        found += zip(*columns.values(), strict=True)
    return sorted(found)
