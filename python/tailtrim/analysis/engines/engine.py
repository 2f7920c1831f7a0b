"""Base class of all engines: :class:`Engine`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tailtrim.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    import ibis.expr.types as ir
    import pyarrow as pa

    from tailtrim.analysis.decode import Captured, Decoded

#: Rows that are handed over at a time.
BATCH_ROWS = 1 << 17


class Engine(ABC):
    """Runs relational expressions over decoded captures; it is closed at the end of a ``with``.

    Everything it makes is its own session's and goes with it. All columns are 64-bit integers.
    """

    name: str
    #: Whether matching bucket by bucket is cheaper than all at once.
    by_bucket: bool
    #: Where pairs of buckets may be put meanwhile; where temporary files are put if ``None``.
    scratch: Path | None
    #: Whether queries read directories as they lie, and not only loaded captures.
    reads_directories = True

    @abstractmethod
    def packets(self, decoded: Decoded) -> ir.Table:
        """Make the packets of a decoded directory readable; the table is ``PACKET``."""

    def number(self, decoded: Decoded, captured: Captured) -> int:  # noqa: ARG002 - of others
        """Return the number by which the table knows a capture: by default the directory's."""
        return captured.number

    @abstractmethod
    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute an expression, and keep its rows as a table in place of one of this name."""

    @abstractmethod
    def add(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute an expression, and add its rows to a table that is kept."""

    @abstractmethod
    def rows(self, expression: ir.Table) -> Iterator[pa.RecordBatch]:
        """Compute an expression and stream its rows."""

    @abstractmethod
    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query of the user's."""

    def views(self, name: str, files: Mapping[str, Sequence[Path]]) -> None:
        """Make Parquet files a table, each with what it is of in the column ``run``."""
        raise NotImplementedError

    def load(self, decoded: Decoded) -> None:  # noqa: ARG002 - of engines with a database
        """Copy a decoded directory into the engine's database, whole or not at all.

        PostgreSQL: into ``tailtrim.packet`` and ``tailtrim.capture``. DuckDB: into ``packet`` and
        ``capture`` of the file that the engine was connected with.

        Raises:
            EngineError: the engine has no database, or refused.

        """
        failure = EngineError(f"{self.name}: has no database to load into")
        failure.add_note("it reads the decoded directory as it lies")
        raise failure

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""

    def __enter__(self) -> Self:
        """Return the engine."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give everything back."""
        self.close()


def integers(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield batches with all columns as 64-bit integers: engines differ in how wide a count is."""
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    schema = pa.schema([pa.field(name, pa.int64()) for name in names])
    for batch in batches:
        yield batch if batch.schema.equals(schema) else batch.cast(schema)
