"""Where packets are matched: the native matcher, DuckDB, PostgreSQL or a Spark Connect server.

``native`` reads captures in one pass and needs nothing else. The others match decoded captures by
one set of relational expressions (:mod:`tailtrim.engines.expressions`); their results are counted
by the same native code, so that all engines give the same bytes.
"""

from tailtrim.engines.choice import ENGINES, EngineOptions, connect
from tailtrim.engines.loading import load
from tailtrim.engines.matching import analyze
from tailtrim.engines.protocol import Engine
from tailtrim.engines.querying import query

__all__ = ["ENGINES", "Engine", "EngineOptions", "analyze", "connect", "load", "query"]
