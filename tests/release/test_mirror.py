"""A release is fetched from a web server, which may lack files, send others, or not answer."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tailtrim.errors import ReleaseError
from tailtrim.release import mirror, verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.long


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def served(copied: Path) -> Iterator[str]:
    """Return the address of the release on a server of this machine."""
    handler = partial(_Quiet, directory=str(copied))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fetched(url: str, folder: Path) -> Path:
    folder.mkdir()
    return mirror.fetched(url, folder, lambda _: None)


def failed(root: Path) -> dict[str, tuple[str, ...]]:
    levels = verify(root, only=("files", "numbers"))
    return {level.name: level.wrong for level in levels if level.wrong}


def test_a_release_on_a_mirror_is_verified(served: str) -> None:
    command = (sys.executable, "-m", "tailtrim.cli", "verify", served, "--level", "numbers")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert re.search("pass +numbers +2 .*captures, 0 .*samples", ended.stdout)


def test_all_files_of_the_checksums_are_fetched(served: str, copied: Path, tmp_path: Path) -> None:
    root = fetched(served, tmp_path / "here")
    assert failed(root) == {}
    there, here = (
        {path.relative_to(top): path.read_bytes() for path in top.rglob("*") if path.is_file()}
        for top in (copied, root)
    )
    assert here == there


def test_a_file_that_a_mirror_lacks_or_changed_is_told(
    served: str, copied: Path, tmp_path: Path
) -> None:
    (copied / "LICENSE").unlink()
    (copied / "README.md").write_text("other")
    wrong = failed(fetched(served, tmp_path / "here"))["files"]
    assert "LICENSE: missing" in wrong
    assert any(one.startswith("README.md: changed") and "SHA256SUMS" in one for one in wrong)


def test_checksums_do_not_lead_out_of_the_folder(served: str, copied: Path, tmp_path: Path) -> None:
    (copied / "SHA256SUMS").write_text(f"{'0' * 64}  ../outside\n")
    with pytest.raises(ReleaseError, match=r"SHA256SUMS: line 1: '\.\./outside'"):
        fetched(served, tmp_path / "here")
    assert not (tmp_path / "outside").exists()


def test_what_is_not_a_release_or_not_there_is_one_error(served: str, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="site/SHA256SUMS: not there"):
        fetched(f"{served}/site", tmp_path / "site")
    with pytest.raises(ReleaseError, match="cannot be fetched: "):
        fetched("http://127.0.0.1:9/x", tmp_path / "nobody")
