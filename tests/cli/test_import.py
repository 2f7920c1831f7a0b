"""``tailtrim import``: what is said of each kind of file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PING = (
    "#Pi 88888888 10.193.4.168 10.193.4.67 178f2cc6c7ea013a 0 b8 44 48 7d61 0 0 255 "
    "11666600 36997 6983 50311 426999 332708 -1"
)
JITTER = (
    "#Ji 7 10.0.0.1 10.0.0.2 178f2cc6c7ea013a 3 0 44 7d61 0 0 255 11666600 0 "
    "16 1 2 16 3 4 16 5 6 16 7 8 16 9 10 0 -1 -1"
)
LATENCY = {"histogram": {"10": 98, "200": 2}, "total_max": 230, "total_min": 11}
TREX = {"latency": {"5": {"latency": LATENCY, "err_cntrs": {"dropped": 3, "dup": 0}}}}


def tailtrim(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "tailtrim", "import", *arguments],
        check=False,
        text=True,
        capture_output=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80"},
    )


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_histograms_are_told_as_intervals(tmp_path: Path) -> None:
    file = write(tmp_path, "trex.json", json.dumps(TREX))
    shown = tailtrim(file, "--out", tmp_path / "out")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "trex.json, stream 5: 100 latencies in buckets\n  dropped 3, dup 0\n" in shown.stdout
    assert "  p50            11.0        20.0\n" in shown.stdout
    assert "  p99             200         231\n" in shown.stdout
    left = json.loads((tmp_path / "out/histograms.json").read_text())
    assert left == json.loads(tailtrim(file, "--json").stdout)
    (found,) = left["histograms"]
    assert found["quantiles"]["p99"] == {"low_ns": 200_000, "high_ns": 231_000}
    assert found["counters"] == {"dropped": 3, "dup": 0}
    assert [row["number"] for row in found["buckets"]] == [98, 2]


def test_an_empty_histogram_is_a_negative_result(tmp_path: Path) -> None:
    empty = {"5": {"latency": {"histogram": {}, "total_max": 0}}}
    shown = tailtrim(write(tmp_path, "trex.json", json.dumps(empty)))
    assert shown.returncode == 1
    assert "0 latencies" in shown.stdout


def test_jitter_is_called_by_its_name(tmp_path: Path) -> None:
    only = write(tmp_path, "jitter.hpct", f"#? HPCT Jitter 2 x/1\n{JITTER}\n")
    header = write(tmp_path, "header.hpct", "#? HPCT Jitter 2 x/1\n")
    for file in (only, header):
        shown = tailtrim(file, "--out", tmp_path / "out")
        assert shown.returncode == 2
        assert "Jitter results (means of rounds) of HiPerConTracer" in shown.stderr
        assert "expected its Ping results: measure with hipercontracer --ping" in shown.stderr
    assert not (tmp_path / "out").exists()
    both = write(tmp_path, "both.hpct", f"{JITTER}\n{PING}\n{JITTER}\n")
    shown = tailtrim(both, "--out", tmp_path / "out", "--json")
    assert shown.returncode == 0
    assert "warning: 2 Jitter results of HiPerConTracer are passed over" in shown.stderr
    assert json.loads(shown.stdout)["samples"] == 1


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("ping.hpct", PING, [], "--out names it"),
        ("noise.txt", "x\n# RTLA timerlat histogram\n", [], "tailtrim noise --read"),
        ("noise.txt", "# Histogram\n000001 000002\n", [], "tailtrim noise --read"),
        ("trex.json", json.dumps(TREX), ["--unit", "us"], "unit belongs to logs of HdrHistogram"),
        ("a.hlog", "#[Logged]\n0.1,1.0,2.0,HISTxxxx\n", [], "line 2: the histogram is damaged"),
    ],
)
def test_one_error_says_what_to_do(
    tmp_path: Path, name: str, text: str, options: list[str], expected: str
) -> None:
    shown = tailtrim(write(tmp_path, name, text), *options)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert expected in shown.stderr
    assert shown.stderr.count("error: ") == 1


def test_files_of_several_kinds_are_refused(tmp_path: Path) -> None:
    ping = write(tmp_path, "ping.hpct", PING)
    shown = tailtrim(write(tmp_path, "trex.json", json.dumps(TREX)), ping, "--out", tmp_path / "x")
    assert shown.returncode == 2
    assert f"{ping}: is of another kind than the others" in shown.stderr
