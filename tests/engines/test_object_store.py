"""Captures in an S3 store that all hosts mount: a real server, and a real file system of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import servers
from forwarded import PACKETS, captures

import tailtrim
from tailtrim.analysis import engines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("pyspark", reason="Spark needs pyspark")

from tailtrim.analysis.engines import stretches

pytestmark = pytest.mark.engines

Store = tuple["Path", "subprocess.Popen[bytes]"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with servers.s3(tmp_path) as running:
        yield running


def test_a_cluster_matches_captures_of_a_bucket(
    spark_cluster: servers.Cluster, store: Store, tmp_path: Path
) -> None:
    mounted, _ = store
    here = captures(tmp_path, lost=0.001, frames=160_000)
    there = [mounted / path.name for path in here]
    for path, other in zip(here, there, strict=True):
        shutil.copyfile(path, other)
    with engines.connect("spark", engines.EngineOptions(server=spark_cluster.url)) as at:
        found = stretches.analyze_captures(at, *there, packets=PACKETS, skip_s=0.1)
    assert found is not None
    text = found.summary.text.replace(str(mounted), str(tmp_path))
    assert text == tailtrim.analyze(*here, skip_s=0.1).summary.text


def test_a_store_that_is_gone_is_one_error(store: Store, tmp_path: Path) -> None:
    """It was a traceback: to ask whether a path is a folder fails, too."""
    mounted, server = store
    here = captures(tmp_path, frames=1_000)
    there = [mounted / path.name for path in here]
    for path, other in zip(here, there, strict=True):
        shutil.copyfile(path, other)
    server.kill()
    server.wait()
    command = [sys.executable, "-m", "tailtrim.cli", "analyze", *map(str, there)]
    ended = subprocess.run(command, check=False, text=True, capture_output=True)
    assert ended.returncode == 4
    assert ended.stderr.startswith(f"error: {there[0]}")
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""
