"""``query``: rows of each type, and none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import tailtrim

if TYPE_CHECKING:
    from pathlib import Path


ROWS = "SELECT 9007199254740993 AS n, sum(x) AS total, 1.5 AS f FROM (VALUES (1), (2)) AS t(x)"
NONE = "SELECT 1 AS n, 'a' AS name WHERE 1 = 2"


def test_numbers_are_numbers() -> None:
    (line,) = tailtrim("query", ROWS, "--format", "json").stdout.splitlines()
    assert json.loads(line) == {"n": 9007199254740993, "total": 3, "f": 1.5}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_no_rows_have_columns_still(tmp_path: Path, form: str) -> None:
    out = tmp_path / "rows"
    ended = tailtrim("query", NONE, "--format", form, "--out", out)
    assert ended.returncode == 0, ended.stderr
    if form == "csv":
        assert out.read_text() == '"n","name"\n'
    else:
        assert pq.read_schema(out).names == ["n", "name"]
        assert pq.read_schema(out).field("n").type == pa.int32()


def test_postgres_says_the_types(postgres_dsn: str, tmp_path: Path) -> None:
    at = ("--engine", "postgres", "--server", postgres_dsn, "--format", "parquet")
    out = tmp_path / "rows.parquet"
    for rows, text in ((1, ROWS), (0, f"{ROWS} HAVING sum(x) > 3")):
        ended = tailtrim("query", text, *at, "--out", out)
        assert ended.returncode == 0, ended.stderr
        found = pq.read_table(out)
        assert found.num_rows == rows
        assert found.schema.types == [pa.int64(), pa.int64(), pa.float64()]
