"""tailtrim-dpdk of this checkout as a process, and captures that it reads and writes."""

from __future__ import annotations

import fcntl
import json
import queue
import signal
import struct
import subprocess
import threading
import time
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from tools import LIBDPDK, PKG_CONFIG, need

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
_NS = 1_000_000_000
#: Bytes on the wire without FCS, and the length of what a test knows them by.
FRAME, HEADERS = 60, 14


@cache
def program() -> str:
    """Build it, or skip loudly where DPDK is not installed."""
    need(PKG_CONFIG, LIBDPDK)
    place = ROOT / "target" / "dpdk"
    place.mkdir(parents=True, exist_ok=True)
    # Tests run side by side.
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return built(place)


def built(place: Path, *before: str) -> str:
    """Build it in a folder, by a compiler that warns of nothing."""
    command = (*before, "make", "--silent", "-C", str(ROOT / "dpdk"), "CC=gcc", f"OUT={place}")
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, ""), made.stderr
    return str(place / "tailtrim-dpdk")


class Dpdk:
    """A verb that runs, until the context is left."""

    def __init__(
        self,
        verb: str,
        *words: str,
        before: Sequence[str] = (),
        given: int | IO[bytes] = subprocess.PIPE,
        ready: bool = True,
        path: str | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*before, path or program(), verb, *words],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if ready:
            self.ready()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._events.put(json.loads(line))
        self._events.put(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self._reader.join()
        # Closes its pipes.
        self.process.communicate()

    def next(self, kind: str) -> dict[str, Any]:
        """Return the next event of a kind."""
        while (event := self._events.get(timeout=30)) is not None:
            if event["event"] == kind:
                return event
        assert self.process.stderr
        raise AssertionError(self.process.stderr.read().decode())

    def ready(self) -> dict[str, Any]:
        return self.next("ready")

    def until(self, packets: int) -> None:
        """Wait until so many packets are told."""
        until_s = time.monotonic() + 30
        while self.next("progress")["packets"] < packets:
            assert time.monotonic() < until_s

    def give(self, data: bytes) -> None:
        """Write all of its standard input."""
        assert self.process.stdin
        with self.process.stdin as given:
            given.write(data)
        self.process.stdin = None

    def stop(self) -> dict[str, Any]:
        """End it, and return its result."""
        self.process.send_signal(signal.SIGINT)
        return self.result()

    def result(self) -> dict[str, Any]:
        result = self.next("result")
        assert self.process.wait(30) == 0
        return result


def frame(number: int, length: int = FRAME) -> bytes:
    """Return a frame that has its number behind the addresses."""
    head = bytes.fromhex("020000000002 020000000001 88b5") + struct.pack(">Q", number)
    return head + bytes(length - len(head))


def numbers(frames: list[bytes]) -> list[int]:
    return [struct.unpack(">Q", one[HEADERS : HEADERS + 8])[0] for one in frames]


def capture(frames: list[tuple[int, bytes]], kept: int = 96) -> bytes:
    """Return a capture of frames with their times in ns; of each so many bytes are kept."""
    out = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, kept, 1)
    for at_ns, one in frames:
        out += struct.pack("<IIII", at_ns // _NS, at_ns % _NS, len(one[:kept]), len(one))
        out += one[:kept]
    return out


def written(path: Path, frames: list[tuple[int, bytes]], kept: int = 96) -> Path:
    path.write_bytes(capture(frames, kept))
    return path


def read(path: Path) -> list[tuple[int, bytes]]:
    """Return times in ns and frames of a capture, which may have microseconds only."""
    data = path.read_bytes()
    unit = {0xA1B23C4D: 1, 0xA1B2C3D4: 1_000}[struct.unpack("<I", data[:4])[0]]
    frames, place = [], 24
    while place < len(data):
        seconds, part, kept, _ = struct.unpack("<IIII", data[place : place + 16])
        frames.append((seconds * _NS + part * unit, data[place + 16 : place + 16 + kept]))
        place += 16 + kept
    return frames
