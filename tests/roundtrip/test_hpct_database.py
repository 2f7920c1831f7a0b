"""Files in HiPerConTracer's format go through its database and come back the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from releases import entering, unpacked
from servers import postgres
from watch_folders import MINUTE_NS, NOW, minute, target

from tailtrim.analysis import watched
from tailtrim.analysis.roundtrip import HpctPing, read_hpct, write_hpct
from tailtrim.analysis.roundtrip.hpct import hpct_name
from tailtrim.publishing.watch_export import convert

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.packages
psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")

DATA = Path(__file__).parents[1] / "data" / "hpct"
LATER_NS = 1_793_491_200 * 10**9
DATABASE = """\
dbbackend = PostgreSQL
dbserver = {folder}
dbport = 0
dbcafile = NONE
dbcrlfile = NONE
dbcertfile = NONE
dbkeyfile = NONE
dbconnectionflags = DisableTLS
dbuser = tester
dbpassword = none
database = postgres
dbreconnectdelay = 5
"""
IMPORT = """\
import_mode = MoveImportedFiles
import_path_filter =
import_file_path = {folder}/data/
import_max_depth = 6
bad_file_path = {folder}/bad/
good_file_path = {folder}/good/
move_directory_depth = 0
move_timestamp_depth = 0
status_interval = 60
gc_interval = 65
gc_max_age = 120
"""


def theirs(*words: str | Path) -> None:
    command = [*entering("sid-peers"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def names(folder: Path) -> Sequence[str]:
    return sorted(path.name for path in folder.rglob("*.hpct*"))


def returned(tmp_path: Path, given: Sequence[str]) -> list[HpctPing]:
    """Import what is in the folder ``data``, and return what is in the database."""
    schemas = unpacked("sid-peers") / "usr" / "share" / "hipercontracer" / "SQL"
    for name in ("good", "bad", "server"):
        (tmp_path / name).mkdir()
    importer, database = tmp_path / "importer.conf", tmp_path / "database.conf"
    importer.write_text(IMPORT.format(folder=tmp_path))
    with postgres(tmp_path / "server") as dsn:
        database.write_text(DATABASE.format(folder=tmp_path / "server"))
        with psycopg.connect(dsn, autocommit=True) as connection:
            for name in ("schema", "functions", "procedures", "views"):
                connection.execute((schemas / f"postgresql-{name}.sql").read_text())
        theirs("hpct-importer", "-C", importer, "-D", database, "--quit-when-idle")
        assert (names(tmp_path / "good"), names(tmp_path / "bad")) == (given, [])
        theirs("hpct-query", database, "ping", "-o", tmp_path / "queried.hpct")
    return sorted(read_hpct(tmp_path / "queried.hpct"), key=repr)


def test_its_importer_takes_ours_and_its_query_gives_them_back(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    sent = []
    for name in ("ping-icmp", "ping-udp"):
        pings = read_hpct(DATA / f"{name}.hpct")
        write_hpct(tmp_path / "data" / hpct_name(pings), pings)
        sent += pings
    assert returned(tmp_path, names(tmp_path / "data")) == sorted(sent, key=repr)


def test_its_importer_takes_minutes_of_a_watch(tmp_path: Path) -> None:
    for name, address in (("gw", "192.0.2.1:862"), ("voice", "192.0.2.1:862"), ("v6", "::1")):
        # Partitions of its schema begin with a later year than that of the other tests.
        begins_ns = [LATER_NS + number * MINUTE_NS for number in range(3)]
        lines = [minute(0, [2_000_000, None, 3_000_000], begin_ns=ns) for ns in begins_ns]
        told = {"address": address, "protocol": "stamp", "stamps": "software"}
        target(tmp_path / "watch" / name, lines, "2026-11-01", **told)
    span = watched.span("2026-11-01", NOW)
    accounts = [watched.Account(one, span) for one in watched.targets_of(tmp_path / "watch")]
    files = convert(accounts, "hpct", "watch", tmp_path / "data").files
    sent = [ping for file in files for ping in read_hpct(file)]
    assert len(sent) == 3 * 9
    assert returned(tmp_path, names(tmp_path / "data")) == sorted(sent, key=repr)


def test_postgresql_takes_parquet_as_the_docs_say(tmp_path: Path) -> None:
    target(tmp_path / "watch" / "gw", [minute(0, [2_000_000, None, 3_000_000])])
    (one,) = watched.targets_of(tmp_path / "watch" / "gw")
    account = watched.Account(one, watched.span("today", NOW))
    convert([account], "parquet", "watch", tmp_path / "week")
    docs = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()
    table = re.search(r"CREATE TABLE probes \([^)]*\)", docs)
    assert table
    # The programs duckdb and psql of the docs are these libraries.
    rows = duckdb.read_parquet(str(tmp_path / "week" / "probes" / "*.parquet"))
    rows.write_csv(str(tmp_path / "rows.csv"), header=False)
    (tmp_path / "server").mkdir()
    with postgres(tmp_path / "server") as dsn, psycopg.connect(dsn) as connection:
        connection.execute(table[0])
        with connection.cursor().copy("COPY probes FROM STDIN CSV") as copy:
            copy.write((tmp_path / "rows.csv").read_bytes())
        found = connection.execute("SELECT target, latency_ns FROM probes ORDER BY sent_ns")
        assert found.fetchall() == [("gw", 2_000_000), ("gw", None), ("gw", 3_000_000)]
