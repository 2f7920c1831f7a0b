"""Captures of a device that forwards packets, long enough to be matched in stretches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

#: Each begins with 32,000 packets before it.
PACKETS = 64_000
FRAMES = 400_000
HEADER = bytes.fromhex("4d3cb2a1020004000000000000000000ffff000001000000")


def write(path: Path, stamps_ns: Any, numbers: Any) -> Path:
    """Write frames of 64 bytes."""
    seconds, rest = np.divmod(stamps_ns, 10**9)
    kinds = [(name, "<u4") for name in ("seconds", "ns", "kept", "length")]
    frames = np.zeros(len(numbers), [*kinds, ("macs", "V12"), ("type", ">u2"), ("body", ">u8", 6)])
    frames["seconds"], frames["ns"] = seconds, rest
    frames["kept"] = frames["length"] = 62
    frames["type"] = 0x88B5
    frames["body"][:, 5] = numbers
    path.write_bytes(HEADER + frames.tobytes())
    return path


def captures(
    folder: Path,
    *,
    lost: float = 0.0,
    again: float = 0.0,
    foreign: float = 0.0,
    frames: int = FRAMES,
) -> tuple[Path, Path]:
    """Write what enters and leaves a device that loses packets.

    Some packets come again, and among those that leave are foreign ones.
    """
    rng = np.random.default_rng(11)
    numbers = np.arange(frames)
    repeated = rng.random(frames) < again
    numbers[repeated] = rng.integers(0, frames, repeated.sum())
    entered_ns = 10**18 + np.cumsum(rng.integers(5_000, 15_000, frames))
    left_ns = entered_ns + 3_000 + rng.exponential(2_000, frames).astype(np.int64)
    left_ns[rng.random(frames) < 1e-4] += 400_000
    order = np.argsort(left_ns, kind="stable")
    order = order[rng.random(frames) >= lost]
    leaving = numbers.copy()
    others = np.flatnonzero(rng.random(frames) < foreign)
    leaving[others] += frames
    return (
        write(folder / "ingress.pcap", entered_ns, numbers),
        write(folder / "egress.pcap", left_ns[order], leaving[order]),
    )
