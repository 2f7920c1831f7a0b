"""``query`` reads the tables of the directories it is given and nothing else, whatever the SQL."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import tailtrim
from tailtrim.analysis import engines
from tailtrim.analysis.decode import Decoded, decode
from tailtrim.analysis.engines import EngineOptions
from tailtrim.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("ibis", reason="engines need ibis-framework")

CONFINED = EngineOptions(confined=True)


@pytest.fixture(scope="module")
def run(testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("confined") / "run"
    tailtrim.analyze(*testpmd, out=place)
    return place


@pytest.fixture(scope="module")
def decoded(testpmd: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decode(testpmd, tmp_path_factory.mktemp("confined") / "decoded", buckets=4).path


@pytest.fixture
def around(tmp_path: Path, run: Path) -> Path:
    """Return a folder with a run directory and files that a query of it must not touch."""
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "secret.csv").write_text("word\nsecret\n")
    shutil.copy(run / "worst.parquet", tmp_path / "other.parquet")
    (tmp_path / "run" / "linked.csv").symlink_to("../secret.csv")
    return tmp_path


def query(
    folder: Path, text: str, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tailtrim.cli", "query", text, *arguments],
        check=False,
        text=True,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


#: Statements that read, write, fetch or loosen, each from a folder that has the run directory.
REFUSED = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "SELECT * FROM read_text('file:///etc/passwd')",
    "SELECT * FROM read_csv('secret.csv')",
    "SELECT * FROM sniff_csv('secret.csv')",
    "SELECT * FROM 'other.parquet'",
    "SELECT * FROM parquet_metadata('other.parquet')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_text('run/summary.json')",
    "SELECT * FROM read_csv('run/linked.csv')",
    "SELECT * FROM read_csv('run/../secret.csv')",
    "COPY (SELECT 1) TO 'copied.csv'",
    "COPY (SELECT 1) TO 'run/worst.parquet' (USE_TMP_FILE false)",
    "COPY (SELECT 1) TO 'run/copied.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'copied.csv'",
    "WITH copied AS (COPY (SELECT 1) TO 'copied.csv') SELECT 1",
    "WITH copied AS (COPY (SELECT 1) TO 'copied.csv') PIVOT worst ON run USING count(*)",
    """SELECT * FROM json_execute_serialized_sql(json_serialize_sql(
        'WITH copied AS (COPY (SELECT 1) TO ''copied.csv'') SELECT 1'))""",
    "PREPARE copied AS COPY (SELECT 1) TO 'copied.csv'; EXECUTE copied",
    "EXPORT DATABASE 'exported'",
    "IMPORT DATABASE 'exported'",
    "ATTACH 'attached.duckdb'",
    "SELECT * FROM read_duckdb('attached.duckdb')",
    "INSTALL httpfs",
    "FORCE INSTALL spatial FROM community",
    "UPDATE EXTENSIONS",
    "LOAD httpfs",
    "LOAD './own.duckdb_extension'",
    "SELECT * FROM 'https://127.0.0.1:1/some.parquet'",
    "SELECT * FROM read_csv('http://127.0.0.1:1/some.csv')",
    "SELECT * FROM 's3://bucket/some.parquet'",
    "SELECT * FROM sqlite_scan('some.db', 'some')",
    "CREATE SECRET one (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "CREATE PERSISTENT SECRET one (TYPE http, BEARER_TOKEN 'a')",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET GLOBAL lock_configuration = false",
    "SET allowed_directories = ['/']",
    "SET allowed_paths = ['/etc/passwd']",
    "SET temp_directory = 'elsewhere'",
    "SET autoinstall_known_extensions = true",
    "SET log_query_path = 'queries'",
    "SET profile_output = 'profile'",
    "PRAGMA enable_profiling",
    "CALL enable_logging(storage = 'file', storage_path = 'logged')",
]


@pytest.fixture
def in_folder(around: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Go where relative paths of a query begin, without a process for each."""
    monkeypatch.chdir(around)
    # DuckDB keeps extensions and secrets below it.
    monkeypatch.setenv("HOME", str(around))
    before = contents(around)
    yield around
    assert contents(around) == before


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_table_of_the_directories_is_refused(in_folder: Path, text: str) -> None:
    with engines.connect("duckdb", CONFINED) as at:
        with pytest.raises(EngineError, match=r"^duckdb: ") as raised:
            list(engines.query(at, text, [in_folder / "run"]))
        notes = raised.value.__notes__
        assert len(notes) == 1
        assert "nothing else" in notes[0]
        # The refused statement has not loosened the confinement.
        with pytest.raises(EngineError, match="operations are disabled"):
            list(at.sql("SELECT * FROM read_text('/etc/passwd')"))


def test_there_is_no_way_to_the_environment(run: Path) -> None:
    with (
        engines.connect("duckdb", CONFINED) as at,
        pytest.raises(EngineError, match="getenv does not exist"),
    ):
        list(engines.query(at, "SELECT getenv('HOME')", [run]))


def test_the_command_refuses_in_one_error(around: Path) -> None:
    before = contents(around)
    ended = query(around, "SELECT * FROM read_text('/etc/passwd')", "run")
    assert ended.returncode == 3
    error, hint = ended.stderr.splitlines()
    assert re.match('error: duckdb: Permission Error: .*"/etc/passwd"', error)
    assert re.match("hint: .*nothing else; --unrestricted", hint)
    assert contents(around) == before


def test_unrestricted_permits_it(around: Path) -> None:
    text = "COPY (SELECT * FROM 'secret.csv') TO 'run/copied.csv'"
    ended = query(around, text, "run", "--unrestricted")
    assert ended.returncode == 0, ended.stderr
    assert (around / "run" / "copied.csv").read_text() == "word\nsecret\n"


