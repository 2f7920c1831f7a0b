"""Files in HiPerConTracer's format go through its database and come back the same."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from releases import entering, unpacked
from servers import postgres

from tailtrim.analysis.roundtrip import read_hpct, write_hpct
from tailtrim.analysis.roundtrip.hpct import hpct_name

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.packages
psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")

DATA = Path(__file__).parents[1] / "data" / "hpct"
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


def test_its_importer_takes_ours_and_its_query_gives_them_back(tmp_path: Path) -> None:
    schemas = unpacked("sid-peers") / "usr" / "share" / "hipercontracer" / "SQL"
    for name in ("data", "good", "bad", "server"):
        (tmp_path / name).mkdir()
    sent = []
    for name in ("ping-icmp", "ping-udp"):
        pings = read_hpct(DATA / f"{name}.hpct")
        write_hpct(tmp_path / "data" / hpct_name(pings), pings)
        sent += pings
    given = names(tmp_path / "data")
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
    queried = read_hpct(tmp_path / "queried.hpct")
    assert sorted(queried, key=repr) == sorted(sent, key=repr)
