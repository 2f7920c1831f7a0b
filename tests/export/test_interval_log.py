from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from tailtrim.analysis.histograms import read_histograms
from tailtrim.publishing.export import convert, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import tailtrim

    MakeRun = Callable[..., tailtrim.RunDirectory]

SECOND = 10**9


def intervals(path: Path, **options: Any) -> Iterator[Any]:
    reader = HistogramLogReader(str(path), HdrHistogram(1, 10**10, 3))
    while histogram := reader.get_next_interval_histogram(**options):
        yield histogram
    reader.close()


def starts(path: Path) -> list[str]:
    return [line.split(",")[0] for line in path.read_text().splitlines() if line[0].isdigit()]


@pytest.mark.parametrize("digits", [2, 3, 5])
def test_hdrhistogram_reads_back_every_second(
    testpmd: tailtrim.RunDirectory, tmp_path: Path, digits: int
) -> None:
    conversion = convert(testpmd, "hlog", tmp_path, significant_digits=digits)
    (path,) = conversion.files
    assert path.name == "testpmd.hlog"
    assert conversion.notices == ()
    samples = testpmd.table("sample")
    first_ns = testpmd.summary.ingress_tap.first_ns
    seconds = (samples["ingress_ns"].to_numpy() - first_ns) // SECOND
    latencies = samples["latency_ns"].to_numpy()
    read = list(intervals(path))
    assert [h.get_total_count() for h in read] == np.bincount(seconds).tolist()
    assert sum(h.get_total_count() for h in read) == testpmd.summary.samples
    for second, histogram in enumerate(read):
        expected = HdrHistogram(1, testpmd.summary.latency_ns.max, digits)
        for latency in latencies[seconds == second].tolist():
            expected.record_value(latency)
        assert list(histogram.counts) == list(expected.counts)
        assert histogram.significant_figures == digits


def test_import_reads_back_what_convert_wrote(
    testpmd: tailtrim.RunDirectory, tmp_path: Path
) -> None:
    (found,) = read_histograms(convert(testpmd, "hlog", tmp_path).files)
    assert found.count == testpmd.summary.samples
    latencies = np.sort(testpmd.table("sample")["latency_ns"].to_numpy())
    for share in (Fraction(1, 2), Fraction(999, 1000), Fraction(1)):
        low, high = found.quantile(share) or (0, 0)
        assert low <= latencies[math.ceil(share * found.count) - 1] <= high


def test_the_header_and_the_lines(make_run: MakeRun, tmp_path: Path) -> None:
    # A capture whose clock began with the NIC, as the published ones: stamps are small.
    run = make_run([(14_498_525_187, 3000), (17_498_525_186, 2_500_000), (17_498_525_187, 1000)])
    (path,) = convert(run, "hlog", tmp_path).files
    *header, first, third, fourth = path.read_text().splitlines()
    assert header == [
        "#[Latency in nanoseconds, written by tailtrim]",
        "#[Histogram log format version 1.3]",
        "#[StartTime: 14.499 (seconds since epoch), Thu Jan 01 00:00:14 UTC 1970]",
        "#[BaseTime: 14.499 (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]
    # The largest latency in ms is the upper end of its bucket.
    for line, start in [
        (first, r"0\.000,1\.000,0\.003"),
        (third, r"2\.000,1\.000,2\.501"),
        (fourth, r"3\.000,1\.000,0\.001"),
    ]:
        assert re.fullmatch(rf"{start},HISTF[A-Za-z0-9+/]+=*", line)
    assert [h.get_total_count() for h in intervals(path)] == [1, 1, 1]
    stamps_ms = [h.get_start_time_stamp() for h in intervals(path)]
    assert stamps_ms == pytest.approx([14_499, 16_499, 17_499])
    assert len(list(intervals(path, range_start_time_sec=2, range_end_time_sec=2.5))) == 1
    assert len(list(intervals(path, range_start_time_sec=14, absolute=True))) == 3


def test_seconds_without_samples_are_empty_intervals(make_run: MakeRun, tmp_path: Path) -> None:
    # Trimmed in second 0, lost in second 2, no traffic in second 3, zero in second 4.
    packets = [(0, 5000), (1_500_000_000, 5000), (2 * SECOND, None), (4 * SECOND, 0)]
    (path,) = convert(make_run(packets, skip_s=1), "hlog", tmp_path).files
    assert starts(path) == ["0.000", "1.000", "2.000", "4.000"]
    assert [h.get_total_count() for h in intervals(path)] == [0, 1, 0, 1]


def test_negative_latencies_are_counted_and_said(make_run: MakeRun, tmp_path: Path) -> None:
    packets = [(10 * SECOND + number * 10**8, number - 5) for number in range(25)]
    conversion = convert(make_run(packets), "hlog", tmp_path)
    assert [h.get_total_count() for h in intervals(conversion.files[0])] == [5, 10, 5]
    (notice,) = conversion.notices
    assert (notice.code, notice.count) == ("negative", 5)
    assert all(fact in notice.text for fact in ("5 latencies", "synthetic.hlog"))


def test_without_packets_there_is_one_empty_interval(make_run: MakeRun, tmp_path: Path) -> None:
    # HistogramLogProcessor 2.2.2 ends with a NullPointerException on a log without intervals.
    (path,) = convert(make_run([]), "hlog", tmp_path).files
    assert starts(path) == ["0.000"]
    assert [h.get_total_count() for h in intervals(path)] == [0]


@pytest.mark.parametrize("batch", [1, 7])
def test_packets_that_overtake_a_second_and_more_count_in_theirs(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    latencies = np.random.default_rng(7).integers(1, 4 * SECOND, 400)
    packets = [(number * SECOND // 10, int(latency)) for number, latency in enumerate(latencies)]
    run = make_run(packets)
    assert run.summary.samples == 400
    (whole,) = convert(run, "hlog", tmp_path / "whole").files
    monkeypatch.setattr(tables, "_BATCH", batch)
    (path,) = convert(run, "hlog", tmp_path / "batches").files
    assert path.read_bytes() == whole.read_bytes()
    assert starts(path) == [f"{second}.000" for second in range(40)]
    assert [h.get_total_count() for h in intervals(path)] == [10] * 40
