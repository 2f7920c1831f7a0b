"""DuckDB in a sandbox, for SQL that may come from elsewhere: it is handed tables and opens no file.

DuckDB can be told which directories it may read, but it may then write there too: ``COPY`` in a
``WITH``, behind ``EXPLAIN ANALYZE`` or within ``json_execute_serialized_sql`` is not a statement
that can be distinguished from a query. So it may open nothing, and Arrow reads the Parquet files
for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import pyarrow as pa
from pyarrow import dataset
from pyarrow.fs import LocalFileSystem

from tailtrim.analysis.engines.duckdb import DuckDb
from tailtrim.analysis.engines.expressions import ASKED, PACKET
from tailtrim.errors import EngineError, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import ibis.expr.types as ir

    from tailtrim.analysis.decode import Decoded

#: Texts of DuckDB's errors, other than PermissionException, when the confinement stops a statement.
_REFUSALS = ("configuration has been locked", "in read-only mode", "but it exists in the")

_PARQUET = dataset.ParquetFileFormat()


class SandboxedDuckDb(DuckDb):
    """A database that reads the tables of named directories and nothing else.

    A database file (``server``) is opened read-only. Queries of it do not spill to disk: a query
    that may open files to spill could also replace the database file.
    """

    def _connected(self, server: str | None, settings: dict[str, Any]) -> Any:
        read_only = server is not None
        connection = duckdb.connect(server or ":memory:", read_only=read_only, config=settings)
        connection.execute("SET enable_external_access = false")
        if server is not None:
            connection.execute("SET disabled_filesystems = 'LocalFileSystem'")
        connection.execute("SET lock_configuration = true")
        return connection

    def packets(self, decoded: Decoded) -> ir.Table:
        """Hand over the packets of a decoded directory."""
        fragments = [
            _fragment(path, decoded.path, {"capture": one.number, "bucket": _bucket(path)})
            for one in decoded.captures
            for path in decoded.files(one.number)
        ]
        schema = pa.schema([(name, pa.int64()) for name in ASKED])
        self._hand_over("packet", fragments, schema)
        return ibis.table(PACKET, name="packet")

    def views(self, name: str, files: Mapping[str, Sequence[Path]]) -> None:
        """Hand over Parquet files as a table, each with what it is of in the column ``run``."""
        fragments = [
            _fragment(path, path.parent, {"run": run})
            for run, paths in files.items()
            for path in paths
        ]
        written = [_schema(fragment) for fragment in fragments]
        schema = pa.unify_schemas(
            [pa.schema([("run", pa.string())]), *written], promote_options="permissive"
        )
        self._hand_over(name, fragments, schema)

    def _hand_over(self, name: str, fragments: list[Any], schema: pa.Schema) -> None:
        table: Any = dataset.FileSystemDataset(fragments, schema, _PARQUET, LocalFileSystem())
        self.connection.register(name, table)

    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query; forbidden actions are refused.

        Raises:
            EngineError: DuckDB refused the query, or it may not do what it asks for.

        """
        try:
            yield from super().sql(text)
        except EngineError as error:
            if not _is_refusal(error.__cause__):
                raise
            # Whatever DuckDB calls it: the query is right, but not allowed.
            refusal = EngineError(str(error))
            refusal.add_note(
                Remedy(
                    "a query reads the tables of the directories given and nothing else;"
                    " {unconfined} permits everything that you may do"
                )
            )
            raise refusal from error.__cause__


def _is_refusal(cause: BaseException | None) -> bool:
    told = str(cause)
    return isinstance(cause, duckdb.PermissionException) or any(one in told for one in _REFUSALS)


def _fragment(path: Path, directory: Path, constants: Mapping[str, int | str]) -> Any:
    """Return a file of a directory as a part of a table, with columns that its place gives it."""
    if not path.resolve().is_relative_to(directory.resolve()):
        failure = EngineError(f"{path}: is a link to {path.resolve()}, outside of {directory}")
        failure.add_note(Remedy("name a directory that has the file itself, or use {unconfined}"))
        raise failure
    of_place = None
    for name, value in constants.items():
        equal = dataset.field(name) == value
        of_place = equal if of_place is None else of_place & equal
    return _PARQUET.make_fragment(str(path), LocalFileSystem(), partition_expression=of_place)


def _schema(fragment: Any) -> pa.Schema:
    try:
        return fragment.physical_schema
    except (OSError, pa.ArrowException) as error:
        raise EngineError(f"{fragment.path}: the table cannot be read: {error}") from error


def _bucket(path: Path) -> int:
    """Return the number in the name of a bucket's folder."""
    return int(path.parent.name.removeprefix("bucket="))
