"""PostgreSQL: packets are copied to the server, for the session or, by ``load``, for keeps."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING

import ibis
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import errors, sql

from tailtrim.analysis.decode.dataset import COLUMNS, LABEL
from tailtrim.analysis.engines import binary
from tailtrim.analysis.engines.engine import BATCH_ROWS, Engine
from tailtrim.analysis.engines.expressions import ASKED, PACKET
from tailtrim.errors import EngineError, QueryError, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import ibis.expr.types as ir

    from tailtrim.analysis.decode import Captured, Decoded
    from tailtrim.analysis.engines.choice import EngineOptions

SCHEMA = "tailtrim"
OLDEST = 130_000
_MATCHED = ", ".join(f'"{name}" int8 NOT NULL' for name in PACKET)
_TOLD = ", ".join(f'"{name}" int8' for name in LABEL)
#: The tables that ``load`` fills. Unlogged as in the papers, and both of them: after a crash the
#: server empties unlogged tables, and then nothing must say that captures are there.
_CREATE = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"""CREATE UNLOGGED TABLE IF NOT EXISTS {SCHEMA}.capture (
        capture int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, dataset text NOT NULL,
        number int8 NOT NULL, name text NOT NULL, rows int8 NOT NULL, facts jsonb NOT NULL,
        UNIQUE (dataset, number))""",
    f"CREATE UNLOGGED TABLE IF NOT EXISTS {SCHEMA}.packet ({_MATCHED}, {_TOLD})",
    f"CREATE INDEX IF NOT EXISTS packet_stamp ON {SCHEMA}.packet USING brin (capture, stamp_ns)",
)


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """Turn the server's errors into ours, with what to do."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        failure = EngineError(f"postgres: no right to {what}: {_first(error)}")
        failure.add_note(
            "the role needs CREATE and TEMPORARY on the database:"
            " GRANT CREATE, TEMPORARY ON DATABASE … TO …"
        )
        raise failure from error
    except (errors.DiskFull, errors.OutOfMemory, errors.ConfigurationLimitExceeded) as error:
        failure = EngineError(f"postgres: the server has no room to {what}: {_first(error)}")
        failure.add_note("nothing of it is left there: free space and try again")
        raise failure from error
    except psycopg.OperationalError as error:
        failure = EngineError(f"postgres: the server ended the work to {what}: {_first(error)}")
        failure.add_note("nothing half-done is left there: try again")
        raise failure from error
    except psycopg.Error as error:
        raise EngineError(f"postgres: cannot {what}: {_first(error)}") from error


@contextmanager
def _wrong_query() -> Iterator[None]:
    """Tell what is wrong with a query of the user's."""
    try:
        yield
    except errors.InsufficientPrivilege:
        raise
    except (psycopg.ProgrammingError, psycopg.DataError) as error:
        raise QueryError(f"postgres: {_first(error)}") from error


