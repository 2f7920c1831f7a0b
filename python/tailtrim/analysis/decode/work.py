"""Options, lock and notes of parts, common to decoding and following."""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.options import MASKS, known_masks
from tailtrim.errors import DecodedError, OutputError
from tailtrim.results.drafts import locked, replacing

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

MOST_BUCKETS = 512


def checked(  # noqa: PLR0913 - keyword-only options
    captures: Sequence[object],
    *,
    buckets: int,
    signature: str | None,
    masks: str | Sequence[str],
    x552_trailer: bool,
    nanoseconds: bool,
    salvage: bool,
) -> dict[str, Any]:
    """Return the options of a native decoder.

    Raises:
        ValueError: an option makes no sense.

    """
    given = known_masks(masks)
    if not captures:
        raise ValueError("no capture is given, expected at least one")
    if not 1 <= buckets <= MOST_BUCKETS or buckets & (buckets - 1):
        raise ValueError(
            f"invalid number of buckets {buckets}, expected a power of two up to {MOST_BUCKETS}"
        )
    options = {
        "signature": signature,
        "masks": [mask for mask in MASKS if mask in given],
        "x552_trailer": x552_trailer,
        "salvage": salvage,
    }
    # Directories of before do not have it, and are still completed.
    return options | {"nanoseconds": True} if nanoseconds else options


@contextmanager
def occupied(out: str | os.PathLike[str]) -> Iterator[Path]:
    """Make the directory, and keep other processes out of it.

    Raises:
        OutputError: another process has it, or it cannot be written, now or within the block.

    """
    place = Path(out)
    with locked(place):
        try:
            yield place
        except OSError as error:
            failure = OutputError(f"{place}: cannot be written: {error.strerror or error}")
            failure.add_note("what was written is kept: run the same command again to continue")
            raise failure from error


class Work:
    """``DIR/.decode``: the captures being decoded, and the parts that are whole."""

    def __init__(self, place: Path) -> None:
        """Name the directory."""
        self._place = place
        self.path = place / ".decode"

    def settings(self) -> dict[str, Any] | None:
        """Return what an interrupted decoding noted of itself."""
        note = self.path / "settings.json"
        if not note.exists():
            return None
        settings: dict[str, Any] = json.loads(note.read_text())
        return settings

    def begin(self, settings: dict[str, Any], *, besides: Sequence[str] = ()) -> str:
        """Note what is decoded, or see that an interrupted decoding was of the same.

        Returns:
            The identity of the directory.

        """
        before = self.settings()
        if before is not None:
            identity = str(before.pop("id"))
            if before == settings:
                return identity
            failure = DecodedError(
                f"{self._place}: holds an interrupted decoding of other captures, or with other"
                " options"
            )
            failure.add_note("name another directory, or remove this one")
            raise failure
        if any(entry.name not in {".decode", *besides} for entry in self._place.iterdir()):
            raise DecodedError(f"{self._place}: is not empty, and nothing in it is replaced")
        self.path.mkdir(exist_ok=True)
        identity = uuid.uuid4().hex
        self.write(self.path / "settings.json", json.dumps(settings | {"id": identity}))
        return identity

    def notes(self, capture: int) -> list[str]:
        """Return the notes of the parts of a capture that are whole, in their order."""
        folder = self.path / f"capture-{capture}"
        return [path.read_text() for path in sorted(folder.glob("part-*[0-9]"))]

    def note(self, capture: int, part: int, text: str) -> None:
        """Note that a part is whole."""
        folder = self.path / f"capture-{capture}"
        folder.mkdir(exist_ok=True)
        self.write(folder / f"part-{part:05}", text)

    @staticmethod
    def write(path: Path, text: str) -> None:
        """Write a file that is whole or not there."""
        with replacing(path) as file:
            file.write(text.encode())
