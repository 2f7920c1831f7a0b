"""DuckDB, embedded: decoded captures are read in place, and data beyond memory is put on disk."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import pyarrow as pa

from tailtrim.analysis.engines.engine import BATCH_ROWS, Engine, integers
from tailtrim.analysis.engines.expressions import ASKED, PACKET
from tailtrim.errors import EngineError, OutputError, QueryError, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import ibis.expr.types as ir

    from tailtrim.analysis.decode import Decoded
    from tailtrim.analysis.engines.choice import EngineOptions

_SIZE = re.compile(r"\d+(\.\d+)?\s*([kmgt](i?b)?|b)", re.IGNORECASE)


@contextmanager
def _telling() -> Iterator[None]:
    """Turn DuckDB's errors into ours, with what to do."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        failure = EngineError(f"duckdb: {_first_line(error)}")
        failure.add_note(
            Remedy("more {memory} or more disk for {scratch}, or more buckets to decode")
        )
        raise failure from error
    except (OSError, duckdb.Error) as error:
        failure = EngineError(f"duckdb: {_first_line(error)}")
        if os.strerror(errno.ENOSPC) in str(error):
            failure.add_note(Remedy("{scratch} names a disk with more room"))
        raise failure from error


class DuckDb(Engine):
    """A database of this process."""

    name = "duckdb"
    by_bucket = True

    def __init__(self, options: EngineOptions) -> None:
        """Open a database in a folder that goes with the process's work."""
        self.scratch = options.scratch
        try:
            folder = tempfile.mkdtemp(prefix="tailtrim-duckdb-", dir=options.scratch)
        except OSError as error:
            message = f"{options.scratch}: cannot be written: {error.strerror}"
            raise OutputError(message) from error
        self._folder = Path(folder)
        try:
            settings: dict[str, Any] = {
                "temp_directory": str(self._folder / "spilled"),
                # Rows that are kept need no order. Those of an ORDER BY come in theirs, which the
                # ledger looks after.
                "preserve_insertion_order": False,
                # Work on files of this machine fetches nothing from the network.
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
            if options.memory is not None:
                if not _SIZE.fullmatch(options.memory):
                    raise QueryError(f"memory {options.memory!r}: expected a size such as 2GB")
                settings["memory_limit"] = options.memory
            if options.threads is not None:
                settings["threads"] = options.threads
            self._kept = options.server is not None
            with _telling():
                self.connection = self._connected(options.server, settings)
        except EngineError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _connected(self, server: str | None, settings: dict[str, Any]) -> Any:
        """Open the database: the file named, or one in our own folder."""
        return duckdb.connect(server or str(self._folder / "work.duckdb"), config=settings)

    def packets(self, decoded: Decoded) -> ir.Table:
        """Read the Parquet files as they lie."""
        self._view("packet", decoded)
        return ibis.table(PACKET, name="packet")

    def _view(self, name: str, decoded: Decoded) -> None:
        files = [str(path) for one in decoded.captures for path in decoded.files(one.number)]
        columns = ", ".join(f'"{name}"' for name in ASKED)
        if files:
            types = "hive_types = {'capture': BIGINT, 'bucket': BIGINT}"
            read = f"read_parquet({_list(files)}, hive_partitioning = true, {types})"
            source = f"SELECT {columns} FROM {read}"  # noqa: S608 - paths are quoted
        else:
            empty = ", ".join(f'NULL::BIGINT AS "{name}"' for name in ASKED)
            source = f"SELECT {empty} WHERE false"
        self._run(f"CREATE OR REPLACE TEMP VIEW {name} AS {source}")

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Keep rows in a table of the session."""
        text = ibis.to_sql(expression, dialect="duckdb")
        self._run(f"CREATE OR REPLACE TEMP TABLE {name} AS {text}")
        return ibis.table(expression.schema(), name=name)

    def add(self, name: str, expression: ir.Table) -> ir.Table:
        """Add rows to a table of the session."""
        self._run(f"INSERT INTO {name} {ibis.to_sql(expression, dialect='duckdb')}")
        return ibis.table(expression.schema(), name=name)

    def rows(self, expression: ir.Table) -> Iterator[pa.RecordBatch]:
        """Stream the rows of an expression."""
        batches = self.sql(ibis.to_sql(expression, dialect="duckdb"))
        return integers(batches, expression.columns)

    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query of the user's."""
        with _telling():
            try:
                relation = self.connection.sql(text)
                if relation is not None:
                    reader = relation.to_arrow_reader(BATCH_ROWS)
                    # Without rows there are columns still.
                    first = next(reader, None)
                    yield first or pa.RecordBatch.from_pylist([], schema=reader.schema)
                    yield from reader
            except (duckdb.ProgrammingError, duckdb.DataError) as error:
                raise QueryError(f"duckdb: {_first_line(error)}") from error

    def views(self, name: str, files: Mapping[str, Sequence[Path]]) -> None:
        """Make Parquet files a table, each with what it is of in the column ``run``."""
        parts = [
            f"SELECT {_text(run)} AS run, * FROM read_parquet({_list([str(p) for p in paths])})"  # noqa: S608 - quoted
            for run, paths in files.items()
        ]
        self._run(f'CREATE OR REPLACE TEMP VIEW "{name}" AS ' + " UNION ALL BY NAME ".join(parts))

    def _run(self, text: str) -> None:
        with _telling():
            self.connection.execute(text)

    def close(self) -> None:
        """Close the database and remove what was put on disk."""
        self.connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def load(self, decoded: Decoded) -> None:
        """Copy a decoded directory into the database file, whole or not at all.

        Raises:
            EngineError: when no file was named to keep it in.

        """
        if not self._kept:
            failure = EngineError("duckdb: no database file given")
            failure.add_note(Remedy("name one with {server}"))
            raise failure
        self._view("decoded", decoded)
        self._run("BEGIN")
        self._run(
            "CREATE TABLE IF NOT EXISTS capture (dataset VARCHAR, capture BIGINT, name VARCHAR,"
            " rows BIGINT, facts JSON, PRIMARY KEY (dataset, capture))"
        )
        self._run(
            "CREATE TABLE IF NOT EXISTS packet AS SELECT '' AS dataset, * FROM decoded WHERE false"
        )
        with _telling():
            for one in decoded.captures:
                self.connection.execute(
                    "INSERT INTO capture VALUES (?, ?, ?, ?, ?)",
                    [decoded.id, one.number, one.name, one.rows, one.facts],
                )
        self._run(f"INSERT INTO packet SELECT {_text(decoded.id)}, * FROM decoded")  # noqa: S608 - quoted
        self._run("COMMIT")


def _first_line(error: Exception) -> str:
    """Leave out DuckDB's own advice, which is of its SQL."""
    return str(error).partition("\n")[0]


def _text(value: str | os.PathLike[str]) -> str:
    return "'" + os.fspath(value).replace("'", "''") + "'"


def _list(paths: Sequence[str]) -> str:
    return "[" + ", ".join(_text(path) for path in paths) + "]"
