"""Text files that may be compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from contextlib import contextmanager, nullcontext
from typing import IO, TYPE_CHECKING

from tailtrim.errors import RoundTripError
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAGIC = {b"\xfd7zXZ\x00": "xz", b"BZh": "bz2", b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}

#: The default takes eight times as long, and saves a fifth.
_PRESET = 1


@contextmanager
def reading(path: Path) -> Iterator[IO[str]]:
    """Open a text file; the first bytes say how it is compressed, whatever its name.

    Raises:
        RoundTripError: when it cannot be read, or is damaged.

    """
    try:
        with path.open("rb") as file:
            head = file.read(6)
        kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
        with _decompressor(path, kind) as binary, io.TextIOWrapper(binary, "utf-8") as text:
            yield text
    except UnicodeDecodeError as error:
        raise RoundTripError(f"{path}: cannot be read: not text, at byte {error.start}") from error
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise RoundTripError(f"{path}: cannot be read: {error}") from error


@contextmanager
def writing(path: Path) -> Iterator[IO[str]]:
    """Write a text file, compressed where its name ends with ``.xz``; it appears when complete.

    Raises:
        OutputError: when it cannot be written.

    """
    with (
        replacing(path) as file,
        lzma.open(file, "wb", preset=_PRESET)
        if path.suffix == ".xz"
        else nullcontext(file) as binary,
    ):
        text = io.TextIOWrapper(binary, "utf-8", newline="\n")
        yield text
        text.flush()
        text.detach()


def _decompressor(path: Path, kind: str | None) -> IO[bytes]:
    if kind == "xz":
        return lzma.open(path)
    if kind == "bz2":
        return bz2.open(path)
    if kind == "gz":
        return gzip.open(path)  # type: ignore[return-value] # it is a stream of bytes
    if kind == "zst":
        import pyarrow as pa  # noqa: PLC0415 - takes long to import, and only this needs it

        stream: IO[bytes] = io.BufferedReader(pa.input_stream(str(path), compression="zstd"))
        return stream
    return path.open("rb")