def test_unrestricted_fetches_no_extension_by_itself(around: Path) -> None:
    text = "SELECT * FROM 'https://127.0.0.1:1/some.parquet'"
    ended = query(around, text, "--unrestricted", HOME=str(around))
    assert ended.returncode == 3
    assert "httpfs" in ended.stderr
    assert not (around / ".duckdb").exists()


def test_unrestricted_is_for_duckdb(tmp_path: Path) -> None:
    ended = query(tmp_path, "SELECT 1", "--engine", "postgres", "--unrestricted")
    assert ended.returncode == 2
    assert ended.stderr.count("error: ") == 1
    assert "--unrestricted: only for duckdb" in ended.stderr
    with pytest.raises(EngineError, match="cannot be confined"):
        engines.connect("postgres", CONFINED)


def test_rows_are_written_by_us(around: Path) -> None:
    ended = query(around, "SELECT 1 AS a", "run", "--format", "csv", "--out", "rows.csv")
    assert ended.returncode == 0, ended.stderr
    assert (around / "rows.csv").read_text() == '"a"\n1\n'


@pytest.mark.parametrize(
    "text",
    [
        "DESCRIBE worst",
        "SELECT * FROM worst ORDER BY ALL",
        "SELECT run, max(latency_ns) FROM worst GROUP BY run ORDER BY run",
        "SELECT run, sum(count) AS samples FROM histogram GROUP BY run ORDER BY run",
        "DESCRIBE packet",
        "SELECT * FROM packet ORDER BY capture, packet_index LIMIT 1000",
        "SELECT capture, bucket, count(*) AS n FROM packet GROUP BY ALL ORDER BY ALL",
        "SELECT count(*) AS n FROM packet WHERE capture = 1 AND bucket = 2 AND flow IS NULL",
        "PIVOT packet ON bucket USING count(*) GROUP BY capture ORDER BY capture",
    ],
)
def test_the_same_rows_as_unconfined(run: Path, decoded: Path, tmp_path: Path, text: str) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    found = []
    for options in (CONFINED, EngineOptions()):
        with engines.connect("duckdb", options) as at:
            batches = list(engines.query(at, text, [run, other, decoded]))
            rows = [row for batch in batches for row in batch.to_pylist()]
            found.append((batches[0].schema, rows))
    assert found[0] == found[1]


def test_a_table_that_is_a_link_to_elsewhere(around: Path) -> None:
    table = around / "run" / "worst.parquet"
    table.unlink()
    table.symlink_to("../other.parquet")
    ended = query(around, "SELECT count(*) FROM worst", "run")
    assert ended.returncode == 3
    error, hint = ended.stderr.splitlines()
    for fact in ("error: run/worst.parquet: ", f" {around}/other.parquet, outside of run"):
        assert fact in error
    assert re.match("hint: .*--unrestricted", hint)
    assert query(around, "SELECT count(*) FROM worst", "run", "--unrestricted").returncode == 0
    (around / "link").symlink_to("run")
    table.unlink()
    table.symlink_to("histogram.parquet")
    assert query(around, "SELECT count(*) FROM worst", "link").returncode == 0


def test_a_damaged_table(around: Path) -> None:
    (around / "run" / "worst.parquet").write_bytes(b"PAR1 no table PAR1")
    ended = query(around, "SELECT count(*) FROM histogram", "run")
    assert ended.returncode == 3
    assert ended.stderr.count("error: ") == 1
    assert "run/worst.parquet: the table cannot" in ended.stderr


def test_what_does_not_fit_into_memory_is_put_on_disk(tmp_path: Path, decoded: Path) -> None:
    options = EngineOptions(confined=True, memory="60MB", threads=1, scratch=tmp_path)
    text = """
        SELECT max(place) AS n FROM (
            SELECT row_number() OVER (ORDER BY hash(range)) AS place FROM range(8000000))
    """
    with engines.connect("duckdb", options) as at:
        (batch,) = engines.query(at, text, [decoded])
        assert batch.to_pylist() == [{"n": 8_000_000}]
    assert list(tmp_path.iterdir()) == []


def test_a_database_file_is_only_read(tmp_path: Path, decoded: Path) -> None:
    place = tmp_path / "captures.duckdb"
    with engines.connect("duckdb", EngineOptions(server=str(place))) as at:
        at.load(Decoded(decoded))
    before = contents(tmp_path)
    options = EngineOptions(server=str(place), confined=True)
    changing = [
        "CREATE TABLE mine AS SELECT 1",
        "DROP TABLE packet",
        "WITH one AS (DELETE FROM packet RETURNING 1) SELECT * FROM one",
        f"COPY (SELECT 1) TO '{place}' (USE_TMP_FILE false)",
        f"COPY (SELECT 1) TO '{place}.wal' (USE_TMP_FILE false)",
        f"ATTACH '{tmp_path}/other.duckdb'",
    ]
    for text in changing:
        with engines.connect("duckdb", options) as at:
            with pytest.raises(EngineError) as raised:
                list(engines.query(at, text))
            assert "nothing else" in raised.value.__notes__[0], raised.value
        assert contents(tmp_path) == before
    with engines.connect("duckdb", options) as at:
        (batch,) = engines.query(at, "SELECT count(*) AS packets FROM packet")
        assert batch.to_pylist() == [{"packets": 80_000}]
    missing = query(tmp_path, "SELECT 1", "--server", "missing.duckdb")
    assert missing.returncode == 3
    assert "database does not exist" in missing.stderr
    assert contents(tmp_path) == before
