"""Decoded captures into a database, for people who then ask it themselves: :func:`load`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailtrim.errors import EngineError

if TYPE_CHECKING:
    from tailtrim.analysis.decode import Decoded
    from tailtrim.analysis.engines.protocol import Engine


def load(engine: Engine, decoded: Decoded) -> None:
    """Copy a decoded directory into an engine's database, whole or not at all.

    PostgreSQL: into ``tailtrim.packet`` and ``tailtrim.capture``. DuckDB: into ``packet`` and
    ``capture`` of the file that the engine was connected with.

    Raises:
        EngineError: the engine has no database, or refused.

    """
    into = getattr(engine, "load", None)
    if into is None:
        failure = EngineError(f"{engine.name}: has no database to load into")
        failure.add_note("it reads the decoded directory as it lies")
        raise failure
    into(decoded)
