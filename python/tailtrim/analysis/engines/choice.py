"""Engines by name: :func:`connect`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tailtrim.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.analysis.engines.engine import Engine

#: Module and class of each.
_KINDS = {
    "duckdb": ("duckdb", "DuckDb"),
    "postgres": ("postgres", "Postgres"),
    "spark": ("spark", "Spark"),
}
#: Engines for decoded captures; ``native`` reads captures themselves.
ENGINES = tuple(_KINDS)

#: Modules that an engine needs in addition to tailtrim, by the name that Python imports.
_NEEDS = {
    "duckdb": ("ibis", "duckdb"),
    "postgres": ("ibis", "psycopg"),
    "spark": ("ibis", "pyspark", "grpc"),
}


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Connection to an engine and the resources that it may take.

    Args:
        server: PostgreSQL: a DSN (``postgresql://user@host/database``, or ``host=… dbname=…``;
            missing parts are taken from libpq's environment); Spark: ``sc://host:15002``;
            DuckDB: a database file to keep, none by default.
        memory: memory that DuckDB may take, such as ``2GB``.
        threads: on how many threads DuckDB may run.
        scratch: where DuckDB may put what does not fit into memory, and pairs are put until all
            are there.
        confined: DuckDB: for SQL that you did not write. Queries read the tables of the
            directories that they are given and nothing else: no other file, no network, no
            extensions; a database file is opened read-only.

    """

    server: str | None = None
    memory: str | None = None
    threads: int | None = None
    scratch: Path | None = None
    confined: bool = False


def missing_module(name: str) -> str | None:
    """Return a module that an engine needs and that is not installed, if there is one."""
    return next((needed for needed in _NEEDS[name] if find_spec(needed) is None), None)


def connect(name: str, options: EngineOptions | None = None) -> Engine:
    """Return the engine of this name, ready for work.

    Raises:
        EngineError: it is unknown, not installed, or cannot be reached.

    """
    if name not in ENGINES:
        raise EngineError(f"unknown engine {name!r}, expected one of {', '.join(ENGINES)}")
    options = options or EngineOptions()
    if options.memory is not None and name != "duckdb":
        raise EngineError(f"memory is a limit of engine duckdb, engine {name} has none")
    missing = missing_module(name)
    if missing:
        failure = EngineError(f"engine {name} is not installed: no module {missing!r}")
        failure.add_note(f"pip install 'tailtrim[{name}]'")
        raise failure
    if options.confined and name != "duckdb":
        raise EngineError(f"engine {name} cannot be confined: its server decides what it permits")
    module, kind = ("sandboxed_duckdb", "SandboxedDuckDb") if options.confined else _KINDS[name]
    engine: Engine = getattr(import_module(f"tailtrim.analysis.engines.{module}"), kind)(options)
    return engine
