"""Uploads of nodes stay in the folder that they go to."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from tailtrim_pos.node import unpack

if TYPE_CHECKING:
    from pathlib import Path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, link, 0o4777
    return made


def archive(*members: tarfile.TarInfo) -> io.BytesIO:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as made:
        for one in members:
            one.size = len(one.name) if one.isreg() else 0
            made.addfile(one, io.BytesIO(one.name.encode()) if one.isreg() else None)
    held.seek(0)
    return held


def unpacked(folder: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(fileobj=archive(*members), mode="r|") as files:
        unpack(files, folder)


def test_files_folders_and_links_are_unpacked(tmp_path: Path) -> None:
    unpacked(
        tmp_path,
        member("results", tarfile.DIRTYPE),
        member("results/a"),
        member("results/deep/b"),
        member("results/same", tarfile.LNKTYPE, "results/a"),
        member("results/deep/up", tarfile.SYMTYPE, "../a"),
    )
    assert (tmp_path / "results/deep/b").read_text() == "results/deep/b"
    assert (tmp_path / "results/same").read_text() == "results/a"
    assert (tmp_path / "results/deep/up").read_text() == "results/a"
    assert (tmp_path / "results/a").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "members",
    [
        (member("../out"),),
        (member("/etc/out"),),
        (member("results/../../out"),),
        (member("results/.."),),
        (member("way", tarfile.SYMTYPE, "/etc"), member("way/out")),
        (member("way", tarfile.SYMTYPE, ".."), member("way/out")),
        (member("copy", tarfile.LNKTYPE, "../secret"),),
        (member("pipe", tarfile.FIFOTYPE),),
        (member("disk", tarfile.BLKTYPE),),
    ],
)
def test_what_leads_out_or_is_no_file_is_refused(
    tmp_path: Path, members: tuple[tarfile.TarInfo, ...]
) -> None:
    (tmp_path / "secret").write_text("not for results")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(tarfile.TarError, match=r"leads out|not a file"):
        unpacked(folder, *members)
    assert {place.name for place in tmp_path.iterdir()} == {"secret", "folder"}
    assert not (folder / "copy").exists()


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises((tarfile.TarError, OSError)):
        unpacked(tmp_path, member("way", tarfile.SYMTYPE, "way"), member("way/out"))
