"""Files and folders that are whole or not there, also after the power fails."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from tailtrim.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def replacing(place: Path) -> Iterator[BinaryIO]:
    """Write a file under another name that gets its own when it is complete.

    Directories are made; leaving with an exception removes what was written.

    Raises:
        OutputError: when the file cannot be written.

    """
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("xb") as file:
            yield file
        settle(draft, place)
    except OSError as error:
        message = f"{place}: cannot be written: {error.strerror or error}"
        raise OutputError(message) from error
    finally:
        with suppress(OSError):
            draft.unlink()


def settle(draft: Path, place: Path) -> None:
    """Give a complete file or folder its place, once all of it is on the disk.

    A name that is on the disk before what it names is an empty file after the power failed.

    Raises:
        OSError: it cannot be written there.

    """
    for path in [*draft.rglob("*"), draft]:
        # What a node left may be of any kind.
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            _sync(path)
    draft.replace(place)
    _sync(place.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
