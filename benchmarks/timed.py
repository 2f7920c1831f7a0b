"""Analyzes a decoded directory on an engine and says how long the parts took.

    python benchmarks/timed.py duckdb DECODED --parts parts.json --memory 1200MB

Prints the summary, as ``tailtrim analyze --json --skip 0`` does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tailtrim.analysis import engines
from tailtrim.analysis.decode import Decoded
from tailtrim.analysis.engines import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import ibis.expr.types as ir
    import pyarrow as pa

    from tailtrim.analysis.decode import Captured

T = TypeVar("T")

#: Parts by the columns that only they have; the rest is the statistics'.
ROWS = {"decided_ns": "sort pairs", "gap_ns": "gaps", "second_ns": "seconds, outcomes"}


class Timed(Engine):
    """An engine that counts the seconds which it took, by what they were for."""

    def __init__(self, engine: Engine) -> None:
        """Stand before an engine."""
        self._engine = engine
        self.name, self.by_bucket, self.scratch = engine.name, engine.by_bucket, engine.scratch
        self.seconds: dict[str, float] = defaultdict(float)

    def number(self, decoded: Decoded, captured: Captured) -> int:
        """Return the engine's number of a capture."""
        return self._engine.number(decoded, captured)

    def sql(self, text: str) -> Iterator[pa.RecordBatch]:
        """Run a query of the user's."""
        return self._engine.sql(text)

    def packets(self, decoded: Decoded) -> ir.Table:
        """Make packets readable: for some engines, load them."""
        return self._timed("load", lambda: self._engine.packets(decoded))

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Keep rows."""
        return self._timed("join", lambda: self._engine.keep(name, expression))

    def add(self, name: str, expression: ir.Table) -> ir.Table:
        """Add rows."""
        return self._timed("join", lambda: self._engine.add(name, expression))

    def rows(self, expression: ir.Table) -> Iterator[pa.RecordBatch]:
        """Stream rows; the time of their reader does not count."""
        kind = next((part for name, part in ROWS.items() if name in expression.columns), "rest")
        batches = self._engine.rows(expression)
        while (batch := self._timed(kind, lambda: next(batches, None))) is not None:
            yield batch

    def close(self) -> None:
        """Leave the engine to its owner."""

    def _timed(self, part: str, work: Callable[[], T]) -> T:
        started = time.monotonic()
        try:
            return work()
        finally:
            self.seconds[part] += time.monotonic() - started


def main() -> None:
    """Analyze what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("engine")
    parser.add_argument("decoded", type=Path)
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--memory")
    parser.add_argument("--server")
    parser.add_argument("--scratch", type=Path)
    at = parser.parse_args()
    chosen = engines.EngineOptions(server=at.server, memory=at.memory, scratch=at.scratch)
    with engines.connect(at.engine, chosen) as engine:
        timed = Timed(engine)
        started = time.monotonic()
        analysis = engines.analyze(timed, Decoded(at.decoded), skip_s=0)
        taken_s = time.monotonic() - started
    parts = dict(timed.seconds)
    parts["merge and statistics"] = taken_s - sum(timed.seconds.values())
    at.parts.write_text(json.dumps(parts))
    print(analysis.summary.text)


if __name__ == "__main__":
    main()
