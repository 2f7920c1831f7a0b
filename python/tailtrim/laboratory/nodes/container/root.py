"""The files of containers, with what is known of where they come from."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.container.settings import RELEASE
from tailtrim.laboratory.nodes.vm import image
from tailtrim.laboratory.nodes.vm.root import versions

if TYPE_CHECKING:
    from collections.abc import Callable

_STATUS = "var/lib/dpkg/status"


@dataclass(frozen=True, slots=True)
class RootFiles:
    """Files of a container: a directory or a squashfs, and what run directories say of it."""

    path: str
    record: dict[str, Any]


#: Files that were prepared before: the checksum of an image takes a while.
_KNOWN: dict[tuple[str | None, tuple[str, ...]], RootFiles] = {}


def prepared(
    root: str | None, packages: tuple[str, ...], told: Callable[[str], None] = lambda _: None
) -> RootFiles:
    """Return the files that a plan asks for; Debian's of a release are made, once.

    Args:
        root: a directory with files, an image, or a Debian release; ``None`` for this host's.
        packages: of Debian, with a release.
        told: is called with what is being done, where it takes time.

    Raises:
        HostError: the files are missing, or cannot be made.
        OutputError: the cache cannot be written.

    """
    asked = (root, packages)
    if asked not in _KNOWN:
        made = root if root is not None and RELEASE.fullmatch(root) else None
        _KNOWN[asked] = (
            _of(image.built(image.Recipe(None, made, packages), told)) if made else _given(root)
        )
    return _KNOWN[asked]


def _given(root: str | None) -> RootFiles:
    if root is None:
        return RootFiles("/", {"files": "of the host"})
    folder = Path(root)
    if image.is_image(folder):
        return _of(image.opened(folder, (image.ROOT,)))
    if not folder.is_dir():
        releases = "a Debian release such as trixie"
        raise HostError(f"dut.container.root: {root}: not a directory, and not {releases}")
    record: dict[str, Any] = {"directory": str(folder.absolute()), "sha256": _sum(folder)}
    status = folder / _STATUS
    if status.is_file():
        record["packages"] = versions(status.read_text("utf-8", "replace"))
    return RootFiles(str(folder.absolute()), record)


def _sum(folder: Path) -> str:
    """Return a checksum of the names and contents of all files below a folder."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        kind = "l" if path.is_symlink() else "f" if path.is_file() else "-"
        content = b""
        if kind == "l":
            content = os.fsencode(path.readlink())
        elif kind == "f":
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        whole.update(os.fsencode(f"{path.relative_to(folder)}\0{kind}{len(content)}\0") + content)
    return whole.hexdigest()


def _of(made: image.Image) -> RootFiles:
    path = made.folder.absolute() / image.ROOT
    record = {name: made.record[name] for name in ("root", "packages")}
    return RootFiles(str(path), {"sha256": made.record["sha256"][image.ROOT]} | record)
