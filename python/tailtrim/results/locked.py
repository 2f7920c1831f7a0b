"""One process at a time in a folder: :func:`lock`."""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def lock(folder: Path, owner: object) -> None:
    """Make a folder and keep other processes out of it, for as long as the owner or this one lives.

    Some network file systems lock no directories; there, users have to know.

    Raises:
        OutputError: the folder cannot be written, or another process has it.

    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from error
    weakref.finalize(owner, os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno == errno.EWOULDBLOCK:
            raise OutputError(f"{folder}: another process is running it") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder for as long as the context lasts, as :func:`lock`."""
    owner = _Owner()
    lock(folder, owner)
    try:
        yield
    finally:
        del owner


class _Owner:
    """Owner of a lock."""
