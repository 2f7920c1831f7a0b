"""Drafts of run directories: whole or not there, also after a crash."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailtrim
from tailtrim.publishing.export import convert
from tailtrim.results.writing import Draft

HOLD = """
import sys, time
from tailtrim.results.writing import Draft
with Draft(sys.argv[1]) as draft:
    (draft.path / "half.parquet").write_bytes(b"x")
    print(draft.path, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that holds a draft of ``tmp_path/run``; yields it and the draft."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        draft = process.stdout.readline().strip()
        yield process, tmp_path / draft
        process.kill()


def test_the_draft_of_a_killed_process_is_removed_by_the_next(
    tmp_path: Path, holder: tuple[subprocess.Popen[str], Path]
) -> None:
    process, abandoned = holder
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (abandoned / "half.parquet").exists()
    with Draft(tmp_path / "run") as draft:
        assert not abandoned.exists()
        assert draft.path.exists()
    assert list(tmp_path.iterdir()) == []


def test_the_draft_of_a_living_process_stays(
    tmp_path: Path, holder: tuple[subprocess.Popen[str], Path]
) -> None:
    _, alive = holder
    with Draft(tmp_path / "run"):
        assert (alive / "half.parquet").exists()


def test_what_is_no_draft_of_this_place_stays(tmp_path: Path) -> None:
    others = [tmp_path / name for name in (".run.backup", ".tailtrim-draft-other-1", "run-2")]
    for other in others:
        other.mkdir()
    with Draft(tmp_path / "run"):
        assert all(other.exists() for other in others)


def test_an_analysis_replaces_only_what_an_analysis_wrote(
    testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    # It removed captures, notes and reports that lay in the directory.
    place = tmp_path / "run"
    tailtrim.analyze(*testpmd, skip_s=1, out=place)
    tailtrim.analyze(*testpmd, out=place, skip_s=0)
    assert tailtrim.RunDirectory(place).summary.trim_ns == 0
    # Files that tailtrim made of an analysis go with it: after a report, hour two failed.
    for format_ in ("csv", "hgrm", "hlog", "openmetrics"):
        convert(tailtrim.RunDirectory(place), format_, place)
    (place / "report").mkdir()
    (place / "report" / "report.html").touch()
    tailtrim.analyze(*testpmd, out=place)
    assert not (place / "report").exists()
    inside = [Path(shutil.copy(capture, place)) for capture in testpmd]
    with pytest.raises(tailtrim.OutputError, match=r"run: is not replaced.*egress\.pcap"):
        tailtrim.analyze(*inside, out=place)
    assert all(capture.exists() for capture in inside)
