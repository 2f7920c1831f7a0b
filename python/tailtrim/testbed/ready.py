"""When a device under test is ready: when packets pass it, not after some time."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import RunError
from tailtrim.testbed.local import MACS, SEND, SINK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.testbed.local import Testbed
    from tailtrim.testbed.node import Node

_NET = 0x40000000  # CLONE_NEWNET
_ALL = 0x0003  # ETH_P_ALL
#: So many have to pass one after the other: the first may find caches and neighbours cold.
_IN_A_ROW = 5
_WAIT_S = 0.1

SOURCE_IP, DESTINATION_IP = "198.18.0.1", "198.19.0.1"
SOURCE_PORT, DESTINATION_PORT = 10_000, 20_000


def wait_until_ready(
    testbed: Testbed, mac: str, alive: Callable[[], None], timeout_s: float
) -> None:
    """Send probes until some pass the device in a row.

    Args:
        testbed: where.
        mac: where to.
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
            sender.send(_frame(payload, mac))
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
    return False


def _socket(node: Node, interface: str) -> socket.socket:
    """Open a raw socket in another namespace: a thread goes there, and leaves it behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    opened: list[socket.socket] = []
    problems: list[OSError] = []

    def go() -> None:
        try:
            with Path(node.path).open("rb") as namespace:
                entered = libc.setns(namespace.fileno(), _NET) == 0
            if not entered:
                number = ctypes.get_errno()
                problems.append(OSError(number, os.strerror(number)))
                return
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
            raw.bind((interface, _ALL))
            opened.append(raw)
        except OSError as error:
            problems.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    if problems:
        raise RunError(f"{node.role}: {interface}: {problems[0]}") from problems[0]
    return opened[0]


def _frame(payload: bytes, mac: str) -> bytes:
    """Build a frame like those of the load, so that it goes the same way."""
    udp = struct.pack("!HHHH", SOURCE_PORT, DESTINATION_PORT, 8 + len(payload), 0) + payload
    addresses = socket.inet_aton(SOURCE_IP) + socket.inet_aton(DESTINATION_IP)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + addresses
    words = sum(struct.unpack("!10H", header))
    words = (words & 0xFFFF) + (words >> 16)
    checksum = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    header = header[:10] + struct.pack("!H", checksum) + header[12:]
    macs = bytes.fromhex((mac + MACS[SEND]).replace(":", ""))
    return macs + b"\x08\x00" + header + udp
