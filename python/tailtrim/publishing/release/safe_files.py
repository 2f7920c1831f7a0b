"""The files of a folder that comes from others: only regular ones, nothing that leads out of it."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING, Any

from tailtrim.errors import ReleaseError
from tailtrim.publishing.release.layout import IGNORED

if TYPE_CHECKING:
    from pathlib import Path

#: An experiment has at most 100,000 runs, and a run about 20 files.
MOST_FILES = 2_000_000
#: JSON and YAML that is read as a whole: outcomes of 100,000 runs of 400 bytes take 40 MB.
MOST_TEXT_BYTES = 256 << 20
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\\]+")


def files(root: Path) -> list[str]:
    """Return the paths of all files from ``root`` on, sorted; ``.git`` is not looked at.

    Raises:
        ReleaseError: there is a symbolic link, something else that is not a file, or a name that
            checksums cannot have; or there are too many.

    """
    found: list[str] = []
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(root / folder))
        except OSError as error:
            raise ReleaseError(f"{root / folder}: cannot be read: {error.strerror}") from error
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if name == IGNORED:
                continue
            mode = entry.stat(follow_symlinks=False).st_mode
            if not _PLAIN.fullmatch(entry.name) or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a file with a plain name"
                raise ReleaseError(f"{root}: {name!r} is {kind}, expected only files and folders")
            if stat.S_ISDIR(mode):
                waiting.append(name)
            else:
                found.append(name)
        if len(found) > MOST_FILES:
            raise ReleaseError(f"{root}: more than {MOST_FILES:,} files, too many for a release")
    return sorted(found)


def inside(name: str) -> bool:
    """Return whether a path stays in the folder that it begins in."""
    return bool(name) and not name.startswith("/") and ".." not in name.split("/")


def text(path: Path) -> str:
    """Return the text of a file of bounded size.

    Raises:
        ReleaseError: it is missing, too long, or not UTF-8.

    """
    try:
        size = path.stat().st_size
        if size > MOST_TEXT_BYTES:
            raise ReleaseError(f"{path}: {size:,} bytes, expected at most {MOST_TEXT_BYTES:,}")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReleaseError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ReleaseError(f"{path}: not UTF-8 text") from error


def record(path: Path) -> dict[str, Any]:
    """Return what a JSON file holds.

    Raises:
        ReleaseError: as of :func:`text`, or it is not a JSON object.

    """
    try:
        held = json.loads(text(path))
    except (ValueError, RecursionError) as error:
        raise ReleaseError(f"{path}: not JSON: {error}") from error
    if not isinstance(held, dict):
        raise ReleaseError(f"{path}: expected a JSON object")
    return held
