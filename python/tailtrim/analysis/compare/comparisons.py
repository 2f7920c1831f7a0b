"""Comparisons in a list: the result of :func:`tailtrim.analysis.compare.compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.results.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

    from tailtrim.analysis.compare.comparison import Comparison


class Comparisons(list["Comparison"], Tabular):
    """Comparisons, one for each combination of loop variables.

    Its tables are those of :class:`Comparison` with ``a`` and ``b``, the names of the sides.
    """

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return ("quantiles", "sent", "curve", "energy")

    def table(self, name: str) -> pa.Table:
        """Return a table of all comparisons."""
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

        parts = []
        for one in self:
            part = one.table(name)
            for side in (one.b, one.a):
                column = pa.array([side.name] * part.num_rows, pa.string())
                part = part.add_column(0, "a" if side is one.a else "b", column)
            parts.append(part)
        # A column without any value has no type of its own.
        return pa.concat_tables(parts, promote_options="permissive")
