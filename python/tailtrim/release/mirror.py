"""A release fetched from a mirror, such as an archive's web server: :func:`fetched`."""

from __future__ import annotations

import http.client
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING

from tailtrim.errors import ReleaseError
from tailtrim.release import checksums, tree
from tailtrim.release.layout import SIGNATURE, SUMS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_URL = re.compile(r"https?://", re.IGNORECASE)
#: Without an answer for so long, a mirror is not there any more.
_SILENT_S = 30.0
_BLOCK_BYTES = 1 << 20
#: A mirror may send without end: so much of the disk is left.
_LEFT_BYTES = 1 << 30
_MISSING = 404


def is_url(place: str) -> bool:
    """Whether a place is one to fetch from."""
    return _URL.match(place) is not None


def fetched(url: str, folder: Path, told: Callable[[str], None]) -> Path:
    """Fetch what the checksums of a release name; a file that the mirror lacks is left out.

    Files that the checksums do not name cannot be seen on a mirror.

    Args:
        url: the address of its folder, ``http`` or ``https``.
        folder: where it goes, new and empty.
        told: is called with what is being done.

    Returns:
        The folder.

    Raises:
        ReleaseError: the mirror does not answer, has no checksums, sends more than this disk
            takes, or the checksums name what is outside of the release.

    """
    base = url.rstrip("/") + "/"
    for name in (SUMS, SIGNATURE):
        _fetch(base, name, folder, tree.MOST_TEXT_BYTES)
    if not (folder / SUMS).is_file():
        raise ReleaseError(f"{base}{SUMS}: not there, expected the address of a release")
    for name in checksums.read(folder):
        told(f"fetching {name}")
        _fetch(base, name, folder, None)
    return folder


def _fetch(base: str, name: str, folder: Path, most_bytes: int | None) -> None:
    address, place = base + urllib.parse.quote(name), folder / name
    try:
        with urllib.request.urlopen(address, timeout=_SILENT_S) as answer:  # noqa: S310 - http(s)
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("wb") as file:
                while block := answer.read(_BLOCK_BYTES):
                    file.write(block)
                    if most_bytes is not None and file.tell() > most_bytes:
                        raise ReleaseError(f"{address}: more than {most_bytes:,} bytes, too large")
                    if shutil.disk_usage(folder).free < _LEFT_BYTES:
                        raise ReleaseError(f"{address}: less than 1 GiB of {folder} would be left")
    except urllib.error.HTTPError as error:
        if error.code != _MISSING:
            raise ReleaseError(f"{address}: {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise ReleaseError(f"{address}: cannot be fetched: {reason}") from error
