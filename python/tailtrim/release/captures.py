"""Captures rewritten packet by packet: pcap in, pcap out, stamps and lengths as they were."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa

from tailtrim.errors import ReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MAGICS = {b"\x4d\x3c\xb2\xa1": "<", b"\xd4\xc3\xb2\xa1": "<"}
_MAGICS |= {magic[::-1]: ">" for magic in list(_MAGICS)}
_FILE_HEADER, _PACKET_HEADER = 24, 16
_ETHERNET = 1
_READ_BYTES = 1 << 20
#: Beyond this the length of a packet is damage.
_LONGEST = 1 << 18


def rewrite(source: Path, target: Path, rewritten: Callable[[bytes], bytes]) -> None:
    """Write a capture with other packets of the same lengths.

    Args:
        source: a pcap file, plain or compressed (``.zst``, ``.gz``), of Ethernet.
        target: where to; compressed as the source is.
        rewritten: returns what takes the place of a packet's captured bytes.

    Raises:
        ReleaseError: it is another format, or damaged.

    """
    compression = {".zst": "zstd", ".gz": "gzip"}.get(source.suffix)
    try:
        with (
            pa.input_stream(str(source), compression=compression) as reading,
            pa.output_stream(str(target), compression=compression) as writing,
        ):
            header = reading.read(_FILE_HEADER)
            order = _MAGICS.get(header[:4])
            kind = f"{source}: only pcap files of Ethernet can be anonymised"
            if order is None or len(header) < _FILE_HEADER:
                raise ReleaseError(kind)
            if struct.unpack(f"{order}I", header[20:])[0] & 0xFFFF != _ETHERNET:
                raise ReleaseError(kind)
            writing.write(header)
            _packets(source, order, reading, writing, rewritten)
    except (OSError, pa.ArrowException) as error:
        raise ReleaseError(f"{source}: cannot be anonymised: {error}") from error


def _packets(
    source: Path,
    order: str,
    reading: pa.NativeFile,
    writing: pa.NativeFile,
    rewritten: Callable[[bytes], bytes],
) -> None:
    length_at = struct.Struct(f"{order}8xI4x")
    held, at = b"", 0
    while True:
        more = reading.read(_READ_BYTES)
        held, at = held[at:] + more, 0
        done: list[bytes] = []
        while len(held) - at >= _PACKET_HEADER:
            (length,) = length_at.unpack_from(held, at)
            if length > _LONGEST:
                raise ReleaseError(f"{source}: damaged: a packet of {length:,} bytes")
            end = at + _PACKET_HEADER + length
            if end > len(held):
                break
            done += [held[at : at + _PACKET_HEADER], rewritten(held[at + _PACKET_HEADER : end])]
            at = end
        writing.write(b"".join(done))
        if not more:
            break
    if at != len(held):
        raise ReleaseError(f"{source}: damaged: it ends within a packet")