def _first(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__


#: Types of columns by their numbers in PostgreSQL's pg_type; all others are text.
_TYPES: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int64(),
    23: pa.int64(),
    26: pa.int64(),
    700: pa.float64(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
    # numeric, such as sums of bigint: how many digits it has is not known before the last row.
    1700: pa.float64(),
}


class Postgres(Engine):
    """A session at a server. Its tables are temporary, except those of :meth:`load`."""

    name = "postgres"
    by_bucket = False
    scratch = None
    reads_directories = False

    def __init__(self, options: EngineOptions) -> None:
        """Log in.

        Raises:
            EngineError: the server cannot be reached or is too old.

        """
        dsn = options.server or ""
        try:
            self._connection = psycopg.connect(dsn, connect_timeout=10)
        except psycopg.ProgrammingError as error:
            message = f"postgres: invalid DSN {dsn!r}: {_first(error)}"
            failure = EngineError(message)
            failure.add_note("expected such as postgresql://user@host:5432/database")
            raise failure from error
        except psycopg.Error as error:
            failure = EngineError(f"postgres: the server cannot be reached: {_first(error)}")
            failure.add_note(
                Remedy("{server} says where it is, such as postgresql://user@host/database")
            )
            raise failure from error
        version = self._connection.info.server_version
        if version < OLDEST:
            self._connection.close()
            message = f"postgres: the server is version {version // 10_000}, expected 13 or later"
            raise EngineError(message)
        self._loaded: dict[int, int] = {}

    def packets(self, decoded: Decoded) -> ir.Table:
        """Use what was loaded, or copy it into a table of this session."""
        self._loaded = self._find(decoded)
        if self._loaded:
            return ibis.table(PACKET, name="packet", database=SCHEMA)
        with _telling("copy packets to the server"), self._connection.transaction():
            self._execute("DROP TABLE IF EXISTS pg_temp.packet")
            self._execute(f"CREATE TEMPORARY TABLE packet ({_MATCHED})")
            for captured in decoded.captures:
                # The columns of packets alone are enough here: no query looks at the others.
                self._copy("packet", tuple(PACKET), decoded, captured, captured.number)
            self._execute("ANALYZE packet")
        return ibis.table(PACKET, name="packet")

    def number(self, decoded: Decoded, captured: Captured) -> int:  # noqa: ARG002 - as above it
        """Return the server's number of a loaded capture, or that in the directory."""
        return self._loaded.get(captured.number, captured.number)

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Keep rows in a temporary table."""
        with _telling("match packets"), self._connection.transaction():
            self._execute(f'DROP TABLE IF EXISTS pg_temp."{name}"')
            text = ibis.to_sql(expression, dialect="postgres")
            self._execute(f"CREATE TEMPORARY TABLE {name} AS {text}")
            self._execute(f"ANALYZE {name}")
        return ibis.table(expression.schema(), name=name)

    def add(self, name: str, expression: ir.Table) -> ir.Table:
        """Add rows to a temporary table."""
        with _telling("match packets"), self._connection.transaction():
            self._execute(f"INSERT INTO {name} {ibis.to_sql(expression, dialect='postgres')}")
        return ibis.table(expression.schema(), name=name)

    def rows(self, expression: ir.Table) -> Iterator[pa.RecordBatch]:
        """Stream the rows of an expression by binary COPY."""
        text = ibis.to_sql(expression, dialect="postgres")
        with _telling("match packets"), self._connection.transaction():
            copy = f"COPY ({text}) TO STDOUT (FORMAT binary)"
            with self._connection.cursor() as cursor, cursor.copy(copy.encode()) as copied:
                yield from binary.decode(copied, expression.columns, batch_rows=BATCH_ROWS)

    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query of the user's, which may change nothing."""
        with _telling("run the query"), self._connection.transaction():
            self._execute("SET TRANSACTION READ ONLY")
            if self._one("SELECT to_regnamespace(%s)::text", SCHEMA) is not None:
                self._execute(f"SET LOCAL search_path TO {SCHEMA}, public")
            with _wrong_query(), self._connection.cursor(name="tailtrim_query") as cursor:
                cursor.execute(text.strip().rstrip(";").encode())
                columns = [
                    pa.field(column.name, _TYPES.get(column.type_code, pa.string()))
                    for column in cursor.description or ()
                ]
                first = True
                while (rows := cursor.fetchmany(BATCH_ROWS)) or first:
                    first = False
                    yield _arrow(pa.schema(columns), rows)

    def load(self, decoded: Decoded) -> None:
        """Copy a decoded directory into ``tailtrim.packet``, whole or not at all."""
        with _telling("load captures"), self._connection.transaction():
            for statement in _CREATE:
                self._execute(statement)
            if self._find(decoded):
                return
            # A number that only this transaction knows: no part of it is visible.
            for captured in decoded.captures:
                number = self._one(
                    f"INSERT INTO {SCHEMA}.capture (dataset, number, name, rows, facts)"  # noqa: S608 - constants
                    " VALUES (%s, %s, %s, %s, %s) RETURNING capture",
                    decoded.id,
                    captured.number,
                    captured.name,
                    captured.rows,
                    captured.facts,
                )
                self._copy(f"{SCHEMA}.packet", ASKED, decoded, captured, int(str(number)))
        with _telling("look at what was loaded"):
            self._execute(f"ANALYZE {SCHEMA}.packet")
            self._connection.commit()

    def close(self) -> None:
        """Log out; temporary tables go."""
        with suppress(psycopg.Error):
            self._connection.close()

    def _find(self, decoded: Decoded) -> dict[int, int]:
        """Return the server's numbers of the captures, empty where they are not loaded."""
        with _telling("look for loaded captures"), self._connection.transaction():
            if self._one("SELECT to_regclass(%s)::text", f"{SCHEMA}.capture") is None:
                return {}
            found = self._connection.execute(
                f"SELECT number, capture FROM {SCHEMA}.capture WHERE dataset = %s",  # noqa: S608 - constants
                (decoded.id,),
            )
            return dict(found.fetchall())

    def _copy(
        self,
        table: str,
        columns: Sequence[str],
        decoded: Decoded,
        captured: Captured,
        number: int,
    ) -> None:
        stored = [name for name in COLUMNS if name in columns]
        copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
            sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._connection.cursor() as cursor, cursor.copy(copy) as target:
            target.write(binary.HEADER)
            for path in decoded.files(captured.number):
                bucket = int(path.parent.name.removeprefix("bucket="))
                # The file alone: as part of a folder it would get the folder's columns.
                with path.open("rb") as file:
                    for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS, columns=stored):
                        target.write(binary.encode(_placed(batch, number, bucket)))
            target.write(binary.TRAILER)

    def _execute(self, text: str) -> None:
        self._connection.execute(text.encode())

    def _one(self, text: str, *parameters: object) -> object:
        row = self._connection.execute(text.encode(), parameters).fetchone()
        return None if row is None else row[0]


def _placed(batch: pa.RecordBatch, number: int, bucket: int) -> pa.RecordBatch:
    """Add the columns that the folders stand for."""
    constant = [
        pa.repeat(pa.scalar(value, pa.int64()), batch.num_rows) for value in (number, bucket)
    ]
    names = ["capture", "bucket", *batch.schema.names]
    return pa.RecordBatch.from_arrays([*constant, *batch.columns], names=names)


def _arrow(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [
        pa.array([_value(value, kind) for value in column], kind)
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _value(value: object, kind: pa.DataType) -> object:
    if pa.types.is_string(kind) and value is not None:
        return str(value)
    return float(value) if isinstance(value, Decimal) else value
