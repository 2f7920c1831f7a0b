"""``tailtrim query``."""

from __future__ import annotations

import codecs
import math
import sys
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailtrim.cli import options, spans
from tailtrim.cli.console import escaped, say
from tailtrim.cli.engine_options import EngineName, Memory, Scratch, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

EXAMPLES = """\b
Examples:
  tailtrim query 'SELECT run, max(latency_ns) FROM worst GROUP BY run' results/hw results/vm
  tailtrim query 'SELECT capture, count(*), max(length) FROM packet GROUP BY capture' decoded
  tailtrim query 'SELECT capture, flow, count(*) FROM packet GROUP BY capture, flow' decoded
  tailtrim query 'SELECT * FROM second' results/hw --format csv > seconds.csv
  tailtrim query 'SELECT count(*) FROM packet' --engine postgres --server postgresql://lab@db/captures
"""

#: Rows that a table shows; the other formats have all.
_SHOWN = 100
#: Columns of text without a limit.
_UNLIMITED = 1 << 20


class RowFormat(StrEnum):
    """Formats of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def command(  # noqa: PLR0913 - one parameter an option
    text: Annotated[str, typer.Argument(metavar="SQL", help="The query.")],
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DIR…",
            help="Run directories (their tables get a column run) and at most one decoded"
            " directory (table packet). Or minutes of watch: WATCH/TARGET@SPAN.",
        ),
    ] = None,
    *,
    engine: Annotated[
        EngineName, typer.Option(metavar="ENGINE", help="duckdb, postgres or spark.")
    ] = EngineName.DUCKDB,
    server: Server = None,
    json: Annotated[bool, options.json("Same as --format json.")] = False,
    form: Annotated[
        RowFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="table, csv, json (one object per line), parquet (needs --out).",
        ),
    ] = RowFormat.TABLE,
    out: Annotated[
        Path | None,
        options.out("Write to this file instead of standard output.", "FILE"),
    ] = None,
    memory: Memory = None,
    scratch: Scratch = None,
    unrestricted: Annotated[
        bool,
        typer.Option(
            "--unrestricted",
            help="Let DuckDB run any statement, with your rights: read and write files, attach and"
            " change databases, load extensions and files from the network.",
        ),
    ] = False,
) -> None:
    """Query run directories and decoded captures in SQL.

    DuckDB reads the tables of the directories, or of the database file, and nothing else.
    """
    from tailtrim.analysis import engines  # noqa: PLC0415 - only this verb needs it

    form = RowFormat.JSON if json else form
    if engine is EngineName.NATIVE:
        raise ValueError("engine native has no SQL, expected duckdb, postgres or spark")
    if form is RowFormat.PARQUET and out is None:
        raise ValueError("parquet cannot be printed, name a file with --out")
    if unrestricted and engine is not EngineName.DUCKDB:
        raise ValueError(
            f"--unrestricted: only for duckdb; the server decides what {engine} permits"
        )
    confined = engine is EngineName.DUCKDB and not unrestricted
    at_engine = engines.EngineOptions(
        server=server, memory=memory, scratch=scratch, confined=confined
    )
    places = [Path(place) for place in spans.as_runs(map(str, sources or ()))]
    with engines.connect(str(engine), at_engine) as at:
        _write(engines.query(at, text, places), form, out)


def _write(batches: Iterator[pa.RecordBatch], form: RowFormat, out: Path | None) -> None:
    """Write rows as they come; a file gets its name when it is whole."""
    from tailtrim.results.drafts import refuse_capture, replacing  # noqa: PLC0415 - others start without

    if out is None:
        if form is RowFormat.TABLE:
            _table(batches)
        else:
            _stream(batches, form, _Screen() if sys.stdout.isatty() else sys.stdout.buffer)
        return
    refuse_capture(out)
    with replacing(out) as file:
        _stream(batches, form, file)


def _stream(batches: Iterator[pa.RecordBatch], form: RowFormat, file: object) -> None:
    import json  # noqa: PLC0415

    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run
    import pyarrow.csv  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    sink = pa.PythonFile(file, mode="w")
    writer = None
    for batch in batches:
        if form is RowFormat.JSON:
            rows = (_finite(row) for row in batch.to_pylist())
            lines = (json.dumps(row, default=_plain, ensure_ascii=False) for row in rows)
            sink.write(escaped("".join(f"{line}\n" for line in lines)).encode())
            continue
        if writer is None:
            kind = pa.csv.CSVWriter if form is not RowFormat.PARQUET else pa.parquet.ParquetWriter
            writer = kind(sink, batch.schema)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
    sink.flush()


def _plain(value: object) -> object:
    """Return a value as JSON has it: numbers for decimals, such as sums of 64-bit integers."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def _finite(value: object) -> object:
    """Return a value with null in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return value


class _Screen:
    """A terminal as standard output: rows are escaped there. Files get them as they are."""

    closed = False

    def __init__(self) -> None:
        # A write may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> int:
        sys.stdout.write(escaped(self._decoder.decode(data)))
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()

    def close(self) -> None:
        self.flush()


def _table(batches: Iterator[pa.RecordBatch]) -> None:
    from rich.table import Table  # noqa: PLC0415

    from tailtrim.cli.terminal import Terminal  # noqa: PLC0415

    table: Table | None = None
    rows = 0
    for batch in batches:
        if table is None:
            table = Table(box=None, pad_edge=False)
            for field in batch.schema:
                number = str(field.type).startswith(("int", "uint", "decimal", "double", "float"))
                table.add_column(field.name, justify="right" if number else "left")
        for row in batch.to_pylist():
            rows += 1
            if rows <= _SHOWN:
                table.add_row(*("" if value is None else str(value) for value in row.values()))
    if table is not None:
        # Values as they are, to be read on or copied: a terminal wraps lines, not cells.
        Terminal(width=_UNLIMITED).print(table)
    if rows > _SHOWN:
        say(f"{rows - _SHOWN:,} more rows; --format csv, json or parquet shows all", err=True)
