"""A Spark Connect server: Apache Spark, or Sail, which speaks the same protocol.

The server reads the Parquet files itself: the decoded directory must have the same path there.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import grpc
import ibis
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from tailtrim.engines.expressions import ASKED, PACKET
from tailtrim.engines.session import Session, integers
from tailtrim.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import ibis.expr.types as ir

    from tailtrim.decode import Captured, Decoded
    from tailtrim.engines.choice import EngineOptions


def connect(options: EngineOptions) -> Spark:
    """Return the engine.

    Raises:
        EngineError: the server cannot be reached.

    """
    if not options.server or not options.server.startswith("sc://"):
        failure = EngineError(f"spark: {options.server or ''!r} is no Spark Connect URL")
        failure.add_note("--server sc://host:15002 says where the server is")
        raise failure
    return Spark(options.server)


@contextmanager
def _telling(what: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, grpc.RpcError) as error:
        text = str(error).strip().split("\n", 1)[0]
        raise EngineError(f"spark: cannot {what}: {text}") from error


class Spark(Session):
    """A session at a Spark Connect server."""

    name = "spark"
    by_bucket = False
    scratch = None

    def __init__(self, url: str) -> None:
        """Open a session and see that somebody answers."""
        with _telling(f"reach {url}"):
            # Typed as nothing: pyspark's methods name classes of the other kind of session.
            self._session: Any = SparkSession.builder.remote(url).create()
            self._version = self._session.version
            self._persisted: list[Any] = []
            # Parquet of millions of packets may be smaller than what Spark would send to every
            # executor, by way of the driver's memory.
            self._session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")

    def packets(self, decoded: Decoded) -> ir.Table:
        """Have the server read the Parquet files as they lie."""
        with _telling(f"read {decoded.path}"):
            if any(captured.rows for captured in decoded.captures):
                found = self._session.read.parquet(str((decoded.path / "packet").resolve()))
            else:
                found = self._session.sql("SELECT " + ", ".join(f"0 AS {c}" for c in ASKED))
                found = found.limit(0)
            columns = [found[name].cast("bigint").alias(name) for name in ASKED]
            found.select(*columns).createOrReplaceTempView("packet")
        return ibis.table(PACKET, name="packet")

    def number(self, decoded: Decoded, captured: Captured) -> int:  # noqa: ARG002 - the protocol's
        """Return the number in the directory."""
        return captured.number

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Keep rows in the executors, which compute again what is lost with one of them."""
        with _telling("match packets"):
            frame = self._session.sql(ibis.to_sql(expression, dialect="pyspark"))
            # Sail cannot, and computes what is asked for each time.
            with suppress(PySparkException, grpc.RpcError):
                frame.persist()
                self._persisted.append(frame)
            frame.createOrReplaceTempView(name)
        return ibis.table(expression.schema(), name=name)

    def add(self, name: str, expression: ir.Table) -> ir.Table:
        """Name what executors compute together with what has the name."""
        with _telling("match packets"):
            frame = self._session.sql(ibis.to_sql(expression, dialect="pyspark"))
            self._session.table(name).unionByName(frame).createOrReplaceTempView(name)
        return ibis.table(expression.schema(), name=name)

    def rows(self, expression: ir.Table) -> Iterator[pa.RecordBatch]:
        """Stream the rows of an expression."""
        return integers(self.sql(ibis.to_sql(expression, dialect="pyspark")), expression.columns)

    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query of the user's."""
        with _telling("run a query"):
            yield from self._stream(self._session.sql(text))

    def _stream(self, frame: Any) -> Iterator[pa.RecordBatch]:
        """Yield what the server sends as it comes; ``toArrow`` would hold all of it."""
        client: Any = self._session.client
        plan = frame._plan.to_proto(client)  # noqa: SLF001 - as toLocalIterator does it
        for part in client.to_table_as_iterator(plan, {}):
            if isinstance(part, pa.Table):
                yield from part.to_batches()
            elif not isinstance(part, StructType):
                raise EngineError(f"spark: sent a {type(part).__name__}, expected rows")

    def views(self, name: str, files: Mapping[str, Sequence[Path]]) -> None:
        """Make Parquet files a table, each with what it is of in the column ``run``."""
        from pyspark.sql.connect.functions import lit  # noqa: PLC0415

        with _telling("read tables"):
            frame: Any = None
            for run, paths in files.items():
                one = self._session.read.parquet(*(str(path.resolve()) for path in paths))
                one = one.select(lit(run).alias("run"), "*")
                frame = one if frame is None else frame.unionByName(one)
            if frame is not None:
                frame.createOrReplaceTempView(name)

    def close(self) -> None:
        """End the session; the executors would keep what is persisted for other ones.

        A server that is gone has nothing, and why it is gone is known by then.
        """
        with suppress(PySparkException, grpc.RpcError):
            for frame in self._persisted:
                frame.unpersist()
            self._session.stop()
