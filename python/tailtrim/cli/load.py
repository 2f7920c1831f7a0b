"""``tailtrim load``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailtrim.cli.console import say
from tailtrim.cli.engine_options import Server

EXAMPLES = """\b
Examples:
  tailtrim load decoded --engine postgres --server postgresql://lab@db/captures
  psql postgresql://lab@db/captures -c 'SELECT count(*) FROM tailtrim.packet'
  tailtrim load decoded --engine duckdb --server captures.duckdb
"""


class Database(StrEnum):
    """Engines that keep data."""

    POSTGRES = "postgres"
    DUCKDB = "duckdb"


def command(
    decoded: Annotated[Path, typer.Argument(metavar="DIR", help="A directory written by decode.")],
    *,
    engine: Annotated[
        Database, typer.Option(metavar="ENGINE", help="postgres or duckdb.")
    ] = Database.POSTGRES,
    server: Server = None,
) -> None:
    """Load decoded captures into a database, in one transaction, for your own queries."""
    from tailtrim.analysis import engines  # noqa: PLC0415 - only this verb needs it
    from tailtrim.analysis.decode import Decoded  # noqa: PLC0415

    directory = Decoded(decoded)
    with engines.connect(str(engine), engines.EngineOptions(server=server)) as at:
        at.load(directory)
    packets = sum(captured.rows for captured in directory.captures)
    schema = "tailtrim." if engine is Database.POSTGRES else ""
    say(f"{packets:,} packets of {len(directory.captures)} captures are in {schema}packet")
