"""When a device under test is ready: when packets pass it, not after some time."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tailtrim.errors import RunError
from tailtrim.testbed.local import MACS, SEND, SINK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.testbed.local import Testbed
    from tailtrim.testbed.node import Node

_ALL = 0x0003  # ETH_P_ALL
#: So many have to pass one after the other: the first may find caches and neighbours cold.
_IN_A_ROW = 5
_WAIT_S = 0.1

#: By version of IP: addresses set aside for benchmarks (RFC 2544, RFC 5180).
SOURCE_IP = {4: "198.18.0.1", 6: "2001:2::1"}
DESTINATION_IP = {4: "198.19.0.1", 6: "2001:2:0:1::1"}
SOURCE_PORT, DESTINATION_PORT = 10_000, 20_000


def wait_until_ready(
    testbed: Testbed, mac: str, ip: int, alive: Callable[[], None], timeout_s: float
) -> None:
    """Send probes until some pass the device in a row.

    Args:
        testbed: where.
        mac: where to.
        ip: version of IP.
        alive: raises when the device has died.
        timeout_s: how long to try.

    Raises:
        RunError: nothing passes.

    """
    with ExitStack() as stack:
        sender = stack.enter_context(_socket(testbed.loadgen, SEND))
        sink = stack.enter_context(_socket(testbed.loadgen, SINK))
        until_s = time.monotonic() + timeout_s
        number, passed = 0, 0
        while passed < _IN_A_ROW:
            alive()
            if time.monotonic() > until_s:
                message = (
                    f"nothing passes the device under test: {number} probes in {timeout_s:g} s"
                )
                raise RunError(message)
            number += 1
            payload = f"tailtrim ready? {number:08d}".encode()
            try:
                sender.send(_frame(payload, mac, ip))
            except OSError as error:
                raise RunError(f"{SEND}: {error.strerror}") from error
            passed = passed + 1 if _arrives(sink, payload) else 0


def _arrives(sink: socket.socket, payload: bytes) -> bool:
    until_s = time.monotonic() + _WAIT_S
    while (left_s := until_s - time.monotonic()) > 0:
        sink.settimeout(left_s)
        try:
            if payload in sink.recv(2048):
                return True
        except TimeoutError:
            return False
        except OSError as error:
            raise RunError(f"{SINK}: {error.strerror}") from error
    return False


def _socket(node: Node, interface: str) -> socket.socket:
    """Open a raw socket in a node; it stays there."""

    def opened() -> socket.socket:
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        try:
            raw.bind((interface, _ALL))
        except OSError:
            raw.close()
            raise
        return raw

    try:
        return node.inside(opened)
    except OSError as error:
        raise RunError(f"{node.role}: {interface}: {error.strerror}") from error


def _frame(payload: bytes, mac: str, ip: int) -> bytes:
    """Build a frame like those of the load, so that it goes the same way."""
    family = socket.AF_INET if ip == 4 else socket.AF_INET6  # noqa: PLR2004 - IPv4
    addresses = b"".join(socket.inet_pton(family, end[ip]) for end in (SOURCE_IP, DESTINATION_IP))
    length = 8 + len(payload)
    udp = struct.pack("!HHHH", SOURCE_PORT, DESTINATION_PORT, length, 0) + payload
    pseudo = addresses + struct.pack("!HH", socket.IPPROTO_UDP, length)
    udp = udp[:6] + struct.pack("!H", _checksum(pseudo + udp)) + udp[8:]
    macs = bytes.fromhex((mac + MACS[SEND]).replace(":", ""))
    if family == socket.AF_INET6:
        return macs + struct.pack("!HIHBB", 0x86DD, 6 << 28, length, 17, 64) + addresses + udp
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, 17, 0) + addresses
    header = header[:10] + struct.pack("!H", _checksum(header)) + header[12:]
    return macs + b"\x08\x00" + header + udp


def _checksum(data: bytes) -> int:
    """Return the checksum of RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:  # noqa: PLR2004 - 16 bits
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
