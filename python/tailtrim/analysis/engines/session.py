"""Base class of the engines: closed at the end of a ``with``, results as 64-bit integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

#: Rows that are handed over at a time.
BATCH_ROWS = 1 << 17


class Session:
    """An engine that is closed at the end of a ``with``."""

    def close(self) -> None:
        """Give everything back."""

    def __enter__(self) -> Self:
        """Return the engine."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give everything back."""
        self.close()


def integers(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield batches with all columns as 64-bit integers: engines differ in how wide a count is."""
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    schema = pa.schema([pa.field(name, pa.int64()) for name in names])
    for batch in batches:
        yield batch if batch.schema.equals(schema) else batch.cast(schema)
