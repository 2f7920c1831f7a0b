"""Captures that hold both sides of a device, in formats that tell interfaces."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

START_NS = 1_700_000_000_000_000_000
STEP_NS = 100_000
LATENCY_NS = 5_000


def datagram(number: int, ttl: int) -> bytes:
    """Return an IPv4 packet of UDP that carries a number."""
    ends = bytes([10, 0, 0, 1, 10, 0, 1, 1])
    header = struct.pack(">BBHHHBBH", 0x45, 0, 46, number, 0, ttl, 17, 0)
    return header + ends + struct.pack(">HHHHIQH", 1000, 2000, 26, 0, number, 0, 0)


def _passed(count: int) -> list[tuple[int, int, bytes]]:
    """Return stamp, side and packet of each packet at each side, in order."""
    entered = [(START_NS + n * STEP_NS, 0, datagram(n, 64)) for n in range(count)]
    left = [
        (stamp_ns + LATENCY_NS, 1, datagram(n, 63)) for n, (stamp_ns, _, _) in enumerate(entered)
    ]
    return sorted(entered + left)


def _ethernet(packet: bytes) -> bytes:
    return bytes.fromhex("020000000001020000000002") + b"\x08\0" + packet


def pcapng(path: Path, count: int, names: tuple[str, ...] = ("eth1", "eth2")) -> Path:
    """Write a pcapng of two interfaces, and a third one whose link type is vsock."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    def packet(stamp_ns: int, interface: int, frame: bytes) -> bytes:
        head = (interface, stamp_ns >> 32, stamp_ns & 0xFFFFFFFF, len(frame), len(frame))
        return block(6, struct.pack("<IIIII", *head) + frame)

    with path.open("wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        for link_type, name in zip((1, 1, 271), (*names, "vsockmon0"), strict=True):
            told = name.encode()
            body = struct.pack("<HHIHH", link_type, 0, 0, 2, len(told)) + told
            body += bytes(-len(body) % 4) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
            file.write(block(1, body))
        for stamp_ns, side, data in _passed(count):
            file.write(packet(stamp_ns, side, _ethernet(data)))
        file.write(packet(START_NS, 2, bytes(44)))
    return path


def any_device(path: Path, count: int) -> Path:
    """Write what tcpdump -i any records: received by interface 2, sent by 3; and replies."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 276))

        def write(stamp_ns: int, interface: int, kind: int, packet: bytes) -> None:
            frame = struct.pack(">HHIHBB8s", 0x0800, 0, interface, 1, kind, 6, b"\2") + packet
            head = (*divmod(stamp_ns, 10**9), len(frame), len(frame))
            file.write(struct.pack("<IIII", *head) + frame)

        for stamp_ns, side, packet in _passed(count):
            write(stamp_ns, 2 + side, 4 * side, packet)
            # In the other direction.
            write(stamp_ns, 2 + side, 4 - 4 * side, datagram(60_000 + side, 64))
    return path


def erf(path: Path, count: int) -> Path:
    """Write ERF of interfaces 0 and 1."""
    with path.open("wb") as file:
        for stamp_ns, side, packet in _passed(count):
            frame = _ethernet(packet)
            body = b"\0\0" + frame + bytes(4)
            body += bytes(-len(body) % 8)
            seconds, rest_ns = divmod(stamp_ns, 10**9)
            file.write(struct.pack("<II", (rest_ns << 32) // 10**9, seconds))
            file.write(struct.pack(">BBHHH", 2, 4 | side, 16 + len(body), 0, len(frame) + 4) + body)
    return path
