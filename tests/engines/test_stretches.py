"""Captures that hosts match stretch by stretch: the bytes of the native matcher on one host."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from forwarded import FRAMES, PACKETS, captures

import tailtrim
from tailtrim import _native
from tailtrim.analysis import engines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers import Cluster

pytest.importorskip("pyspark", reason="Spark needs pyspark")

from tailtrim.analysis.engines import stretches
from tailtrim.analysis.engines.spark import Spark
from tailtrim.analysis.options import native

pytestmark = pytest.mark.engines


class Here:
    """Hosts that are this one: answers come in any order."""

    def __init__(self, paths: tuple[Path, Path], options: dict[str, Any]) -> None:
        self.paths, self.options = list(paths), options
        self.asked = {"outlines": 0, "counts": 0}

    def outlines(self, tasks: list[bytes]) -> Iterator[tuple[int, bytes | None]]:
        work = list(enumerate(tasks))
        random.Random(1).shuffle(work)  # noqa: S311 - an order
        for index, task in work:
            self.asked["outlines"] += 1
            yield index, _native.outline_stretch(self.paths, task, self.options)

    def counts(self, ordered: list[tuple[int, bytes, bytes]]) -> Iterator[tuple[int, bytes | None]]:
        work = list(ordered)
        random.Random(2).shuffle(work)  # noqa: S311 - an order
        for index, task, order in work:
            self.asked["counts"] += 1
            yield index, _native.count_stretch(self.paths, task, order, self.options)


def stretches_on(hosts: Here, packets: int = PACKETS) -> _native.NativeAnalysis | None:
    return _native.analyze_stretches(hosts.paths, OPTIONS, hosts, packets=packets, progress=None)


def on_one(paths: tuple[Path, Path]) -> _native.NativeAnalysis:
    return _native.analyze(
        *paths, OPTIONS, directory=None, keep_samples=False, progress=None, jobs=1
    )


#: Behind the first cut.
STRETCHES = 6

OPTIONS = native({"skip_s": "100ms", "quantiles": ["0.9995"]})


def test_pipes_are_left_to_one_host(tmp_path: Path) -> None:
    """Nothing opens them: a reader would wait for ever, or take bytes of the other reader."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    spark = object.__new__(Spark)
    assert stretches.analyze_captures(spark, pipe, pipe) is None
    assert stretches.analyze_captures(spark, "-", pipe) is None


@pytest.mark.parametrize(
    ("lost", "foreign", "counted_again"),
    [
        # The number of samples before a stretch is known from the length of the captures.
        (0.0, 0.0, 0),
        # A stretch may have the pair of a packet that was lost before it.
        (0.001, 0.0, STRETCHES),
        # Packets leave that are in no pair, the first behind some stretches.
        (0.0, 0.000_01, 4),
    ],
)
def test_the_bytes_are_those_of_one_host(
    tmp_path: Path, lost: float, foreign: float, counted_again: int
) -> None:
    paths = captures(tmp_path, lost=lost, foreign=foreign)
    hosts = Here(paths, OPTIONS)
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    of_hosts = stretches_on(hosts)
    assert of_hosts is not None
    assert hosts.asked == {"outlines": STRETCHES, "counts": counted_again}
    one = on_one(paths)
    assert of_hosts.summary_json() == one.summary_json()
    of_hosts.write_tables(there)
    one.write_tables(here)
    for table in here.glob("*.parquet"):
        assert (there / table.name).read_bytes() == table.read_bytes(), table.name


def test_stretches_that_depend_on_what_came_before_are_matched_after_it(tmp_path: Path) -> None:
    paths = captures(tmp_path, lost=0.3, again=0.3)
    hosts = Here(paths, OPTIONS)
    of_hosts = stretches_on(hosts)
    assert of_hosts is not None
    assert hosts.asked["counts"] < STRETCHES
    assert of_hosts.summary_json() == on_one(paths).summary_json()


@pytest.mark.parametrize(
    ("lost", "again", "packets"),
    [
        # A packet that was lost comes again much later, which only shows when pairs are counted.
        (0.01, 0.001, PACKETS),
        # Too short to be cut.
        (0.0, 0.0, FRAMES),
    ],
)
def test_captures_that_only_one_host_can_analyse_are_told(
    tmp_path: Path, lost: float, again: float, packets: int
) -> None:
    paths = captures(tmp_path, lost=lost, again=again)
    assert stretches_on(Here(paths, OPTIONS), packets) is None


