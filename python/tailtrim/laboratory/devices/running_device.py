"""A device that runs, from its start to its end; it is ready when packets pass it."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, Self

from tailtrim.errors import RunError
from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.laboratory.nodes.ports import received
from tailtrim.laboratory.nodes.testbed import (
    DESTINATION_IP,
    DESTINATION_PORT,
    SOURCE_IP,
    SOURCE_PORT,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tailtrim.laboratory.devices.device import InlineDevice
    from tailtrim.laboratory.nodes.node import Frames
    from tailtrim.laboratory.nodes.ports import Port
    from tailtrim.laboratory.nodes.testbed import Forwarding

#: So many have to pass one after the other: the first may find caches and neighbours cold.
_IN_A_ROW = 5
_WAIT_S = 0.1


class RunningDevice(Protocol):
    """A device that packets pass."""

    @property
    def pid(self) -> int:
        """The process of a device that is one.

        Raises:
            RunError: the device is not a process.

        """

    def check(self) -> None:
        """Make sure that the device runs.

        Raises:
            RunError: it has died.

        """

    def stop(self) -> dict[str, Any] | None:
        """End the run; return what the device counted in it, if it counts."""


class DeviceUnderTest:
    """A device that packets pass, for as long as the context lasts."""

    def __init__(
        self, device: InlineDevice, at: Forwarding, *, ip: int = 4, ready_s: float = 30.0
    ) -> None:
        """Start the device and wait until packets pass it.

        Args:
            device: which, with its options.
            at: where.
            ip: version of IP that passes it.
            ready_s: how long it may take until packets pass.

        Raises:
            HostError: its node lacks what it takes.
            RunError: it died, or nothing passes it.

        """
        self._name, self._node = device.preset, at.dut
        with ExitStack() as stack:
            device.require(at.dut)
            self._process = device.start(at, ip, stack)
            try:
                wait_until_ready(at, device.destination(at), ip, self.check, ready_s)
            except RunError as error:
                program = None if isinstance(self._process, Agent) else self._process
                if program is not None and program.alive and (told := program.last_words()):
                    error.add_note(f"it printed: {told}")
                raise
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Return the device itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._stack.close()

    @property
    def pid(self) -> int:
        """The process of a device that is one."""
        if self._process is None:
            raise RunError(f"the device under test ({self._name}) is not a process")
        return self._process.pid

    def check(self) -> None:
        """Make sure that the device runs.

        Raises:
            RunError: it has died.

        """
        if self._process is None:
            return
        if isinstance(self._process, Agent):
            if not self._process.poll():
                self._process.result(1)
                raise RunError(f"the device under test ({self._name}) ended before the run did")
        elif not self._process.alive:
            told = self._process.last_words()
            if self._node.counted().get("oom_kill"):
                told = "killed by the kernel, its memory went over memory.max"
            message = f"the device under test ({self._name}) died"
            raise RunError(f"{message}: {told}" if told else message)

    def stop(self) -> dict[str, Any] | None:
        """Stop the reference forwarder and return what it counted; nothing of other devices."""
        return self._process.stop() if isinstance(self._process, Agent) else None


def wait_until_ready(
    at: Forwarding, target: Port, ip: int, alive: Callable[[], None], timeout_s: float
) -> None:
    """Send probes until some pass the device in a row.

    Args:
        at: where.
        target: the port that they are addressed to.
        ip: version of IP.
        alive: raises when the device has died.
        timeout_s: how long to try.

    Raises:
        RunError: nothing passes.

    """
    loadgen = at.loadgen
    taps = {"first": at.tap_in, "second": at.tap_out}
    before = {which: received(tap) for which, tap in taps.items()}
    with loadgen.frames(at.send.name) as sender, loadgen.frames(at.sink.name) as sink:
        until_s = time.monotonic() + timeout_s
        number, passed = 0, 0
        while passed < _IN_A_ROW:
            alive()
            if time.monotonic() > until_s:
                # Says which node was missing: the load generator, or the device.
                came = {which: received(tap) - before[which] for which, tap in taps.items()}
                told = [f"{count} frames came to the {which} tap" for which, count in came.items()]
                raise RunError(
                    f"nothing passes the device under test: {number} probes in {timeout_s:g} s,"
                    f" {', '.join(told)}"
                )
            number += 1
            payload = f"tailtrim ready? {number:08d}".encode()
            sender.send(_frame(payload, target.mac, at.send.mac, ip))
            passed = passed + 1 if _arrives(sink, payload) else 0


def _arrives(sink: Frames, payload: bytes) -> bool:
    until_s = time.monotonic() + _WAIT_S
    while (left_s := until_s - time.monotonic()) > 0:
        frame = sink.receive(left_s)
        if frame is None:
            return False
        if payload in frame:
            return True
    return False


def _frame(payload: bytes, target_mac: str, source_mac: str, ip: int) -> bytes:
    """Build a frame like those of the load, so that it goes the same way."""
    family = socket.AF_INET if ip == 4 else socket.AF_INET6  # noqa: PLR2004 - IPv4
    addresses = b"".join(socket.inet_pton(family, end[ip]) for end in (SOURCE_IP, DESTINATION_IP))
    length = 8 + len(payload)
    udp = struct.pack("!HHHH", SOURCE_PORT, DESTINATION_PORT, length, 0) + payload
    pseudo = addresses + struct.pack("!HH", socket.IPPROTO_UDP, length)
    udp = udp[:6] + struct.pack("!H", _checksum(pseudo + udp)) + udp[8:]
    macs = bytes.fromhex((target_mac + source_mac).replace(":", ""))
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
