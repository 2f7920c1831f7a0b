"""Lines of a file of zstd frames: damaged frames are passed over, and told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tailtrim.errors import RoundTripError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

_MAGIC = b"\x28\xb5\x2f\xfd"
#: Bytes of the shortest frame: an empty one.
_SHORTEST = 9
_BLOCK_HEADER_BYTES = 3
_RLE, _RESERVED = 1, 3
#: By the two bits of the header that tell it: bytes of the dictionary's number, and of the size.
_DICTIONARY_BYTES = (0, 1, 2, 4)
_SIZE_BYTES = (0, 2, 4, 8)
_SIZE_ADDED = {2: 256}
#: Most bytes of a frame, and of its text: a minute of 65,536 probes has about one megabyte.
_MOST_BYTES = 64 << 20
_READ_BYTES = 4 << 20


class Frame(NamedTuple):
    """End of a frame, and bytes of its text if the header tells them."""

    end: int
    text_bytes: int | None


def lines(path: Path, damaged: Callable[[str], None]) -> Iterator[bytes]:
    """Yield the lines of all whole frames.

    Args:
        path: a file of zstd frames.
        damaged: is told of each place where frames are passed over.

    Raises:
        RoundTripError: the file cannot be read.

    """
    try:
        with path.open("rb") as file:
            for at, frame, text_bytes in _frames(file, damaged):
                try:
                    text = _text(frame, text_bytes)
                except (OSError, ValueError) as error:
                    damaged(f"damaged at byte {at:,} ({error})")
                    continue
                yield from text.splitlines()
    except OSError as error:
        raise RoundTripError(f"{path}: cannot be read: {error.strerror or error}") from error


def _frames(
    file: BinaryIO, damaged: Callable[[str], None]
) -> Iterator[tuple[int, bytes, int | None]]:
    """Yield the place of each frame, its bytes, and those of its text."""
    data, base, at, is_end = b"", 0, 0, False
    while at < len(data) or not is_end:
        frame = _frame(data, at)
        if frame is not None:
            yield base + at, data[at : frame.end], frame.text_bytes
            at = frame.end
        elif not is_end and len(data) - at < _MOST_BYTES:
            more = file.read(_READ_BYTES)
            is_end = not more
            data, base, at = data[at:] + more, base + at, 0
        else:
            # What looks like a begin within a frame ends in a frame that is damaged as well.
            begin = data.find(_MAGIC, at + 1)
            is_cut = begin < 0 and is_end
            damaged(f"{'cut' if is_cut else 'damaged'} at byte {base + at:,}")
            at = begin if begin >= 0 else len(data) - (0 if is_end else len(_MAGIC))


def _frame(data: bytes, at: int) -> Frame | None:
    """Return the frame that begins here; ``None``: there is no whole one (RFC 8878)."""
    if not data.startswith(_MAGIC, at) or len(data) - at < _SHORTEST:
        return None
    descriptor = data[at + 4]
    is_single, has_checksum = bool(descriptor & 0x20), bool(descriptor & 0x04)
    at += 5 + (not is_single) + _DICTIONARY_BYTES[descriptor & 3]
    size_bytes = _SIZE_BYTES[descriptor >> 6] or int(is_single)
    text_bytes = None
    if size_bytes:
        told = int.from_bytes(data[at : at + size_bytes], "little")
        text_bytes = told + _SIZE_ADDED.get(size_bytes, 0)
    at += size_bytes
    is_last = False
    while not is_last:
        header = int.from_bytes(data[at : at + _BLOCK_HEADER_BYTES], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        at += _BLOCK_HEADER_BYTES + (1 if kind == _RLE else size)
        if kind == _RESERVED or at > len(data):
            return None
    at += 4 * has_checksum
    return Frame(at, text_bytes) if at <= len(data) else None


def _text(frame: bytes, text_bytes: int | None) -> bytes:
    """Decompress a frame, whose checksum is compared.

    Raises:
        OSError: it is damaged.
        ValueError: its text is too long.

    """
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    if (text_bytes or 0) > _MOST_BYTES:
        raise ValueError(f"{text_bytes:,} bytes of text, expected at most {_MOST_BYTES:,}")
    if text_bytes is not None:
        found: bytes = pa.decompress(frame, text_bytes, codec="zstd", asbytes=True)
        return found
    with pa.input_stream(pa.BufferReader(frame), compression="zstd") as stream:
        found = stream.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes of text")
    return found
