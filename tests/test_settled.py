"""Files and folders get their names once they are on the disk, and not before."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailtrim.errors import OutputError
from tailtrim.laboratory.experiment.record import write_json
from tailtrim.results import drafts
from tailtrim.results.drafts import replacing, settle

#: Content of a disk after a loss of power: contents that were synced, under names that were.
Disk = dict[Path, bytes]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Forget all that is not synced: a name is kept with what was synced of its file by then."""
    kept: Disk = {}
    synced: dict[int, bytes] = {}
    sync = os.fsync

    def forgetting(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        sync(descriptor)
        if place.is_file():
            synced[place.stat().st_ino] = place.read_bytes()
            return
        for path in place.iterdir():
            if path.is_file():
                kept[path] = synced.get(path.stat().st_ino, b"")
            elif path.is_dir() and not path.is_symlink():
                files = (inner for inner in path.rglob("*") if inner.is_file())
                kept.update({inner: synced.get(inner.stat().st_ino, b"") for inner in files})

    monkeypatch.setattr(os, "fsync", forgetting)
    return kept


def test_a_record_is_on_the_disk_before_it_has_its_name(tmp_path: Path, disk: Disk) -> None:
    place = tmp_path / "record.json"
    for value in ({"first": 1}, {"second": 2}):
        write_json(place, value)
        assert disk[place] == place.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_a_folder_is_on_the_disk_before_it_has_its_name(tmp_path: Path, disk: Disk) -> None:
    draft, place = tmp_path / "draft", tmp_path / "run-000"
    (draft / "around").mkdir(parents=True)
    (draft / "summary.json").write_text("{}")
    (draft / "around" / "1.pcap").write_bytes(b"packets")
    (draft / "link").symlink_to("nowhere")
    settle(draft, place)
    assert disk[place / "summary.json"] == b"{}"
    assert disk[place / "around" / "1.pcap"] == b"packets"
    assert not draft.exists()


def test_what_is_not_written_to_its_end_replaces_nothing(tmp_path: Path) -> None:
    place = tmp_path / "record.json"
    write_json(place, 1)

    def half() -> None:
        with replacing(place) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert place.read_text() == "1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_a_full_disk_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"file/record.json: cannot be written"):
        write_json(tmp_path / "file" / "record.json", 1)


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    """The earlier one was removed before: a process killed then left neither."""
    place = tmp_path / "run"
    place.mkdir()
    (place / "summary.json").write_text("earlier")

    def not_here(*_: Path) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    if not can_exchange:
        monkeypatch.setattr(drafts, "exchange", not_here)
    with drafts.draft_folder(place) as draft:
        (draft / "summary.json").write_text("later")
        settle(draft, place)
        assert (draft / "summary.json").read_text() == "earlier"
    assert (place / "summary.json").read_text() == "later"
    assert list(tmp_path.iterdir()) == [place]


HOLD = """
import sys, time
from pathlib import Path
from tailtrim.results.drafts import replacing
with replacing(Path(sys.argv[1])) as file:
    print(file.name, flush=True)
    time.sleep(600)
"""


def test_the_next_writer_removes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "record.json"
    command = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        draft = Path(process.stdout.readline().strip())
        write_json(place, 1)
        assert {*tmp_path.iterdir()} == {place, draft}
        process.kill()
    write_json(place, 2)
    assert list(tmp_path.iterdir()) == [place]
