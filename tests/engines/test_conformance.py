"""Every engine gives the bytes of the native matcher."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from random_captures import Trouble, pair, write

import tailtrim
from tailtrim.analysis import engines
from tailtrim.analysis.decode import Decoded, decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import ibis.expr.types as ir
    from servers import Cluster

    from tailtrim.analysis.engines import Engine

PAIRS = (
    "dpdk-l2fwd/hw/latencies-pre-rate10000-dpdk-l2fwd.pcap.zst",
    "dpdk-l2fwd/vm/latencies-pre-rate10000-dpdk-l2fwd.pcap.zst",
    "snort-fwd/hw/latencies-pre-rate10000-snort-fwd.pcap.zst",
    "motivation/latencies-pre-rate10000-snort-norules.pcap.zst",
    "burst-32batch/vm/32-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
)

TABLES = ("histogram", "quantiles", "worst", "gaps", "delay_variation", "seconds", "bursts")

TROUBLES = {
    "plain": Trouble(),
    "lost": Trouble(lost=0.3),
    "all lost": Trouble(lost=1),
    "copied": Trouble(copied=0.3),
    "reused": Trouble(reused=0.3, step_ns=100_000_000),
    "tied": Trouble(tied=0.5, step_ns=2_000),
    "late": Trouble(late=0.3, step_ns=100_000_000),
    "negative": Trouble(negative_ns=200_000, step_ns=10_000, packets=3_000),
    "disorder": Trouble(disorder_ns=300_000_000, step_ns=100_000),
    "alien": Trouble(alien=0.3),
    "empty": Trouble(packets=0),
    "one": Trouble(packets=1),
    "everything": Trouble(
        packets=1_500,
        lost=0.1,
        copied=0.1,
        reused=0.1,
        alien=0.1,
        tied=0.1,
        late=0.1,
        negative_ns=200_000_000,
        disorder_ns=300_000_000,
    ),
}


def first_look(text: str) -> str:
    """Leave out of a summary that packets left after twice the window, which captures tell."""
    summary = json.loads(text)
    told = [one for one in summary["warnings"] if one["code"] != "left_after_all"]
    if told == summary["warnings"]:
        return text
    return json.dumps(summary | {"warnings": told}, indent=2, ensure_ascii=False)


def same(at: Engine, captures: tuple[Path, Path], decoded: Decoded, **options: Any) -> None:
    """Compare an engine with the native matcher."""
    options["allow_negative"] = True
    expected = tailtrim.analyze(*captures, **options)
    found = engines.analyze(at, decoded, **options)
    assert found.summary.text == first_look(expected.summary.text)
    for table in TABLES:
        assert getattr(found, table).equals(getattr(expected, table)), table


def same_as_published(at: Engine, ingress: Path, tmp_path: Path) -> None:
    """Compare an engine with the native matcher on a published pair."""
    captures = (ingress, ingress.with_name(ingress.name.replace("-pre-", "-post-")))
    same(at, captures, decode(captures, tmp_path / "decoded"))


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(("skip_s", "window_s"), [("1", "5"), ("0", "0.5")])
def test_random_captures(
    engine: Engine, tmp_path: Path, trouble: str, skip_s: str, window_s: str
) -> None:
    captures = pair(tmp_path, 1, TROUBLES[trouble])
    decoded = decode(captures, tmp_path / "decoded", buckets=4)
    same(engine, captures, decoded, skip_s=skip_s, window_s=window_s)


@pytest.mark.parametrize("side", [0, 1])
def test_an_empty_side(engine: Engine, tmp_path: Path, side: int) -> None:
    captures = list(pair(tmp_path, 2, TROUBLES["plain"]))
    write(captures[side], [])
    decoded = decode(captures, tmp_path / "decoded")
    same(engine, (captures[0], captures[1]), decoded)


def test_stamps_that_were_converted(engine: Engine, tmp_path: Path) -> None:
    captures = pair(tmp_path, 4, TROUBLES["plain"])
    told: dict[str, Any] = {"schema": "tailtrim.clocks/1", "clock": "ptp1", "reference": "ptp0"}
    told |= {"clock_error_ns": 370, "invalid": []}
    captures[1].with_name(f"{captures[1].name}.clocks.json").write_text(json.dumps(told), "utf-8")
    same(engine, captures, decode(captures, tmp_path / "decoded"))
    assert tailtrim.analyze(*captures, allow_negative=True).summary.clock_error_ns == 370


def test_signatures_that_collide_in_their_first_half(engine: Engine, tmp_path: Path) -> None:
    captures = pair(tmp_path, 3, TROUBLES["everything"])
    decoded = decode(captures, tmp_path / "decoded", buckets=2)
    for number in (0, 1):
        for path in decoded.files(number):
            with path.open("rb") as file:
                table = pq.ParquetFile(file).read()
            halves = pa.array([7] * table.num_rows, pa.int64())
            place = table.schema.get_field_index("signature_high")
            pq.write_table(table.set_column(place, table.schema.field(place), halves), path)
    expected = tailtrim.analyze(*captures, allow_negative=True)
    found = engines.analyze(engine, decoded, allow_negative=True)
    assert found.summary.text == expected.summary.text


def test_a_copy_that_nobody_remembers(engine: Engine, tmp_path: Path) -> None:
    # Copies differ from aliens only among the last 16,000 packets that entered.
    entered = [(10**18 + number * 1_000, number) for number in range(20_000)]
    left = [(stamp_ns + 500, number) for stamp_ns, number in entered]
    for number, later in [(0, 15_998), (1, 16_000), (2, 16_001), (3, 16_003), (4, 19_000)]:
        left.append((10**18 + later * 1_000 + 700, number))
    captures = (
        write(tmp_path / "ingress.pcap", entered),
        write(tmp_path / "egress.pcap", sorted(left)),
    )
    decoded = decode(captures, tmp_path / "decoded")
    same(engine, captures, decoded, skip_s="0")
    assert tailtrim.analyze(*captures, skip_s=0).summary.egress.copy in range(1, 5)


@pytest.mark.published
@pytest.mark.parametrize("name", PAIRS)
def test_published_captures(engine: Engine, published: Path, tmp_path: Path, name: str) -> None:
    same_as_published(engine, published / "low-latency" / name, tmp_path)


@pytest.mark.published
@pytest.mark.parametrize("name", PAIRS)
def test_published_captures_on_several_cores(published: Path, name: str) -> None:
    ingress = published / "low-latency" / name
    captures = (ingress, ingress.with_name(ingress.name.replace("-pre-", "-post-")))
    one, *others = (
        tailtrim.analyze(*captures, allow_negative=True, jobs=jobs) for jobs in (1, 2, 5)
    )
    for other in others:
        assert other.summary.text == one.summary.text
        for table in TABLES:
            assert getattr(other, table).equals(getattr(one, table)), table


def test_a_run_directory_is_the_same(
    engine: Engine, testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    decoded = decode(testpmd, tmp_path / "decoded")
    engines.analyze(engine, decoded, out=tmp_path / "engine")
    tailtrim.analyze(*testpmd, out=tmp_path / "native")
    for native in (tmp_path / "native").iterdir():
        if native.suffix == ".parquet":
            other = tmp_path / "engine" / native.name
            assert pq.read_table(other).equals(pq.read_table(native)), native.name


@pytest.mark.parametrize("trouble", ["everything", "empty", "one"])
def test_the_spark_cluster(spark_cluster: Cluster, tmp_path: Path, trouble: str) -> None:
    with engines.connect("spark", engines.EngineOptions(server=spark_cluster.url)) as at:
        captures = pair(tmp_path, 4, TROUBLES[trouble])
        same(at, captures, decode(captures, tmp_path / "random", buckets=4))


@pytest.mark.published
@pytest.mark.parametrize("name", [PAIRS[0], PAIRS[-1]])
def test_published_captures_on_the_spark_cluster(
    spark_cluster: Cluster, published: Path, tmp_path: Path, name: str
) -> None:
    with engines.connect("spark", engines.EngineOptions(server=spark_cluster.url)) as at:
        same_as_published(at, published / "low-latency" / name, tmp_path)


def test_spark_is_asked_for_a_bucket_at_a_time(
    spark_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark collects a result in its driver's memory, which was too small for 10 million pairs.
    buckets = 8
    # The tables of buckets are joined two by two, and their results again.
    monkeypatch.setattr("tailtrim.analysis.engines.spark.FEW", 2)
    captures = pair(tmp_path, 5, TROUBLES["everything"])
    decoded = decode(captures, tmp_path / "decoded", buckets=buckets)
    found: list[int] = []
    with engines.connect("spark", engines.EngineOptions(server=spark_cluster.url)) as at:
        rows = at.rows

        def counted(expression: ir.Table) -> Iterator[pa.RecordBatch]:
            batches = list(rows(expression))
            if "decided_ns" in expression.columns:
                found.append(sum(map(len, batches)))
            yield from batches

        monkeypatch.setattr(at, "rows", counted)
        same(at, captures, decoded)
    assert len(found) == buckets
    assert max(found) < 2 * sum(found) / buckets


def test_a_spark_worker_that_is_killed(
    spark_cluster: Cluster, testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    import threading  # noqa: PLC0415

    decoded = decode(testpmd, tmp_path / "decoded", buckets=4)
    with engines.connect("spark", engines.EngineOptions(server=spark_cluster.url)) as at:
        timer = threading.Timer(3, spark_cluster.kill, [spark_cluster.workers.pop()])
        timer.start()
        same(at, testpmd, decoded)
        timer.join()
    spark_cluster.workers.append(spark_cluster.add_worker())
