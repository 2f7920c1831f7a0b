"""Minutes of a watch as runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tailtrim.analysis.roundtrip import watched
from tailtrim.errors import RoundTripError

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 1_893_456_000  # 2030-01-01, UTC
NOW = datetime.fromtimestamp(DAY_S + 12 * 3600, UTC)
MINUTE_NS = 60 * 10**9


def target(folder: Path, lines: list[dict[str, Any]]) -> Path:
    """Write a target with these minutes of one day, each a frame of its own."""
    folder.mkdir()
    described = {"schema": watched.SCHEMA, "name": "gw", "timeout_ns": 10**9}
    (folder / "target.json").write_text(json.dumps(described))
    frames = b""
    for line in lines:
        text = json.dumps(line).encode() + b"\n"
        frames += pa.Codec("zstd").compress(text, asbytes=True)
    (folder / "2030-01-01.jsonl.zst").write_bytes(frames)
    return folder


def minute(number: int, latency_ns: list[int | None], **values: Any) -> dict[str, Any]:
    """Return a line of a minute with these probes."""
    answered = sum(ns is not None for ns in latency_ns)
    counts = {"due": len(latency_ns), "answered": answered, "lost": len(latency_ns) - answered}
    others = ("late", "altered", "undelivered", "refused", "missed", "cut")
    rest = dict.fromkeys((*others, "unstamped", "disturbed"), 0)
    return {
        "begin_ns": DAY_S * 10**9 + number * MINUTE_NS,
        **rest,
        **counts,
        "arrivals": {"duplicate": 1},
        "at_us": list(range(0, 1000 * len(latency_ns), 1000)),
        "latency_ns": latency_ns,
        **values,
    }


def test_a_span_has_the_probes_of_its_minutes(tmp_path: Path) -> None:
    lines = [minute(number, [number * 1_000 + 5, None, 7]) for number in range(10)]
    folder = target(tmp_path / "gw", lines)
    span = watched.span("00:02..00:05", NOW)
    found = watched.read(folder, span)
    assert found.minutes == 3
    assert found.counts["due"] == 9
    assert found.counts["lost"] == 3
    assert found.arrivals["duplicate"] == 3
    assert found.series.round_trip_ns[found.series.answered].tolist() == [2005, 7, 3005, 7, 4005, 7]
    summary = watched.leave_run(found, tmp_path / "run")
    assert summary.samples == 6


def test_counted_minutes_are_the_same_samples(tmp_path: Path) -> None:
    many = minute(0, [5, 9], late=1, lost=2, samples=[3, 1], rounded=False)
    del many["at_us"]
    found = watched.read(target(tmp_path / "gw", [many]), watched.span("today", NOW))
    took = found.series.round_trip_ns[found.series.answered]
    assert sorted(took.tolist()) == [5, 5, 5, 9]
    assert len(found.series.sent_ns) == 7


def test_a_span_without_minutes_says_which_days_there_are(tmp_path: Path) -> None:
    folder = target(tmp_path / "gw", [minute(0, [5])])
    with pytest.raises(RoundTripError, match="from 2030-01-01 to 2030-01-01"):
        watched.read(folder, watched.span("yesterday", NOW))
    empty = target(tmp_path / "empty", [])
    with pytest.raises(RoundTripError, match="no probe"):
        watched.read(empty, watched.span("today", NOW))


@pytest.mark.parametrize("text", ["", "noon", "8:00..9:00", "09:00..08:00", "2030-13-01", "08:00"])
def test_spans_of_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="span"):
        watched.span(text, NOW)


def test_spans_of_several_days_and_other_zones() -> None:
    hour = watched.span("2030-01-01T10:00+02:00..2030-01-01T09:00", NOW)
    assert hour.end_ns - hour.begin_ns == 3600 * 10**9
    day = watched.span("2030-01-01", NOW)
    assert day == watched.span("today", NOW)
    assert day.begin_ns == DAY_S * 10**9


def test_damaged_lines_are_named(tmp_path: Path) -> None:
    folder = target(tmp_path / "gw", [minute(0, [5]), {"begin_ns": DAY_S * 10**9}])
    with pytest.raises(RoundTripError, match="line 2"):
        watched.read(folder, watched.span("today", NOW))


def test_other_paths_have_no_span(tmp_path: Path) -> None:
    folder = target(tmp_path / "gw", [minute(0, [5])])
    assert watched.split(f"{folder}@today") == (folder, "today")
    for text in (f"{folder}", f"{tmp_path}/run@today", "a@b"):
        assert watched.split(text) is None
