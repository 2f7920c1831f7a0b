"""Spans of a watch in other formats, read back by the readers of these."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import duckdb
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from releases import of_release
from watch_folders import DAY_NS, MINUTE_NS, NOW, minute, target

from tailtrim.analysis import watched
from tailtrim.analysis.roundtrip import read_hpct
from tailtrim.errors import RoundTripError
from tailtrim.publishing.watch_export import convert

if TYPE_CHECKING:
    from pathlib import Path

LATENCIES: list[list[int | None]] = [
    [2_000_000, None, 3_000_000],
    [1_000_000, 5_000_000, 4_000_000],
]


@pytest.fixture
def watch(tmp_path: Path) -> Path:
    """Return a watch of two targets."""
    for name, address in (("gw", "192.0.2.1:862"), ("v6, far", "[2001:db8::7]:862")):
        lines = [minute(number, ns) for number, ns in enumerate(LATENCIES)]
        told = {"address": address, "protocol": "stamp", "stamps": "software"}
        target(tmp_path / "watch" / name, lines, **told)
    return tmp_path / "watch"


def accounts(folder: Path) -> list[watched.Account]:
    """Return accounts of a day of all targets."""
    span = watched.span("today", NOW)
    return [watched.Account(one, span) for one in watched.targets_of(folder)]


def test_parquet_by_day_has_all_probes_and_minutes(watch: Path, tmp_path: Path) -> None:
    conversion = convert(accounts(watch), "parquet", "watch", tmp_path / "out")
    assert [path.relative_to(tmp_path / "out").as_posix() for path in conversion.files] == [
        "probes/2020-01-01.parquet",
        "minutes/2020-01-01.parquet",
    ]
    probes = duckdb.read_parquet(f"{tmp_path}/out/probes/*.parquet")
    queried = duckdb.sql(
        "SELECT host, target, count(*), count(latency_ns), max(latency_ns), min(sent_ns)"
        " FROM probes GROUP BY ALL ORDER BY target"
    )
    assert probes.shape == (12, 4)
    assert queried is not None
    assert queried.fetchall() == [
        ("watch", name, 6, 5, 5_000_000, DAY_NS) for name in ("gw", "v6, far")
    ]
    minutes = duckdb.read_parquet(f"{tmp_path}/out/minutes/*.parquet")
    assert minutes.sum("lost").fetchall() == [(2,)]
    assert minutes.sum("due").fetchall() == [(12,)]


def test_the_interval_log_has_a_tag_for_each_target(watch: Path, tmp_path: Path) -> None:
    (path,) = convert(accounts(watch), "hlog", "watch@today", tmp_path).files
    reader = HistogramLogReader(str(path), HdrHistogram(1, 10**10, 3))
    intervals = []
    while (one := reader.get_next_interval_histogram()) is not None:
        intervals.append((one.get_tag(), one.get_start_time_stamp(), one.get_total_count()))
    reader.close()
    begin_ms = DAY_NS // 10**6
    minute_ms = MINUTE_NS // 10**6
    assert intervals == [
        ("gw", begin_ms, 2),
        ("v6__far", begin_ms, 2),
        ("gw", begin_ms + minute_ms, 3),
        ("v6__far", begin_ms + minute_ms, 3),
    ]


def test_pings_are_those_of_the_minutes(watch: Path, tmp_path: Path) -> None:
    conversion = convert(accounts(watch), "hpct", "watch", tmp_path)
    first, second = (read_hpct(path) for path in conversion.files)
    assert [(ping.sent_ns - DAY_NS, ping.status, ping.software_ns) for ping in first[:3]] == [
        (0, 255, 2_000_000),
        (1_000_000, 200, -1),
        (2_000_000, 255, 3_000_000),
    ]
    assert {ping.destination for ping in first} == {"192.0.2.1"}
    assert {ping.destination for ping in second} == {"2001:db8::7"}
    # Targets at one address are told apart by their numbers.
    assert len({ping.measurement for ping in (*first, *second)}) == 2


@pytest.mark.packages
def test_its_own_tool_reads_them(watch: Path, tmp_path: Path) -> None:
    files = convert(accounts(watch), "hpct", "watch", tmp_path / "pings").files
    table = tmp_path / "pings.csv"
    words = [*of_release("sid-peers", "hpct-results"), *map(str, files), "-o", str(table)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    lines = table.read_text().splitlines()
    assert len(lines) == 1 + 2 * 6
    assert sum(" 255 " in line for line in lines) == 10


def test_names_are_resolved_by_the_events_of_the_watch(tmp_path: Path) -> None:
    folder = target(tmp_path / "watch" / "gw", [minute(0, [1]), minute(1, [2])], address="gw:862")
    with pytest.raises(RoundTripError, match=r"events\.jsonl"):
        convert(accounts(tmp_path / "watch"), "hpct", "watch", tmp_path)
    events = [
        '{"at_ns":0,"event":"address","target":"gw","told":"192.0.2.1:862"}',
        '{"at_ns":1,"event":"address","target":"other","told":"192.0.2.9:862"}',
        '{"at_ns":2,"event":"address","target":"gw","told":"no such name"}',
        f'{{"at_ns":{DAY_NS + MINUTE_NS},"event":"address","target":"gw","told":"192.0.2.2:862"}}',
        '{"at_ns":',
    ]
    (folder.parent / "events.jsonl").write_text("\n".join(events))
    (path,) = convert(accounts(tmp_path / "watch"), "hpct", "watch", tmp_path).files
    assert [ping.destination for ping in read_hpct(path)] == ["192.0.2.1", "192.0.2.2"]
