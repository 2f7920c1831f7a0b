"""Codes that no rule gives: an engine that is broken is told of, and counts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from random_captures import Trouble, pair

from tailtrim import TailtrimError
from tailtrim.analysis import engines
from tailtrim.analysis.decode import decode

if TYPE_CHECKING:
    from pathlib import Path

    import ibis.expr.types as ir

pytest.importorskip("ibis", reason="engines need ibis-framework")

COLUMNS = (
    ("outcomes", "ingress", 3),
    ("outcomes", "ingress_trimmed", 1),
    ("outcomes", "egress", 2),
    ("outcomes", "egress_trimmed", 1),
    ("pairs", "decided_side", 1),
    ("tangled", "side", 1),
)


@pytest.mark.parametrize("code", [-1, 7])
@pytest.mark.parametrize(("rows", "column", "last"), COLUMNS)
def test_an_unknown_code_is_an_error(  # noqa: PLR0913, PLR0917 - what is patched, and with what
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str, column: str, last: int, code: int
) -> None:
    from tailtrim.analysis.engines import expressions  # noqa: PLC0415 - ibis takes a second

    captures = pair(tmp_path, 1, Trouble(packets=200, lost=0.2, alien=0.2, reused=0.2))
    decoded = decode(captures, tmp_path / "decoded", buckets=1)
    sound = getattr(expressions, rows)

    def broken(*arguments: object) -> ir.Table:
        table: ir.Table = sound(*arguments)
        return table.mutate(**{column: table[column] * 0 + code})

    monkeypatch.setattr(expressions, rows, broken)
    told = f"the engine handed over {code} in the column {column}, expected 0 to {last}"
    with (
        engines.connect("duckdb", engines.EngineOptions()) as at,
        pytest.raises(TailtrimError, match=told),
    ):
        engines.analyze(at, decoded)
