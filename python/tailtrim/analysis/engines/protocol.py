"""Interface of all engines: :class:`Engine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    import ibis.expr.types as ir
    import pyarrow as pa

    from tailtrim.analysis.decode import Captured, Decoded


class Engine(Protocol):
    """Runs relational expressions over decoded captures.

    Everything it makes is its own session's and goes with it. All columns are 64-bit integers.
    """

    name: str
    #: Whether matching bucket by bucket is cheaper than all at once.
    by_bucket: bool
    #: Where pairs of buckets may be put meanwhile; where temporary files are put if ``None``.
    scratch: Path | None

    def packets(self, decoded: Decoded) -> ir.Table:
        """Make the packets of a decoded directory readable; the table is ``PACKET``."""

    def number(self, decoded: Decoded, captured: Captured) -> int:
        """Return the number by which the table knows a capture."""

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute an expression, and keep its rows as a table in place of one of this name."""

    def add(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute an expression, and add its rows to a table that is kept."""

    def rows(self, expression: ir.Table) -> Iterator[pa.RecordBatch]:
        """Compute an expression and stream its rows."""

    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query of the user's."""

    def close(self) -> None:
        """Give everything back."""

    def __enter__(self) -> Self:
        """Return the engine."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give everything back."""
