"""Run directories of packets whose latencies are given."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import tailtrim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FRAME = bytes.fromhex("0200000000010200000000020800") + bytes.fromhex(
    "4500002e0000000040110000010203040506070800350035001a0000"
)


def write_pcap(path: Path, frames: Sequence[tuple[int, int]]) -> Path:
    """Write frames (stamp in ns, number that tells them apart) with nanosecond stamps."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for stamp_ns, number in frames:
            frame = FRAME + number.to_bytes(18, "big")
            file.write(struct.pack("<IIII", *divmod(stamp_ns, 10**9), len(frame), len(frame)))
            file.write(frame)
    return path


def run_of(  # noqa: PLR0913 - what differs from test to test
    folder: Path,
    latencies_ns: Sequence[int | None],
    *,
    name: str = "synthetic",
    capture: str = "in.pcap",
    at: Callable[[int], int] = lambda number: number * 100_000,
    copied: int = 0,
) -> tailtrim.RunDirectory:
    """Make a run directory of packets 100 µs apart, given their latencies (None: lost)."""
    sent = [(10**9 + at(number), number) for number in range(len(latencies_ns))]
    received = [
        (stamp + latency, number)
        for (stamp, number), latency in zip(sent, latencies_ns, strict=True)
        if latency is not None
    ]
    # The device sends the first packets twice.
    received += [(stamp + 1_000, number) for stamp, number in received[:copied]]
    place = folder / name
    tailtrim.analyze(
        write_pcap(folder / capture, sent),
        write_pcap(folder / "out.pcap", sorted(received)),
        skip_s=0,
        allow_negative=True,
        out=place,
    )
    return tailtrim.RunDirectory(place)
