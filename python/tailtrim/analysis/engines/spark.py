"""A Spark Connect server: Apache Spark, or Sail, which speaks the same protocol.

The server reads the Parquet files itself: the decoded directory must have the same path there.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import grpc
import ibis
import pyarrow as pa
from pyspark.errors import (
    AnalysisException,
    ParseException,
    PySparkException,
    RetriesExceeded,
)
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from tailtrim.analysis.engines.engine import Engine, integers
from tailtrim.analysis.engines.expressions import ASKED, PACKET
from tailtrim.errors import EngineError, QueryError, Remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import ibis.expr.types as ir

    from tailtrim.analysis.decode import Decoded
    from tailtrim.analysis.engines.choice import EngineOptions


#: Packets of a task, give or take: 16 tasks share a bucket of two million of each capture.
TASK_PACKETS = 1 << 18
#: Retries, within half a minute, for a server that answered before. The usual 15 take ten minutes,
#: and a server that was started anew does not know the session any more.
RETRIES = 5
#: Memory that Spark takes for a packet, in bytes: 11 columns.
PACKET_BYTES = 88
#: Number of tables that are joined to one: plans must not grow with the buckets.
FEW = 16


@contextmanager
def _telling(what: str) -> Iterator[None]:
    try:
        yield
    except (PySparkException, grpc.RpcError) as error:
        raise EngineError(f"spark: cannot {what}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    # That there were so many tries says nothing of why.
    why = error.__cause__ if isinstance(error, RetriesExceeded) else error
    text = why.details() if isinstance(why, grpc.Call) else str(why)
    return (text or "").strip().split("\n", 1)[0]


class Spark(Engine):
    """A session at a Spark Connect server."""

    name = "spark"
    #: The server collects a result in its driver's memory before it sends any: with 1 GiB, which is
    #: usual, it hung for good at 10 million pairs. All at once is a quarter faster, while it fits.
    by_bucket = True

    def __init__(self, options: EngineOptions) -> None:
        """Open a session and check that the server answers.

        Raises:
            EngineError: the server cannot be reached.

        """
        url = options.server or ""
        if not url.startswith("sc://"):
            failure = EngineError(f"spark: {url!r} is not a Spark Connect URL")
            failure.add_note(Remedy("{server} says where it is, such as sc://host:15002"))
            raise failure
        self.scratch = options.scratch
        with _telling(f"reach {url}"):
            # Typed as nothing: pyspark's methods name classes of the other kind of session.
            self._session: Any = SparkSession.builder.remote(url).create()
            self._session.client.set_retry_policies([DefaultPolicy(max_retries=0)])
            self._version = self._session.version
            self._session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
            #: Names of views by the tables that they are of; those of a level are as many joined.
            self._kept: dict[str, list[list[str]]] = {}
            self._views = 0
            #: Sail keeps no rows, and computes what is asked for each time.
            self._keeps = True

    def packets(self, decoded: Decoded) -> ir.Table:
        """Have the server read the Parquet files as they lie."""
        with _telling(f"read {decoded.path}"):
            if any(captured.rows for captured in decoded.captures):
                self._plan_for(decoded)
                found = self._session.read.parquet(str((decoded.path / "packet").resolve()))
            else:
                found = self._session.sql("SELECT " + ", ".join(f"0 AS {c}" for c in ASKED))
                found = found.limit(0)
            columns = [found[name].cast("bigint").alias(name) for name in ASKED]
            found.select(*columns).createOrReplaceTempView("packet")
        return ibis.table(PACKET, name="packet")

    def _plan_for(self, decoded: Decoded) -> None:
        """Tell the planner of rows: it goes by bytes, and Parquet has some three bytes a packet."""
        packets = sum(captured.rows for captured in decoded.captures)
        files = (decoded.files(captured.number) for captured in decoded.captures)
        size = sum(path.stat().st_size for paths in files for path in paths)
        tasks = max(1, packets // decoded.buckets // TASK_PACKETS)
        for name, value in {
            "files.openCostInBytes": 0,
            "files.maxPartitionBytes": max(1 << 16, size * TASK_PACKETS // packets),
            # Or it would send millions of packets to every executor, by way of the driver.
            "sources.fileCompressionFactor": packets * PACKET_BYTES / size,
            "shuffle.partitions": tasks,
        }.items():
            self._session.conf.set(f"spark.sql.{name}", str(value))

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Keep rows in the executors, which compute again what is lost with one of them."""
        with _telling("match packets"):
            view = self._compute(name, self._frame(expression))
            for level in self._kept.pop(name, []):
                self._forget(level)
            self._kept[name] = [[view]]
        return ibis.table(expression.schema(), name=view)

    def add(self, name: str, expression: ir.Table) -> ir.Table:
        """Keep rows in the executors, in addition to those that are kept there."""
        with _telling("match packets"):
            levels = self._kept[name]
            added = self._compute(name, self._frame(expression))
            for level in levels:
                level.append(added)
                if len(level) < FEW:
                    break
                added = self._compute(name, self._union(level))
                self._forget(level)
                level.clear()
            else:
                levels.append([added])
            view = self._view(name, self._union([part for level in levels for part in level]))
        return ibis.table(expression.schema(), name=view)

    def _frame(self, expression: ir.Table) -> Any:
        return self._session.sql(ibis.to_sql(expression, dialect="pyspark"))

    def _union(self, views: list[str]) -> Any:
        frames = [self._session.table(view) for view in views]
        return functools.reduce(lambda all_, one: all_.unionByName(one), frames)

    def _view(self, name: str, frame: Any) -> str:
        """Name a frame, and return the name: frames by themselves mean what names mean later."""
        self._views += 1
        view = f"{name}_{self._views}"
        frame.createOrReplaceTempView(view)
        return view

    def _compute(self, name: str, frame: Any) -> str:
        """Name a frame and, where rows are kept, compute it."""
        view = self._view(name, frame)
        frame = self._session.table(view)
        if self._keeps:
            try:
                frame.persist()
            except (PySparkException, grpc.RpcError):
                self._keeps = False
        if self._keeps:
            # Persisting only says what to do when rows are asked for.
            frame.count()
        return view

    def _forget(self, views: list[str]) -> None:
        for view in views if self._keeps else ():
            self._session.table(view).unpersist()

    def rows(self, expression: ir.Table) -> Iterator[pa.RecordBatch]:
        """Stream the rows of an expression."""
        return integers(self.sql(ibis.to_sql(expression, dialect="pyspark")), expression.columns)

    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query of the user's."""
        with _telling("run a query"):
            try:
                yield from self._stream(self._session.sql(text))
            except (ParseException, AnalysisException) as error:
                raise QueryError(f"spark: {_first_line(error)}") from error

    def _stream(self, frame: Any) -> Iterator[pa.RecordBatch]:
        """Yield what the server sends as it comes; ``toArrow`` would hold all of it."""
        client: Any = self._session.client
        plan = frame._plan.to_proto(client)  # noqa: SLF001 - as toLocalIterator does it
        for part in client.to_table_as_iterator(plan, {}):
            if isinstance(part, pa.Table):
                # Without rows there are columns still.
                yield from part.to_batches() or [pa.RecordBatch.from_pylist([], schema=part.schema)]
            elif not isinstance(part, StructType):
                raise EngineError(f"spark: sent a {type(part).__name__}, expected rows")

    def send(self, archive: Path) -> None:
        """Give the workers an archive, unpacked in a folder that begins with its name."""
        with _telling("send files to the workers"):
            self._session.addArtifacts(str(archive), archive=True)

    def mapped(
        self, count: int, work: Callable[[int], bytes | None]
    ) -> Iterator[tuple[int, bytes | None]]:
        """Have each number below ``count`` worked on by a task of its own, in any order.

        ``work`` is sent as it is, with all that it holds: workers need not have tailtrim.
        """
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

        schema = pa.schema([("index", pa.int64()), ("answer", pa.binary())])

        def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import gc  # noqa: PLC0415 - on the worker
            import sys  # noqa: PLC0415
            import zipimport  # noqa: PLC0415

            import pyarrow  # noqa: ICN001, PLC0415

            for batch in batches:
                for index in batch.column(0).to_pylist():
                    columns = [[index], [work(index)]]
                    arrays = map(pyarrow.array, columns, schema.types)
                    yield pyarrow.record_batch(list(arrays), schema=schema)
            # Behind each task, a worker reads the directories of Spark's archives anew, and looks
            # at all objects, of Spark and pandas: 0.1 s of CPU time, a third of such a task.
            for place, finder in list(sys.path_importer_cache.items()):
                if isinstance(finder, zipimport.zipimporter):
                    del sys.path_importer_cache[place]
            if not gc.get_freeze_count():
                gc.freeze()

        with _telling("match packets"):
            numbers = self._session.range(0, count, 1, count)
            for batch in self._stream(numbers.mapInArrow(task, from_arrow_schema(schema))):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

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
            for levels in self._kept.values():
                for level in levels:
                    self._forget(level)
            self._session.client.release_session()
        # It would try once more, and log that the server does not answer.
        self._session.release_session_on_close = False
        self._session.stop()
