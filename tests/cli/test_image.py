"""``tailtrim image``: impossible images are refused before anything is fetched."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tailtrim.cli.application import app
from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.vm import image, kernel

if TYPE_CHECKING:
    from pathlib import Path


def built(*words: str) -> str:
    ended = CliRunner().invoke(app, ["image", "build", *words])
    assert ended.exit_code == 3
    return ended.stderr


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_kernel_that_is_nowhere(tmp_path: Path) -> None:
    told = built(str(tmp_path / "out"), "--kernel", "trixie/realtime")
    for fact in ("kernel trixie/realtime: ", "RELEASE/amd64, RELEASE/cloud, RELEASE/rt"):
        assert fact in told


def test_a_file_that_is_no_kernel(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("not a kernel")
    told = built(str(tmp_path / "out"), "--kernel", str(tmp_path / "notes"))
    for fact in ("vmlinuz: not a kernel", "bzImage"):
        assert fact in told
    assert not (tmp_path / "out").exists()
    assert not list((tmp_path / "cache").rglob("vmlinuz"))


def test_the_release_is_read_from_the_kernel(tmp_path: Path) -> None:
    header = bytearray(0x400)
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", header, 0x20E, 0x100)
    header[0x300:0x320] = b"6.18.1-own (me@here) #1 SMP\0".ljust(0x20, b"\0")
    place = tmp_path / "bzImage"
    place.write_bytes(header)
    assert kernel.release_of(place) == "6.18.1-own"


def test_an_image_without_its_files(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"image\.json: .*No such file"):
        image.opened(tmp_path)
    (tmp_path / "image.json").write_text('{"schema": "tailtrim.image/1"}')
    with pytest.raises(HostError, match=r"image\.json: not the record"):
        image.opened(tmp_path)
    (tmp_path / "image.json").write_text('{"schema": "other"}')
    with pytest.raises(HostError, match=r"'other', expected 'tailtrim\.image/1'"):
        image.opened(tmp_path)
