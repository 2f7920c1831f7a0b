"""Latency statistics of TRex: buckets are counted here as its server counts them."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailtrim.analysis.histograms import read_histograms
from tailtrim.errors import RoundTripError

if TYPE_CHECKING:
    from pathlib import Path

ERRORS = {"dropped": 2, "dup": 0, "out_of_order": 1, "seq_too_high": 1, "seq_too_low": 3}


def bucket(us: int) -> str:
    """Return the key of a latency: its first digit and zeros, 0 below 10 µs."""
    return str(us)[0] + "0" * (len(str(us)) - 1) if us >= 10 else "0"


def stream(values: list[int]) -> dict[str, Any]:
    """Return what a stateless server tells: nothing in a bucket takes a second or more."""
    counts = Counter(bucket(us) for us in values if us < 1_000_000)
    latency = {"average": 20.5, "histogram": dict(counts), "jitter": 3, "last_max": 0}
    latency |= {"total_max": max(values), "total_min": min(values)}
    return {"latency": latency, "err_cntrs": ERRORS}


def write(folder: Path, value: Any) -> Path:
    path = folder / "stats.json"
    path.write_text(json.dumps(value))
    return path


@settings(deadline=None)
@given(values=st.lists(st.integers(0, 999_999), min_size=1, max_size=50))
def test_an_interval_has_the_exact_quantile(
    tmp_path_factory: pytest.TempPathFactory, values: list[int]
) -> None:
    path = write(tmp_path_factory.mktemp("trex"), {"latency": {"5": stream(values)}})
    (found,) = read_histograms([path])
    assert (found.count, found.counters, found.notes) == (len(values), ERRORS, ())
    for share in (Fraction(1, 2), Fraction(99, 100), Fraction(1)):
        rank = max(1, -int(-share * len(values) // 1))
        low, high = found.quantile(share) or (0, 0)
        assert low <= sorted(values)[rank - 1] * 1_000 <= high
        start = int(bucket(sorted(values)[rank - 1])) * 1_000
        assert low >= start
        assert high <= start + max(10_000, 10 ** (len(str(start)) - 1))


def test_a_bucket_begins_at_its_key(tmp_path: Path) -> None:
    stats = stream([4, 15, 15, 143])
    stats["latency"]["histogram"] = {"0": 10, "10": 80, "90": 7, "100": 3}
    (found,) = read_histograms(
        [write(tmp_path, {"latency": {"5": stats, "global": {"bad_hdr": 0}}})]
    )
    assert found.name == "stats.json, stream 5"
    assert found.quantile(Fraction(1, 2)) == (10_000, 20_000)
    assert found.quantile(Fraction(95, 100)) == (90_000, 100_000)
    # The longest is rounded down to 143 µs.
    assert found.quantile(Fraction(1)) == (100_000, 144_000)
    assert found.quantile(Fraction(1, 100)) == (4_000, 10_000)


def test_packets_of_a_second_have_no_bucket_and_are_told(tmp_path: Path) -> None:
    (found,) = read_histograms([write(tmp_path, {"5": stream([15, 1_500_000])})])
    assert found.count == 1
    assert "1,500,000 µs" in found.notes[0]
    assert "quantiles are too small" in found.notes[0]


def test_a_stateful_server_counts_all(tmp_path: Path) -> None:
    rows = [{"key": 10, "val": 6}, {"key": 300, "val": 2}]
    hist = {"min_usec": 10, "max_usec": 1_500_000, "high_cnt": 9, "cnt": 12, "s_avg": 1.5}
    port = {"hist": hist | {"histogram": rows}, "stats": {"m_seq_error": 4}}
    (found,) = read_histograms([write(tmp_path, {"name": "x", "data": {"port-0": port}})])
    assert (found.name, found.count, found.counters) == (
        "stats.json, port-0",
        12,
        {"m_seq_error": 4},
    )
    # Three below 10 µs, and one of a second or more.
    assert found.quantile(Fraction(3, 12)) == (0, 10_000)
    assert found.quantile(Fraction(4, 12)) == (10_000, 20_000)
    assert found.quantile(Fraction(1)) == (1_000_000_000, 1_500_001_000)


def changed(**latency: Any) -> dict[str, Any]:
    stats = stream([15])
    stats["latency"] |= latency
    return {"latency": {"5": stats}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, "without latency histograms"),
        ({"latency": {"global": {}}}, "without latency histograms"),
        ({"thread": {"0": {"histogram": {"1": 2}, "cycles": 2}}}, "tailtrim noise --read"),
        (changed(histogram={"15": 1}), "bucket 15 is none of TRex"),
        (changed(histogram={"10": -1}), "the count of bucket 10 is '-1'"),
        (changed(histogram={"10": 1.5}), "the count of bucket 10 is '1.5'"),
        (changed(histogram=3), "neither an object nor a list"),
        (changed(histogram=[{"key": 10}]), 'without "key" and "val"'),
        (changed(total_max="x"), "total_max is 'x'"),
        (changed(cnt=0, high_cnt=0), "more packets than cnt"),
    ],
)
def test_damage_is_told(tmp_path: Path, value: Any, expected: str) -> None:
    with pytest.raises(RoundTripError) as failure:
        read_histograms([write(tmp_path, value)])
    assert expected in str(failure.value)
    assert str(failure.value).startswith(str(tmp_path / "stats.json"))


def test_json_that_is_cut_or_nested_too_deep(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    for text in ('{"latency": {', '{"a":' * 100_000):
        path.write_text(text)
        with pytest.raises(RoundTripError, match="expected the latency statistics of TRex"):
            read_histograms([path])
