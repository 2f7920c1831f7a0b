"""Engines that match packets: the native matcher, DuckDB, PostgreSQL or a Spark Connect server.

``native`` reads captures in one pass and needs nothing else. The others match decoded captures by
one set of relational expressions (:mod:`.expressions`); the result is counted by the same native
code, so that all engines give the same bytes.
"""

from tailtrim.analysis.engines.choice import ENGINES, EngineOptions, connect
from tailtrim.analysis.engines.engine import Engine
from tailtrim.analysis.engines.matching import analyze
from tailtrim.analysis.engines.querying import query

__all__ = ["ENGINES", "Engine", "EngineOptions", "analyze", "connect", "query"]
