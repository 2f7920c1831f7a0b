"""``tailtrim-agent analyze --out`` leaves the files that ``tailtrim analyze --out`` does."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from tailtrim.analysis import analyze
from tailtrim.analysis.options import Departures
from tailtrim.laboratory.nodes import agent
from tailtrim.results import TABLES

CAPTURES = Path(__file__).parents[2] / "examples" / "testpmd"
INGRESS, EGRESS = (str(CAPTURES / f"{tap}.pcap.zst") for tap in ("ingress", "egress"))


def _analyzed(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [agent.program(), "analyze", INGRESS, EGRESS, "--skip", "100ms", "--out", str(out)]
    return subprocess.run([*words, *more], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("correction_ns", [0, 59, -64])
def test_the_tables_and_the_summary_are_the_same_byte_for_byte(
    tmp_path: Path, correction_ns: int
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    first = analyze(INGRESS, EGRESS, skip_s=0).summary.ingress_tap.first_ns
    assert first is not None
    departures = Departures(((first + 10**8, first + 2 * 10**8),), ((first, first + 10**8),))
    (tmp_path / "departures.json").write_text(
        json.dumps({"stalled": departures.stalled, "late": departures.late})
    )
    options = ["--correction", str(correction_ns), "--quantile", "0.9995"]
    ended = _analyzed(there, *options, "--departures", str(tmp_path / "departures.json"))
    assert ended.returncode == 0, ended.stderr
    analyze(
        INGRESS,
        EGRESS,
        skip_s=0.1,
        quantiles=["0.9995"],
        departures=departures,
        correction_ns=correction_ns,
        out=here,
    )
    for name in (*(f"{table}.parquet" for table in TABLES), "summary.json"):
        assert (here / name).read_bytes() == (there / name).read_bytes(), name


def test_the_number_of_cores_makes_no_difference(tmp_path: Path) -> None:
    for jobs in (1, 2, 5):
        analyze(INGRESS, EGRESS, skip_s=0.1, jobs=jobs, out=tmp_path / str(jobs))
        ended = _analyzed(tmp_path / f"agent-{jobs}", "--jobs", str(jobs))
        assert ended.returncode == 0, ended.stderr
        kept = analyze(INGRESS, EGRESS, skip_s=0.1, jobs=jobs, keep_samples=True)
        assert kept.samples.num_rows == kept.summary.samples
    for name in (*(f"{table}.parquet" for table in TABLES), "summary.json"):
        one, *others = (folder / name for folder in sorted(tmp_path.iterdir()))
        assert all(other.read_bytes() == one.read_bytes() for other in others), name


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_core_is_too_few(jobs: int) -> None:
    with pytest.raises(ValueError, match=f"^jobs {jobs}, expected 1 or more$"):
        analyze(INGRESS, EGRESS, jobs=jobs)


def test_departures_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "departures.json").write_text('{"stalled": 1}')
    ended = _analyzed(tmp_path / "out", "--departures", str(tmp_path / "departures.json"))
    assert ended.returncode == 2
    assert "departures.json: invalid type: integer" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_minutes_are_the_same_on_any_number_of_cores(tmp_path: Path) -> None:
    """Thirty minutes, of which each loses packets, one after the other."""
    captures = (tmp_path / "in.pcap", tmp_path / "out.pcap")
    for delay_ns, path in zip((0, 5_000), captures, strict=True):
        with path.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
            for number in range(180_000):
                if delay_ns and number % 6_000 < number // 6_000:
                    continue
                stamp_ns = (16_000_000 * 6_000 + number) * 10**7 + delay_ns
                # Shorter captures are matched by one thread.
                frame = bytes(12) + b"\x88\xb5" + number.to_bytes(50, "big") + bytes(136)
                file.write(struct.pack("<IIII", *divmod(stamp_ns, 10**9), 200, 200) + frame)
    for jobs in (1, 2, 3, 8):
        words = ["analyze", *captures, "--by-minute", "--out", tmp_path / str(jobs)]
        words += ["--jobs", jobs, "--skip", "0s"]
        subprocess.run([agent.program(), *map(str, words)], check=True, capture_output=True)
    lines = [
        json.loads(line) for line in (tmp_path / "1" / "minute.jsonl").read_text().splitlines()
    ]
    assert [line["lost"] for line in lines] == list(range(30))
    for name in ("minute.jsonl", "minute.hlog", "summary.json"):
        one, *others = ((tmp_path / str(jobs) / name).read_bytes() for jobs in (1, 2, 3, 8))
        assert all(other == one for other in others), name
