"""Files that are whole or not there."""

from __future__ import annotations

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
        draft.replace(place)
    except OSError as error:
        message = f"{place}: cannot be written: {error.strerror or error}"
        raise OutputError(message) from error
    finally:
        with suppress(OSError):
            draft.unlink()
