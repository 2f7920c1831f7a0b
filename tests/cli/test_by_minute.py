"""Results by minute are those of the samples; some are kept where the analysis is killed."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from synthetic import write_pcap

from tailtrim.laboratory.nodes import agent
from tailtrim.results import TABLES, RunDirectory
from tailtrim.results.minutes import Minute, minutes

if TYPE_CHECKING:
    from pathlib import Path

_MINUTE_NS = 60 * 10**9
_BEGIN_NS = 1_795_000_000 * 10**9 + 42 * 10**9  # in the middle of a minute
_SPACING_NS = 10**9 // 50
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}


def _captured(seed: int, span_s: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return what two taps saw of a device that loses some packets, one of them for ten seconds."""
    random = np.random.default_rng(seed)
    stamps = _BEGIN_NS + np.arange(span_s * 50) * _SPACING_NS
    latencies = random.lognormal(10, 1, len(stamps)).astype(int)
    # Some packets seem to leave before they enter: clocks of two hosts.
    latencies[::401] = -20
    passed = random.random(len(stamps)) > 0.01
    passed[70 * 50 : 80 * 50] = False
    entered = [(int(stamp), number) for number, stamp in enumerate(stamps)]
    left = [(stamp + int(latencies[number]), number) for stamp, number in entered if passed[number]]
    return entered, sorted(left)


def _words(*arguments: str | Path) -> list[str]:
    return [agent.program(), "analyze", *map(str, arguments), "--allow-negative"]


def _histograms(path: Path) -> list[tuple[float, HdrHistogram]]:
    """Return the begin in s and the histogram of each minute, as the library reads them."""
    reader = HistogramLogReader(str(path), HdrHistogram(1, 2**62, 3))
    found = []
    while (one := reader.get_next_interval_histogram()) is not None:
        found.append((one.get_start_time_stamp() / 1e3, one))
    reader.close()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_each_minute_is_that_of_its_samples(tmp_path: Path, seed: int) -> None:
    entered, left = _captured(seed, 230)
    ingress = write_pcap(tmp_path / "ingress.pcap", entered)
    egress = write_pcap(tmp_path / "egress.pcap", left)
    whole, by_minute = tmp_path / "whole", tmp_path / "by-minute"
    for out, more in ((whole, ()), (by_minute, ("--by-minute",))):
        words = _words(ingress, egress, "--out", out, *more)
        subprocess.run(words, check=True, capture_output=True)

    # But for the samples there is the same, to the byte.
    assert {path.name for path in by_minute.iterdir()} == {
        *(path.name for path in whole.iterdir() if path.name != "sample.parquet"),
        *("minute.jsonl", "minute.hlog"),
    }
    for name in (*(f"{table}.parquet" for table in TABLES if table != "sample"), "summary.json"):
        assert (by_minute / name).read_bytes() == (whole / name).read_bytes(), name

    samples = pq.read_table(whole / "sample.parquet")
    egress_ns = samples["ingress_ns"].to_numpy().astype(np.int64) + samples["latency_ns"].to_numpy()
    latencies = samples["latency_ns"].to_numpy()
    told = minutes(by_minute)
    assert [one.begin_ns for one in told] == sorted({*(egress_ns // _MINUTE_NS * _MINUTE_NS)})
    for line, (begin_s, histogram) in zip(
        told, _histograms(by_minute / "minute.hlog"), strict=True
    ):
        of = latencies[egress_ns // _MINUTE_NS * _MINUTE_NS == line.begin_ns]
        assert begin_s == line.begin_ns / 1e9
        assert histogram.get_total_count() == line.samples == len(of)
        assert (line.latency_ns["min"], line.latency_ns["max"]) == (of.min(), of.max())
        beyond = {name for name, p in _QUANTILES.items() if round(len(of) * (1 - p), 6) >= 1}
        assert line.latency_ns.keys() == {"min", "max"} | beyond
        for name in beyond:
            exact = int(np.sort(of)[int(np.ceil(_QUANTILES[name] * len(of))) - 1])
            # Three significant digits.
            assert line.latency_ns[name] == pytest.approx(max(exact, 0), rel=1e-3, abs=1)
    assert sum(one.lost for one in told) == RunDirectory(by_minute).summary.ingress.lost > 480


def _fed(path: Path, source: Path, held: threading.Event) -> threading.Thread:
    """Write a capture into a pipe, which stays open."""

    def feed() -> None:
        # The reader is killed, at times before it has read all.
        with path.open("wb", buffering=0) as pipe, suppress(BrokenPipeError):
            pipe.write(source.read_bytes())
            held.wait(60)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    return thread


def _until(folder: Path, count: int) -> list[Minute]:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        if len(found := minutes(folder)) >= count:
            return found
        time.sleep(0.02)
    pytest.fail(f"not {count} minutes within 60 s: {minutes(folder)}")


def test_a_crash_costs_the_minute_that_was_not_over(tmp_path: Path) -> None:
    entered, left = _captured(seed=4, span_s=400)
    held, out = threading.Event(), tmp_path / "out"
    pipes, feeds = [], []
    for name, frames in (("ingress", entered), ("egress", left)):
        pipes.append(tmp_path / f"{name}.fifo")
        os.mkfifo(pipes[-1])
        feeds.append(_fed(pipes[-1], write_pcap(tmp_path / f"{name}.pcap", frames), held))
    process = subprocess.Popen(_words(*pipes, "--out", out, "--by-minute"))
    try:
        # The first minute is one of 18 s, and the last ones are still in a pipe or a window.
        before = _until(out, 5)
    finally:
        process.kill()
        process.wait()
        held.set()
        for feed in feeds:
            feed.join(60)
    assert minutes(out)[: len(before)] == before
    assert [one.begin_ns // _MINUTE_NS for one in before] == [
        _BEGIN_NS // _MINUTE_NS + number for number in range(len(before))
    ]
    histograms = _histograms(out / "minute.hlog")
    assert [one.get_total_count() for _, one in histograms[: len(before)]] == [
        one.samples for one in before
    ]


def test_a_line_that_was_not_written_to_its_end_is_left_out(tmp_path: Path) -> None:
    line: dict[str, Any] = {"begin_ns": 0, "samples": 7, "lost": 1, "latency_ns": {"max": 9}}
    text = json.dumps(line)
    (tmp_path / "minute.jsonl").write_text(f"{text}\n{text[:20]}")
    assert minutes(tmp_path) == [Minute(0, 7, 1, {"max": 9})]


def test_results_by_minute_need_a_directory() -> None:
    words = _words("a.pcap", "b.pcap", "--by-minute")
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "--by-minute" in ended.stderr