class Broken(Here):
    """Hosts of another version."""

    def outlines(self, tasks: list[bytes]) -> Iterator[tuple[int, bytes | None]]:
        for index, _ in enumerate(tasks):
            yield index, b"\xff" * 9


class Silent(Here):
    """Hosts that do not answer to the last task."""

    def outlines(self, tasks: list[bytes]) -> Iterator[tuple[int, bytes | None]]:
        yield from super().outlines(tasks[:-1])


@pytest.mark.parametrize(("hosts", "stretch"), [(Broken, 0), (Silent, STRETCHES - 1)])
def test_hosts_that_answer_with_something_else(
    tmp_path: Path, hosts: type[Here], stretch: int
) -> None:
    paths = captures(tmp_path)
    with pytest.raises(_native.TailtrimError, match=f"stretch {stretch}: a host answered"):
        stretches_on(hosts(paths, OPTIONS))


def test_the_spark_cluster(spark_cluster: Cluster, tmp_path: Path) -> None:
    paths = captures(tmp_path, lost=0.001)
    tmp_path.chmod(0o755)
    with engines.connect("spark", engines.EngineOptions(server=spark_cluster.url)) as at:
        there = stretches.analyze_captures(at, *paths, packets=PACKETS, skip_s=0.1)
    assert there is not None
    assert there.summary.text == tailtrim.analyze(*paths, skip_s=0.1).summary.text


def test_a_worker_that_is_killed_costs_its_stretch_alone(
    spark_cluster: Cluster, tmp_path: Path
) -> None:
    paths = captures(tmp_path)
    begun = tmp_path / "begun"
    begun.touch()
    tmp_path.chmod(0o755)

    def kill() -> None:
        deadline_s = time.monotonic() + 120
        while not (lines := begun.read_text().splitlines()) and time.monotonic() < deadline_s:
            time.sleep(0.02)
        # A worker has a session of its own, and its tasks are of it.
        (worker,) = (one for one in spark_cluster.workers if lines[-1] == str(one.pid))
        spark_cluster.workers.remove(worker)
        spark_cluster.kill(worker)

    with engines.connect("spark", engines.EngineOptions(server=spark_cluster.url)) as at:
        assert isinstance(at, Spark)
        at.mapped = slowly(at.mapped, str(begun))  # type: ignore[method-assign]
        with ThreadPoolExecutor(1) as pool:
            killing = pool.submit(kill)
            there = stretches.analyze_captures(at, *paths, packets=PACKETS, skip_s=0.1)
            killing.result()
    spark_cluster.workers.append(spark_cluster.add_worker())
    assert there is not None
    assert there.summary.text == tailtrim.analyze(*paths, skip_s=0.1).summary.text
    # Each stretch once, and the one that was killed.
    assert len(begun.read_text().splitlines()) == STRETCHES + 1


def slowly(mapped: Callable[..., Any], begun: str) -> Callable[..., Any]:
    """Have each task take a second, and say in whose session it runs."""

    def slow(count: int, work: Callable[[int], bytes | None]) -> Iterator[Any]:
        def task(index: int) -> bytes | None:
            import os  # noqa: PLC0415 - on the worker
            import time  # noqa: PLC0415

            with open(begun, "a") as file:  # noqa: PTH123
                print(os.getsid(0), file=file)
            time.sleep(1)
            return work(index)

        yield from mapped(count, task)

    return slow


def test_the_command_says_what_it_matched_here(
    spark_cluster: Cluster, testpmd: tuple[Path, Path]
) -> None:
    command = [sys.executable, "-m", "tailtrim.cli", "analyze", *map(str, testpmd), "--json"]
    asked = ["--engine", "spark", "--server", spark_cluster.url]
    there, here = (
        subprocess.run(words, check=True, text=True, capture_output=True)
        for words in ([*command, *asked], command)
    )
    # Compressed captures cannot be cut.
    for fact in ("note: matched on this host", "cannot be cut"):
        assert fact in there.stderr
    assert there.stdout == here.stdout


def test_samples_are_not_sent(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    """Those of a stretch of millions of packets did not fit into a worker's memory."""
    command = [sys.executable, "-m", "tailtrim.cli", "analyze", *map(str, testpmd)]
    # No server listens there: the command does not connect.
    asked = ["--engine", "spark", "--server", "sc://127.0.0.1:9", "--out", str(tmp_path / "run")]
    ended = subprocess.run([*command, *asked], check=True, text=True, capture_output=True)
    for fact in ("note: matched on this host", "send the samples"):
        assert fact in ended.stderr
    assert (tmp_path / "run" / "sample.parquet").exists()
