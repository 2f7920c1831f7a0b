"""``decode``, ``analyze --engine``, ``load`` and ``query`` as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from command_line import tailtrim

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("ibis", reason="engines need ibis-framework")


@pytest.fixture(scope="module")
def decoded(testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("commands") / "decoded"
    result = tailtrim("decode", *testpmd, "--out", place)
    assert result.returncode == 0, result.stderr
    assert "40,000 packets" in result.stdout
    return place


@pytest.fixture(scope="module")
def native(testpmd: tuple[Path, Path]) -> str:
    return tailtrim("analyze", *testpmd, "--json").stdout


def test_the_same_bytes(testpmd: tuple[Path, Path], decoded: Path, native: str) -> None:
    assert tailtrim("analyze", decoded, "--json").stdout == native
    assert tailtrim("analyze", f"{decoded}:0", f"{decoded}:1", "--json").stdout == native
    assert tailtrim("analyze", *testpmd, "--engine", "duckdb", "--json").stdout == native


def test_hints_name_options(testpmd: tuple[Path, Path], decoded: Path, tmp_path: Path) -> None:
    no_file = tailtrim("load", decoded, "--engine", "duckdb")
    assert no_file.returncode == 3
    assert re.search("^hint: .*--server WHERE$", no_file.stderr, re.MULTILINE)
    assert tailtrim("decode", *testpmd, testpmd[0], "--out", tmp_path / "three").returncode == 0
    three = tailtrim("analyze", tmp_path / "three")
    assert three.returncode == 2
    hint = r"^hint: .*ingress \(DIR:0\) .*egress \(DIR:1\)"
    assert re.search(hint, three.stderr, re.MULTILINE)


def test_postgres(decoded: Path, native: str, postgres_dsn: str) -> None:
    at = ("--engine", "postgres", "--server", postgres_dsn)
    assert tailtrim("analyze", decoded, *at, "--json").stdout == native
    result = tailtrim("load", decoded, *at)
    for fact in ("80,000 packets", "2 captures", "tailtrim.packet"):
        assert fact in result.stdout
    assert tailtrim("analyze", decoded, *at, "--json").stdout == native
    counted = (
        "SELECT name, count(*) AS packets FROM packet JOIN capture USING (capture) GROUP BY name"
    )
    lines = tailtrim("query", counted, *at, "--format", "json").stdout.splitlines()
    assert 40_000 in {json.loads(line)["packets"] for line in lines}
    for wrong in ("SELEC 1", "SELECT nothing FROM packet", "DROP TABLE packet"):
        refused = tailtrim("query", wrong, *at)
        assert refused.returncode == 2, refused.stderr
        assert refused.stderr.startswith("error: postgres: ")


def test_query(testpmd: tuple[Path, Path], decoded: Path, tmp_path: Path) -> None:
    run = tmp_path / "hw"
    tailtrim("analyze", *testpmd, "--skip", "1s", "--out", run)
    asked = "SELECT run, sum(count) AS samples FROM histogram GROUP BY run"
    table = tailtrim("query", asked, run).stdout
    assert table.split() == ["run", "samples", "hw", "30717"]
    wide = ", ".join(f"{10**15 + n} AS column_{n}" for n in range(9))
    names, values = tailtrim("query", f"SELECT {wide}", run).stdout.splitlines()
    assert values.split() == [str(10**15 + n) for n in range(9)]
    assert len(names.split()) == 9
    assert json.loads(tailtrim("query", asked, run, "--json").stdout)["samples"] == 30_717
    rows = list(
        csv.DictReader(io.StringIO(tailtrim("query", asked, run, "--format", "csv").stdout))
    )
    assert rows == [{"run": "hw", "samples": "30717"}]
    out = tmp_path / "rows.parquet"
    packets = "SELECT capture, count(*) AS packets FROM packet GROUP BY capture"
    result = tailtrim("query", packets, decoded, "--format", "parquet", "--out", out)
    assert result.returncode == 0, result.stderr
    assert pq.read_table(out)["packets"].to_pylist() == [40_000, 40_000]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("query", "SELECT 1", "--engine", "native"), 2, "has no SQL"),
        (("query", "SELECT 1", "--format", "parquet"), 2, "file with --out"),
        (("analyze", "one.pcap"), 2, "cannot be opened"),
        (("analyze", "/nowhere:0", "/nowhere:1", "--engine", "duckdb"), 2, "error: "),
        (("analyze", "a", "b", "--engine", "duckdb", "--jobs", "2"), 2, "for the native matcher"),
        (("load", "/nowhere", "--engine", "duckdb"), 2, "not a decoded directory"),
    ],
)
def test_errors(arguments: tuple[str, ...], code: int, told: str) -> None:
    result = tailtrim(*arguments)
    assert result.returncode == code, result.stderr
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error: ") == 1


@pytest.mark.parametrize(
    "text", ["SELEC 1", "SELECT nothing FROM nowhere", "SELECT CAST('a' AS INTEGER)"]
)
def test_a_typo_in_sql_is_a_wrong_request(text: str) -> None:
    wrong = tailtrim("query", text)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: duckdb: ")
    assert wrong.stderr.count("error: ") == 1


def test_native_does_not_read_what_is_decoded(decoded: Path) -> None:
    result = tailtrim("analyze", decoded, "--engine", "native")
    assert result.returncode == 2
    for fact in ("engine native cannot", "decoded captures"):
        assert fact in result.stderr


def test_options_of_decode_come_too_late(decoded: Path) -> None:
    result = tailtrim("analyze", decoded, "--mask", "nat")
    assert result.returncode == 2
    assert "decode the captures again" in result.stderr
