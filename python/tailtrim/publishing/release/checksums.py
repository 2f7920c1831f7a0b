"""SHA-256 of every file, as ``sha256sum`` writes and checks it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tailtrim.errors import ReleaseError
from tailtrim.publishing.release import safe_files
from tailtrim.publishing.release.layout import SIGNATURE, SUMS
from tailtrim.results.writing import sha256

if TYPE_CHECKING:
    from pathlib import Path

#: Files that cannot be among the checksums: the list itself, and its signature.
_WITHOUT = (SUMS, SIGNATURE)
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def write(root: Path) -> None:
    """Write the checksums of all files below ``root``."""
    lines = [f"{sha256(root / name)}  {name}\n" for name in _covered(root)]
    (root / SUMS).write_text("".join(lines), encoding="utf-8")


def read(root: Path) -> dict[str, str]:
    """Return the checksums by path.

    Raises:
        ReleaseError: the file is missing, has a line that is not a checksum, or names a path
            outside of ``root``.

    """
    found: dict[str, str] = {}
    for number, line in enumerate(safe_files.text(root / SUMS).rstrip("\n").split("\n"), 1):
        parsed = _LINE.fullmatch(line)
        if parsed is None:
            raise ReleaseError(f"{root / SUMS}: line {number}: expected a SHA-256 and a path")
        if not safe_files.inside(parsed[2]):
            raise ReleaseError(f"{root / SUMS}: line {number}: {parsed[2]!r} is outside of {root}")
        found[parsed[2]] = parsed[1]
    return found


def wrong(root: Path) -> list[str]:
    """Return what differs from the checksums: changed, missing and additional files.

    Raises:
        ReleaseError: see :func:`read`.

    """
    expected, there = read(root), _covered(root)
    missing = expected.keys() - set(there)
    told = [f"{name}: missing" for name in expected if name in missing]
    for name in there:
        if name not in expected:
            told.append(f"{name}: not in {SUMS}")
        elif sha256(root / name) != expected[name]:
            told.append(f"{name}: changed, its SHA-256 is not that of {SUMS}")
    return told


def _covered(root: Path) -> list[str]:
    return [name for name in safe_files.files(root) if name not in _WITHOUT]
