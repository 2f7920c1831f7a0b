"""Failures of an engine give one clear error, and leave nothing half-done."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
import servers
from random_captures import Trouble, pair

import tailtrim
from tailtrim.analysis import engines
from tailtrim.analysis.decode import Decoded, decode
from tailtrim.analysis.engines import EngineOptions, binary, choice
from tailtrim.errors import DecodedError, EngineError, OutputError, QueryError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")
pytest.importorskip("ibis", reason="engines need ibis-framework")


@pytest.fixture
def decoded(tmp_path: Path) -> Decoded:
    return decode(pair(tmp_path, 11, Trouble(packets=2_000)), tmp_path / "decoded", buckets=2)


def loaded(dsn: str) -> tuple[int, int]:
    """Return how many captures and packets are loaded."""
    with psycopg.connect(dsn) as connection:
        if connection.execute("SELECT to_regclass('tailtrim.capture')").fetchone() == (None,):
            return (0, 0)
        (captures,) = connection.execute("SELECT count(*) FROM tailtrim.capture").fetchone()
        (packets,) = connection.execute("SELECT count(*) FROM tailtrim.packet").fetchone()
        return captures, packets


def test_importing_is_fast() -> None:
    # Nobody who only matches two captures pays for the engines.
    program = (
        "import sys, tailtrim.cli, tailtrim.analysis.engines;"
        "heavy = {'ibis', 'duckdb', 'psycopg', 'pyspark', 'pyarrow'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choice._NEEDS, "duckdb", ("no_such_module",))  # noqa: SLF001
    with pytest.raises(EngineError, match="not installed") as raised:
        engines.connect("duckdb")
    assert raised.value.__notes__ == ["pip install 'tailtrim[duckdb]'"]


def test_an_unknown_engine() -> None:
    with pytest.raises(EngineError, match="duckdb, postgres, spark"):
        engines.connect("oracle")


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", "cannot be reached"),
        ("host=/nowhere dbname=none", "cannot be reached"),
        ("what is this", "invalid DSN"),
    ],
)
def test_a_postgres_that_is_not_there(server: str, told: str) -> None:
    with pytest.raises(EngineError, match=told):
        engines.connect("postgres", EngineOptions(server=server))


@pytest.mark.engines
def test_a_spark_without_a_url() -> None:
    pytest.importorskip("pyspark", reason="Spark needs pyspark")
    with pytest.raises(EngineError, match="Spark Connect URL"):
        engines.connect("spark")


@pytest.mark.engines
def test_a_spark_that_is_not_there() -> None:
    # Its client asks for ten minutes before it says that nobody answers.
    pytest.importorskip("pyspark", reason="Spark needs pyspark")
    started = time.monotonic()
    with pytest.raises(EngineError, match=r"cannot reach sc://.*Connection refused"):
        engines.connect("spark", EngineOptions(server="sc://127.0.0.1:1"))
    assert time.monotonic() - started < 60


@pytest.mark.engines
def test_a_spark_that_goes_away(
    decoded: Decoded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        options = EngineOptions(server=stack.enter_context(servers.sail(tmp_path)))
        monkeypatch.setattr("tailtrim.analysis.engines.spark.RETRIES", 1)
        with engines.connect("spark", options) as at:
            stack.close()
            with pytest.raises(EngineError, match="Connection refused"):
                engines.analyze(at, decoded)


def test_pairs_of_spark_that_cannot_be_put_anywhere(
    sail_url: str, decoded: Decoded, tmp_path: Path
) -> None:
    options = EngineOptions(server=sail_url, scratch=tmp_path / "nowhere")
    with (
        engines.connect("spark", options) as at,
        pytest.raises(OutputError, match="nowhere: cannot be written"),
    ):
        engines.analyze(at, decoded)


def test_loading_once_and_again(postgres_dsn: str, decoded: Decoded) -> None:
    before = loaded(postgres_dsn)
    options = EngineOptions(server=postgres_dsn)
    for _ in range(2):
        with engines.connect("postgres", options) as at:
            at.load(decoded)
    packets = sum(captured.rows for captured in decoded.captures)
    assert loaded(postgres_dsn) == (before[0] + 2, before[1] + packets)
    captures = [captured.name for captured in decoded.captures]
    with engines.connect("postgres", options) as at:
        found = engines.analyze(at, decoded).summary.text
        assert found == tailtrim.analyze(*captures).summary.text


def test_a_load_that_fails_leaves_nothing(postgres_dsn: str, decoded: Decoded) -> None:
    before = loaded(postgres_dsn)
    last = list(decoded.files(1))[-1]
    last.write_bytes(b"no Parquet")
    with (
        engines.connect("postgres", EngineOptions(server=postgres_dsn)) as at,
        pytest.raises(Exception, match="Parquet"),
    ):
        at.load(decoded)
    assert loaded(postgres_dsn) == before


def test_a_role_without_rights(postgres_dsn: str, decoded: Decoded) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
    try:
        guest = postgres_dsn.replace("user=tester", "user=guest")
        with engines.connect("postgres", EngineOptions(server=guest)) as at:
            with pytest.raises(EngineError, match=r"no right .*load captures") as raised:
                at.load(decoded)
            assert "GRANT CREATE, TEMPORARY" in raised.value.__notes__[0]
            with pytest.raises(EngineError, match="no right to"):
                engines.analyze(at, decoded)
    finally:
        with psycopg.connect(postgres_dsn) as connection:
            connection.execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")
            connection.execute("DROP ROLE guest")


def test_a_backend_that_is_ended(
    postgres_dsn: str, decoded: Decoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = loaded(postgres_dsn)
    encode, calls = binary.encode, []

    def end_backend(batch: pa.RecordBatch) -> bytes:
        calls.append(1)
        if len(calls) == 2:
            with psycopg.connect(postgres_dsn) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE query LIKE 'COPY%' AND pid <> pg_backend_pid()"
                )
        return encode(batch)

    options = EngineOptions(server=postgres_dsn)
    with monkeypatch.context() as patched, engines.connect("postgres", options) as at:
        patched.setattr(binary, "encode", end_backend)
        with pytest.raises(EngineError, match="postgres"):
            at.load(decoded)
    assert len(calls) >= 2
    assert loaded(postgres_dsn) == before
    with engines.connect("postgres", options) as at:
        at.load(decoded)
    assert loaded(postgres_dsn)[0] == before[0] + 2


def test_no_memory(decoded: Decoded) -> None:
    with (
        engines.connect("duckdb", EngineOptions(memory="1MB", threads=1)) as at,
        pytest.raises(EngineError, match="duckdb"),
    ):
        engines.analyze(at, decoded)


def test_a_limit_of_memory_is_one_of_duckdb() -> None:
    for name in ("postgres", "spark"):
        with pytest.raises(EngineError, match=f"memory is a limit .* engine {name} has none"):
            engines.connect(name, EngineOptions(memory="2GB"))
    with pytest.raises(QueryError, match="memory 'foo': expected a size such as 2GB"):
        engines.connect("duckdb", EngineOptions(memory="foo"))


def test_captures_that_are_not_there(decoded: Decoded, tmp_path: Path) -> None:
    with engines.connect("duckdb") as at:
        with pytest.raises(DecodedError, match="has no capture 7"):
            engines.analyze(at, decoded, ingress=0, egress=7)
        with pytest.raises(DecodedError, match="the same capture"):
            engines.analyze(at, decoded, ingress=1, egress=1)
    with pytest.raises(DecodedError, match="not a decoded directory"):
        Decoded(tmp_path)


def test_loading_into_duckdb(decoded: Decoded, tmp_path: Path) -> None:
    place = tmp_path / "captures.duckdb"
    with engines.connect("duckdb", EngineOptions(server=str(place))) as at:
        at.load(decoded)
        with pytest.raises(EngineError, match="onstraint"):
            at.load(decoded)
    with engines.connect("duckdb", EngineOptions(server=str(place))) as at:
        (batch,) = engines.query(at, "SELECT count(*) AS packets FROM packet")
        assert batch.to_pylist() == [{"packets": sum(c.rows for c in decoded.captures)}]
    with (
        engines.connect("duckdb") as at,
        pytest.raises(EngineError, match="no database file given") as raised,
    ):
        at.load(decoded)
    assert raised.value.__notes__ == ["name one with server"]
