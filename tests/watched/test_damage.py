"""Stores that are damaged, half pulled, or written by others: told, counted, and never an end."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from watch_folders import DAY_NS, NOW, NOW_NS, account, frame, minute, target

from tailtrim.analysis import watched
from tailtrim.analysis.watched import minute as minutes
from tailtrim.publishing.watch_report.account_wording import notes

if TYPE_CHECKING:
    from pathlib import Path

LINES = [minute(number, [number + 1, None, 7]) for number in range(6)]


def told(found: watched.Account) -> str:
    """Return what a user is told."""
    return "\n".join(notes(found, NOW_NS))


def test_a_file_that_is_still_pulled_has_its_whole_minutes(tmp_path: Path) -> None:
    whole = [frame(line) for line in LINES]
    for cut in range(1, len(whole[-1])):
        folder = target(tmp_path / "gw", [*whole[:-1], whole[-1][:-cut]])
        found = account(folder)
        assert (found.lines, found.damaged) == (5, 1)
        assert "cut at byte" in told(found)


def test_a_damaged_minute_leaves_the_others(tmp_path: Path) -> None:
    whole = [frame(line) for line in LINES]
    for at in range(len(whole[2])):
        broken = bytearray(whole[2])
        broken[at] ^= 0x55
        found = account(target(tmp_path / "gw", [*whole[:2], bytes(broken), *whole[3:]]))
        # Some bits of the header mean nothing.
        assert found.lines in {5, 6}, at
        assert (found.lines == 6) == (found.damaged + found.wrong == 0), at
        assert found.begins_ns >= {line["begin_ns"] for line in (*LINES[:2], *LINES[3:])}


def test_a_day_that_was_never_synced_is_zeros_at_its_end(tmp_path: Path) -> None:
    found = account(target(tmp_path / "gw", [frame(LINES[0]), bytes(5000)]))
    assert (found.lines, found.damaged) == (1, 1)


def test_a_day_that_was_packed_again_as_one_stream_is_the_same(tmp_path: Path) -> None:
    text = b"".join(json.dumps(line).encode() + b"\n" for line in LINES)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    found = account(target(tmp_path / "gw", [sink.getvalue().to_pybytes()]))
    assert (found.lines, found.damaged, found.wrong) == (6, 0, 0)


def test_a_frame_that_would_fill_the_memory_is_passed_over(tmp_path: Path) -> None:
    bomb = pa.Codec("zstd").compress(bytes(65 << 20), asbytes=True)
    found = account(target(tmp_path / "gw", [frame(LINES[0]), bomb, frame(LINES[1])]))
    assert (found.lines, found.damaged) == (2, 1)
    assert "expected at most" in told(found)


def test_lines_twice_count_once_and_a_restart_has_two(tmp_path: Path) -> None:
    lines = [*LINES, LINES[3], minute(5, [9])]
    found = account(target(tmp_path / "gw", lines))
    assert (found.lines, found.repeated, len(found.begins_ns)) == (7, 1, 6)
    assert found.counts["due"] == 3 * 6 + 1
    assert "1 line repeated" in told(found)


def test_what_is_missing_is_told_as_a_time(tmp_path: Path) -> None:
    folder = target(tmp_path / "gw", LINES)
    (folder / "target.json").unlink()
    found = account(folder, "2020-01-01T00:00+00:00..2020-01-01T00:10+00:00")
    assert "4 minutes without a line" in told(found)
    assert "target.json: missing" in told(found)
    assert found.target.name == "gw"


WRONG: list[tuple[str, dict[str, Any] | bytes]] = [
    ("not UTF-8", b'{"begin_ns":\xff'),
    ("not JSON", b"{"),
    ("not an object", b"[]"),
    ("deep", b"[" * 100_000),
    ("digits", b'{"begin_ns":' + b"9" * 5000 + b"}"),
    ("no time", {"begin_ns": None}),
    ("another day", {"begin_ns": DAY_NS + 86_400 * 10**9}),
    ("before all", {"begin_ns": -60 * 10**9}),
    ("no whole minute", {"begin_ns": DAY_NS + 1}),
    ("float", {"due": 3.0}),
    ("bool", {"lost": True}),
    ("too many", {"due": 2**63, "lost": 2**63}),
    ("negative", {"due": 1, "lost": -1}),
    ("does not add up", {"due": 4}),
    ("text", {"latency_ns": ["1", None, 7]}),
    ("no list", {"latency_ns": "abc"}),
    ("beyond 64 bits", {"latency_ns": [2**70, None, 7]}),
    ("would overflow", {"latency_ns": [2**62, None, 7]}),
    ("list in list", {"latency_ns": [[1], None, 7]}),
    ("more times", {"at_us": [0, 1, 2, 3]}),
    ("far away", {"at_us": [0, 1, 2**62]}),
    ("no times", {"at_us": None}),
    ("null", {"at_us": [0, None, 2]}),
    ("nothing lost", {"latency_ns": [1, 2, 7]}),
    ("counts", {"samples": [2**62, 2**62]}),
    ("counts of less", {"latency_ns": [1, 7], "samples": [1, 0]}),
    ("arrivals", {"arrivals": {"late": "x"}}),
    ("worst", {"worst": {"begin_ns": 2**80, "latency_ns": 1}}),
]


@pytest.mark.parametrize(("what", "change"), WRONG, ids=[what for what, _ in WRONG])
def test_lines_that_a_watch_does_not_write_are_counted(
    tmp_path: Path, what: str, change: dict[str, Any] | bytes
) -> None:
    line = change if isinstance(change, bytes) else {**LINES[1], **change}
    found = account(target(tmp_path / "gw", [LINES[0], frame(line), LINES[2]]), "..")
    assert (found.lines, found.wrong, found.damaged) == (2, 1, 0), what
    assert "line 2: " in told(found)


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "a\x1b[31m\nb", "", "\udc80"])
def test_hostile_names_are_text_alone(tmp_path: Path, name: str) -> None:
    folder = target(tmp_path / "watch" / "gw", LINES, name=name)
    (one,) = watched.targets_of(folder)
    found = watched.Account(one, watched.span("today", NOW))
    watched.leave_run(found, tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "watch"]
    assert "\x1b" not in told(found)


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_told(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    folder = target(tmp_path_factory.mktemp("any") / "gw", [frame(LINES[0]), noise])
    found = account(folder)
    assert found.lines >= 1
    assert bool(noise) == bool(found.damaged + found.wrong + found.repeated + (found.lines > 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(LINES[0])), JSON)
def test_any_value_of_any_key_is_a_minute_or_wrong(key: str, value: Any) -> None:
    text = json.dumps({**LINES[0], key: value}).encode()
    try:
        found = minutes.read_minute(text)
    except ValueError:
        return
    assert len(found.sent_ns) == len(found.took_ns)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_broken_stores_lose_no_more_than_what_is_broken(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    whole = [frame(line) for line in LINES]
    place = dice.randrange(len(whole))
    broken = bytearray(whole[place])
    for _ in range(dice.randrange(1, 5)):
        broken[dice.randrange(len(broken))] = dice.randrange(256)
    if dice.random() < 0.5:
        del broken[dice.randrange(len(broken)) :]
    found = account(target(tmp_path / "gw", [*whole[:place], bytes(broken), *whole[place + 1 :]]))
    kept = {line["begin_ns"] for at, line in enumerate(LINES) if at != place}
    # A frame that says it is longer may take the next one with it.
    assert {ns for ns in kept if ns < LINES[place]["begin_ns"]} <= found.begins_ns
    assert found.lines + found.repeated >= len(kept) - 1
