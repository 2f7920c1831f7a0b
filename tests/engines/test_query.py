"""``query``: rows of each type, and none."""

from __future__ import annotations

import json
import shutil
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


def test_runs_of_one_name_are_told_apart(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    """Regression: of run directories with the same name, all but the last were left out."""
    first, second, third = (tmp_path / name for name in ("a/run-000", "b/run-000", "b/run-001"))
    assert tailtrim("analyze", *testpmd, "--out", first).returncode == 0
    for other in (second, third):
        shutil.copytree(first, other)
    text = "SELECT run, sum(count) AS samples FROM histogram GROUP BY run ORDER BY run"
    again = tmp_path / "b" / ".." / "a" / "run-000"
    ended = tailtrim("query", text, first, second, third, again, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    rows = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [row["run"] for row in rows] == [str(first), str(second), "run-001"]
    assert len({row["samples"] for row in rows}) == 1
