"""Disks that are full and processes that are killed: one clear error, and a restart completes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import servers
from decoded_rows import rows
from random_captures import START_NS, Trouble, pair

import tailtrim
from tailtrim.analysis import engines
from tailtrim.analysis.decode import Decoded, decode
from tailtrim.analysis.engines import EngineOptions, binary
from tailtrim.errors import EngineError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")
pytest.importorskip("ibis", reason="engines need ibis-framework")

PACKETS = 60_000
#: Packets whose signatures 64 MB have no room for.
SPILLING = 1_000_000


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return pair(tmp_path_factory.mktemp("captures"), 31, Trouble(packets=PACKETS, step_ns=10_000))


@pytest.fixture(scope="module")
def decoded(captures: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Decoded:
    return decode(captures, tmp_path_factory.mktemp("faults") / "decoded", buckets=2)


def in_namespace(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace of its own, which ends with it."""
    unshare = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "-r"]
    probe = [*unshare, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    tried = subprocess.run(probe, check=False, capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"no small disk can be mounted: {tried.stderr.strip()}")
    return subprocess.run(
        [*unshare, "sh", "-c", script, "sh", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )


DISK_FULL = """
mount -t tmpfs -o size="$2" tmpfs "$1" || exit 99
decode() { "$3" -m tailtrim.cli decode "$4" "$5" --out "$1/decoded" --buckets 4; }
decode "$@" && exit 98
find "$1" -name '*.parquet' | grep -q . && exit 97
mount -o remount,size=200m "$1" && decode "$@" >&2 || exit 96
cp -r "$1/decoded" "$6"
"""


@pytest.mark.parametrize("size", ["64k", "400k", "1m"])
def test_a_disk_that_is_full(
    captures: tuple[Path, Path], decoded: Decoded, tmp_path: Path, size: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_namespace(DISK_FULL, disk, size, sys.executable, *captures, tmp_path / "copy")
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stderr.count("error: ") == 1
    for fact in ("No space left", "the same command again"):
        assert fact in done.stderr
    assert "Traceback" not in done.stderr
    for number in (0, 1):
        assert rows(Decoded(tmp_path / "copy"), number) == rows(decoded, number)


def loaded(dsn: str) -> tuple[int, int]:
    """Return how many captures and packets are loaded."""
    with psycopg.connect(dsn) as connection:
        if connection.execute("SELECT to_regclass('tailtrim.capture')").fetchone() == (None,):
            return (0, 0)
        (found,) = connection.execute(
            "SELECT (SELECT count(*) FROM tailtrim.capture), (SELECT count(*) FROM tailtrim.packet)"
        ).fetchall()
        return found[0], found[1]


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[str]:
    """Run a server that may break: others' tables would go with it."""
    with servers.postgres(tmp_path) as dsn:
        answering(dsn)
        yield dsn


def answering(dsn: str) -> None:
    """Wait until a server that starts or recovers answers."""
    end_s = time.monotonic() + 60
    while True:
        try:
            # That a killed backend is gone the server notices only now.
            for _ in range(5):
                loaded(dsn)
                time.sleep(0.1)
        except psycopg.OperationalError:
            assert time.monotonic() < end_s, "the server does not answer"
            time.sleep(0.1)
        else:
            return


def test_a_backend_that_is_killed(
    own_server: str, decoded: Decoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = EngineOptions(server=own_server)
    encode, calls = binary.encode, []

    def kill(batch: pa.RecordBatch) -> bytes:
        calls.append(1)
        if len(calls) == 2:
            with psycopg.connect(own_server) as connection:
                (backend,) = connection.execute(
                    "SELECT pid FROM pg_stat_activity"
                    " WHERE query LIKE 'COPY%' AND pid <> pg_backend_pid()"
                ).fetchone()
            os.kill(backend, signal.SIGKILL)
        return encode(batch)

    with monkeypatch.context() as patched, engines.connect("postgres", options) as at:
        patched.setattr(binary, "encode", kill)
        with pytest.raises(EngineError, match=r"server ended .*load captures") as raised:
            at.load(decoded)
        (note,) = raised.value.__notes__
        assert re.match("nothing half-done .*try again", note)
    answering(own_server)
    assert loaded(own_server) == (0, 0)
    with engines.connect("postgres", options) as at:
        at.load(decoded)
        matched = engines.analyze(at, decoded, skip_s=0)
    assert loaded(own_server) == (2, sum(one.rows for one in decoded.captures))
    with engines.connect("duckdb") as at:
        assert engines.analyze(at, decoded, skip_s=0).summary.text == matched.summary.text


def test_a_full_disk_of_postgres(decoded: Decoded, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("a small disk for PostgreSQL is mounted by root only")
    disk = tmp_path / "disk"
    disk.mkdir()
    # 8 MB: less than 120,000 rows of ten 64-bit integers.
    mount = 'mount -t tmpfs -o size=8m,uid=postgres tmpfs "$0" && exec "$@"'
    beside = ["unshare", "--mount", "sh", "-c", mount, str(disk)]
    with servers.postgres(tmp_path, beside=beside) as dsn:
        answering(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        small = f"{dsn} options='-c default_tablespace=small -c temp_tablespaces=small'"
        with engines.connect("postgres", EngineOptions(server=small)) as at:
            for work in (type(at).load, engines.analyze):
                with pytest.raises(EngineError, match="server has no room") as raised:
                    work(at, decoded)
                assert "free space" in raised.value.__notes__[0]
        assert loaded(dsn) == (0, 0)
        with psycopg.connect(dsn) as connection:
            (left,) = connection.execute("SELECT pg_tablespace_size('small')").fetchone()
        assert left < 100_000
        with engines.connect("postgres", EngineOptions(server=dsn)) as at:
            at.load(decoded)
        assert loaded(dsn)[1] == sum(one.rows for one in decoded.captures)


SCRATCH_FULL = """
mount -t tmpfs -o size="$2" tmpfs "$1" || exit 99
analyze() {
  "$3" -m tailtrim.cli analyze "$4" --memory 64MB --scratch "$1" --skip 0 --out "$5/run" --json
}
analyze "$@" > "$5/said" && exit 98
[ -s "$5/said" ] && exit 97
find "$1" -mindepth 1 | grep -q . && exit 96
find "$5" -mindepth 1 ! -name said | grep -q . && exit 95
mount -o remount,size=400m "$1" && analyze "$@" > "$5/said" || exit 94
find "$1" -mindepth 1 | grep -q . && exit 93
exit 0
"""


def scratch_full(decoded: Decoded, folder: Path, size: str) -> tuple[str, str]:
    """Analyze with a scratch disk of a size that fills up, then with a large one.

    The first try leaves nothing. Returns the message on it, and the result of the
    second.
    """
    disk, place = folder / "disk", folder / "place"
    disk.mkdir()
    place.mkdir()
    done = in_namespace(SCRATCH_FULL, disk, size, sys.executable, decoded.path, place)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr
    return done.stderr, (place / "said").read_text().strip()


@pytest.mark.parametrize("size", ["4k", "300k"])
def test_a_full_scratch_disk(
    captures: tuple[Path, Path], decoded: Decoded, tmp_path: Path, size: str
) -> None:
    """It is full when the engine's file is made, or when pairs are put there."""
    told, result = scratch_full(decoded, tmp_path, size)
    for fact in ("No space left", "--scratch DIR"):
        assert fact in told
    assert result == tailtrim.analyze(*captures, skip_s=0).summary.text


def test_a_scratch_disk_that_packets_fill(tmp_path: Path) -> None:
    """It is full of signatures that memory has no room for."""
    sides = []
    for side, delay_ns in (("ingress", 0), ("egress", 4_000)):
        records = np.zeros(SPILLING, [("stamp_ns", "<u8"), ("identifier", "<u4")])
        records["identifier"] = np.arange(SPILLING)
        records["stamp_ns"] = START_NS + delay_ns + 1_000 * np.arange(SPILLING)
        sides.append(tmp_path / f"{side}.mscap")
        records.tofile(sides[-1])
    decoded = decode(sides, tmp_path / "decoded", buckets=1)
    told, result = scratch_full(decoded, tmp_path, "20m")
    assert "failed to offload" in told
    assert "more disk for --scratch" in told
    assert told.count("\n") == 2, "one error with one hint"
    assert result == tailtrim.analyze(*sides, skip_s=0).summary.text


def test_a_scratch_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"nowhere: .*No such file"):
        engines.connect("duckdb", EngineOptions(scratch=tmp_path / "nowhere"))
