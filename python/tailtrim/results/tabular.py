"""Base of all results: tables, which can be converted to Arrow, pandas and polars.

>>> import tailtrim
>>> analysis = tailtrim.analyze("examples/testpmd/ingress.pcap.zst",
...                             "examples/testpmd/egress.pcap.zst")
>>> analysis.to_arrow().column_names[:3]
['p', 'value_ns', 'low_ns']
>>> analysis.to_arrow("histogram").column_names
['latency_ns', 'count']

"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailtrim import _html
from tailtrim.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Tabular(ABC):
    """A result that consists of tables, and is shown as HTML in notebooks."""

    __slots__ = ()

    @property
    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The names of the tables; without a name, the first one is meant."""

    @abstractmethod
    def table(self, name: str) -> pa.Table:
        """Return a table by its name."""

    def to_arrow(self, table: str | None = None) -> pa.Table:
        """Return a table, by default the first of :attr:`tables`, as Arrow.

        Raises:
            ValueError: there is no such table.

        """
        names = self.tables
        name = names[0] if table is None else table
        if name not in names:
            raise ValueError(f"table {name!r} is unknown, expected one of {', '.join(names)}")
        return self.table(name)

    def to_pandas(self, table: str | None = None) -> pd.DataFrame:
        """Return a table as :meth:`to_arrow` does, for pandas.

        Raises:
            ValueError: there is no such table.
            MissingPackageError: pandas is not installed.

        """
        _required("pandas")
        return self.to_arrow(table).to_pandas()

    def to_polars(self, table: str | None = None) -> pl.DataFrame:
        """Return a table as :meth:`to_arrow` does, for polars.

        Raises:
            ValueError: there is no such table.
            MissingPackageError: polars is not installed.

        """
        polars = _required("polars")
        frame: pl.DataFrame = polars.DataFrame(self.to_arrow(table))
        return frame

    def _repr_html_(self) -> str:
        return _html(self)


def of_rows(kind: type[Any], rows: Sequence[Any]) -> pa.Table:
    """Return dataclasses of one kind as a table: a column for each field, parts as structs."""
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    data = [asdict(row) for row in rows]
    return pa.table({f.name: [row[f.name] for row in data] for f in fields(kind)})


def _required(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        failure = MissingPackageError(f"{name} is not installed, and this result was asked for it")
        failure.add_note(f"pip install {name}")
        raise failure from error
