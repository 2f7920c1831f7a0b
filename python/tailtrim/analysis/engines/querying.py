"""SQL over run directories and decoded captures: :func:`query`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.analysis.decode import Decoded
from tailtrim.analysis.decode.dataset import INDEX
from tailtrim.errors import EngineError, QueryError, Remedy
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from tailtrim.analysis.engines.engine import Engine


def query(
    engine: Engine, text: str, sources: Sequence[str | os.PathLike[str]] = ()
) -> Iterator[pa.RecordBatch]:
    """Run a query on an engine.

    The tables of run directories (``sample``, ``histogram``, ``worst``, …) have the directory's
    name in a column ``run`` before the others, or its path as given where several have that name;
    of one decoded directory there is ``packet``. A run directory that is given twice counts once.
    PostgreSQL has what was loaded.

    Args:
        engine: where; see :func:`tailtrim.analysis.engines.connect`.
        text: the query.
        sources: run directories, and at most one decoded directory.

    Yields:
        The rows.

    Raises:
        QueryError: the query is wrong.
        EngineError: the engine refused the query or cannot read directories.

    """
    if not text.strip():
        raise QueryError("the query is empty")
    decoded = [Path(source) for source in sources if (Path(source) / INDEX).exists()]
    runs = _named_apart([Path(source) for source in sources if Path(source) not in decoded])
    if len(decoded) > 1:
        raise QueryError(f"{decoded[1]}: only one decoded directory can be queried at a time")
    if decoded and engine.reads_directories:
        engine.packets(Decoded(decoded[0]))
    if (runs or decoded) and not engine.reads_directories:
        failure = EngineError(f"{engine.name}: reads no directories, only what was loaded")
        failure.add_note(Remedy("a decoded directory is loaded by {load}"))
        raise failure
    for table in dict.fromkeys(table for run in runs.values() for table in run.tables):
        files = {name: [run.table_path(table)] for name, run in runs.items() if table in run.tables}
        if files:
            engine.views(table, files)
    yield from engine.sql(text)


def _named_apart(paths: Sequence[Path]) -> dict[str, RunDirectory]:
    """Return each run directory once, by its name, or by its path where another is called so."""
    runs: dict[Path, RunDirectory] = {}
    for path in paths:
        runs.setdefault(path.resolve(), RunDirectory(path))
    known = Counter(word for run in runs.values() for word in {run.name, str(run.path)})
    return {run.name if known[run.name] == 1 else str(run.path): run for run in runs.values()}
