"""Releases of runs by minute: they have no samples, and captures around their worst packets."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from small_experiment import PLAN, small_experiment

from tailtrim.publishing.release import CheckResult, ReleaseOptions, release, verify
from tailtrim.publishing.release.checks.rerun import Rerun

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long

LINE = {"begin_ns": 0, "samples": 9, "lost": 0, "latency_ns": {"min": 1, "max": 9}}
AROUND = ("around/7-egress.pcap", "around/7-ingress.pcap")
#: A run that ended, and one that did not.
PLACES = ("run-000", "failed/run-001.2")


@pytest.fixture
def hours(tmp_path: Path) -> Path:
    """Return an experiment of runs by minute."""
    place = small_experiment(tmp_path, plan=PLAN.replace("keep_captures", "by_minute"))
    for run in place.glob("run-*"):
        (run / "sample.parquet").unlink()
        (run / "minute.jsonl").write_text(json.dumps(LINE) + "\n")
        capture = json.loads((run / "capture.json").read_text())
        for tap in ("ingress", "egress"):
            capture["taps"][tap]["file"] = None
            (run / "around").mkdir(exist_ok=True)
            (run / f"{tap}.pcap").rename(run / "around" / f"7-{tap}.pcap")
        (run / "capture.json").write_text(json.dumps(capture))
    failed = place / PLACES[1]
    (failed / "around").mkdir(parents=True)
    for name in AROUND:
        (failed / name).write_bytes((place / "run-000" / name).read_bytes())
    return place


def level(out: Path, name: str) -> CheckResult:
    return next(one for one in verify(out, only=[name]) if one.name == name)


def test_what_they_do_not_tell_is_skipped_and_told(hours: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert release(hours, out, ReleaseOptions()) == []
    found = level(out, "numbers")
    assert (found.verdict, found.wrong) == ("skipped", ())
    assert re.fullmatch("0 .*captures, 0 .*samples", found.told)
    (skipped,) = found.skipped
    assert skipped.startswith("run-000 and 1 more: kept by minute")
    for place in PLACES:
        for name in AROUND:
            assert (out / "experiment" / place / name).is_file()
    (again,) = (
        one
        for one in verify(out, again=Rerun(runs=1, out=tmp_path / "again"), only=["rerun"])
        if one.name == "rerun"
    )
    assert (again.verdict, (tmp_path / "again").exists()) == ("skipped", False)


def test_captures_around_the_worst_packets_are_left_out_as_captures(
    hours: Path, tmp_path: Path
) -> None:
    left_out = release(hours, tmp_path / "out", ReleaseOptions(captures=False))
    runs = ("failed/run-001.2", "run-000", "run-001")
    assert left_out == [f"{run}/{name}" for run in runs for name in AROUND]
    assert not list((tmp_path / "out").rglob("*.pcap"))


def test_captures_around_the_worst_packets_are_anonymised(hours: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    release(hours, out, ReleaseOptions(anonymise=True))
    for place in PLACES:
        for name in AROUND:
            before = (hours / place / name).read_bytes()
            after = (out / "experiment" / place / name).read_bytes()
            assert len(after) == len(before)
            # The MAC addresses of the first packet.
            assert after[40:52] != before[40:52]
