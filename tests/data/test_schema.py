"""Tables of run directories are as ``schema/`` describes them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import tailtrim
from tailtrim.results import TABLES

SCHEMA = Path(__file__).parents[2] / "schema"


@pytest.fixture(scope="module")
def run(
    testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> tailtrim.RunDirectory:
    place = tmp_path_factory.mktemp("schema") / "run"
    tailtrim.analyze(*testpmd, out=place)
    return tailtrim.RunDirectory(place)


def test_every_table_is_described() -> None:
    # Of no analysis: what `tailtrim ping` leaves beside its own, and decoded packets.
    described = sorted(path.stem for path in SCHEMA.glob("*.toml"))
    assert described == sorted([*TABLES, "roundtrip", "packet", "lost"])


@pytest.mark.parametrize("table", TABLES)
def test_columns(run: tailtrim.RunDirectory, table: str) -> None:
    described = tomllib.loads((SCHEMA / f"{table}.toml").read_text())["column"]
    types = {"int64": pa.int64(), "string": pa.string()}
    written = run.table(table).schema
    assert written.names == [column["name"] for column in described]
    for column in described:
        field = written.field(column["name"])
        assert field.type == types[column["type"]]
        assert field.nullable == column.get("nullable", False)


def test_tables_agree_with_the_summary(run: tailtrim.RunDirectory) -> None:
    summary = run.summary
    assert run.table("sample").num_rows == summary.samples
    assert sum(run.table("histogram")["count"].to_pylist()) == summary.samples
    assert run.table("worst").num_rows == summary.worst.count
    assert run.table("worst")["latency_ns"][0].as_py() == summary.latency_ns.max
    assert sum(run.table("second")["ingress_packets"].to_pylist()) == summary.ingress.packets
    assert sum(run.table("second")["samples"].to_pylist()) == summary.samples
