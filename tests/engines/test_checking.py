"""Workers of a cluster that match captures, and checks that keep other workers from it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import tailtrim

if TYPE_CHECKING:
    from pathlib import Path

    from servers import Cluster

pytest.importorskip("pyspark", reason="Spark needs pyspark")

from tailtrim.analysis.engines import checking

pytestmark = pytest.mark.engines

CHECK = [sys.executable, "-m", "tailtrim.cli", "engines", "check"]


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CHECK, *words], capture_output=True, text=True, check=False)


def test_workers_that_can(spark_cluster: Cluster, testpmd: tuple[Path, Path]) -> None:
    captures = [str(path) for path in testpmd]
    ended = asked(*captures, "--server", spark_cluster.url, "--json")
    assert ended.returncode == 0, ended.stderr
    (worker,) = json.loads(ended.stdout)["workers"]
    assert worker["matcher"] == tailtrim.__version__
    assert worker["python"] == sys.version.split()[0]
    assert worker["problems"] == []
    ended = asked("--server", spark_cluster.url)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"ok     {worker['host']}: Python {worker['python']}, pyarrow ")
    assert f"; the matcher of tailtrim {tailtrim.__version__} runs" in ended.stdout


def test_a_capture_that_is_not_here(spark_cluster: Cluster) -> None:
    ended = asked("missing.pcap", "--server", spark_cluster.url)
    assert ended.returncode == 2
    assert "missing.pcap: No such file" in ended.stderr.splitlines()[-1]


def test_a_server_that_is_not_there() -> None:
    ended = asked("--server", "sc://127.0.0.1:9")
    assert ended.returncode == 3
    assert "spark: cannot reach sc://127.0.0.1:9" in ended.stderr


def test_what_keeps_a_worker_from_matching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without the matcher, and one that has other files than this host."""
    # Where no session has unpacked anything.
    monkeypatch.chdir(tmp_path)
    here, missing = tmp_path / "a.pcap", tmp_path / "b.pcap"
    here.write_bytes(b"1234")
    work = checking._working({str(here): 5, str(missing): 5}, "1")  # noqa: SLF001 - as sent
    told = json.loads(work(0))
    assert told["matcher"] is None
    matcher, size, unreadable = told["problems"]
    assert "matcher does not run" in matcher
    assert size == f"{here}: has 4 bytes there, 5 here"
    assert unreadable.startswith(f"{missing}: ")
    assert "No such file" in unreadable
    worker = checking.Worker(**{**told, "problems": tuple(told["problems"])})
    assert not checking.can_match([worker])
    assert not checking.can_match([])
