"""Files of others, read within bounds and without following links."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

from tailtrim.errors import ResultsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Files and folders below a folder of results: a hundred for each run of the largest plan.
MOST_ENTRIES = 10_000_000
#: The folders within each other; uploads of folders are a few deep.
MOST_DEPTH = 16


def text_of(path: Path, most_bytes: int) -> str:
    """Read a text file.

    Raises:
        ResultsError: it is no regular file, cannot be read, is not UTF-8, or is longer.

    """
    try:
        # Not blocking: a pipe would wait for a writer that never comes.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ResultsError(f"{path}: not a regular file")
            found = file.read(most_bytes + 1)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
    if len(found) > most_bytes:
        raise ResultsError(f"{path}: longer than {most_bytes:,} bytes")
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultsError(f"{path}: cannot be read: not UTF-8 text") from error


def json_of(path: Path, most_bytes: int) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ResultsError: as of :func:`text_of`, or it is not a JSON object.

    """
    try:
        value = json.loads(text_of(path, most_bytes))
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ResultsError(f"{path}: expected a JSON object")
    return value


def files_below(folder: Path, left_out: list[str]) -> Iterator[Path]:
    """Yield the regular files below a folder, in order of their names.

    Args:
        folder: where.
        left_out: gets what is neither a regular file nor a folder, such as symbolic links.

    Raises:
        ResultsError: there are too many, or a folder cannot be read.

    """
    seen = 0
    waiting = [(folder, 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            raise ResultsError(f"{place}: cannot be read: {error.strerror}") from error
        seen += len(entries)
        if seen > MOST_ENTRIES or depth > MOST_DEPTH:
            told = f"more than {MOST_ENTRIES:,} files, or folders more than {MOST_DEPTH} deep"
            raise ResultsError(f"{folder}: {told}")
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield place / entry.name
            elif not entry.is_dir(follow_symlinks=False):
                left_out.append(str((place / entry.name).relative_to(folder.parent)))
        waiting += [
            (place / entry.name, depth + 1)
            for entry in reversed(entries)
            if entry.is_dir(follow_symlinks=False)
        ]
