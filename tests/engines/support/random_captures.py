"""Pairs of captures with everything that happens to packets, from a seed."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

START_NS = 1_700_000_000_000_000_000
SECOND_NS = 10**9


@dataclass(frozen=True, slots=True)
class Trouble:
    """Rates of each kind of trouble, and limits for the error of stamps."""

    packets: int = 400
    step_ns: int = 20_000_000
    lost: float = 0.0
    copied: float = 0.0
    reused: float = 0.0
    alien: float = 0.0
    tied: float = 0.0
    late: float = 0.0
    negative_ns: int = 0
    disorder_ns: int = 0


ETHERNET = bytes.fromhex("020000000001020000000002")


def plain(packet: bytes) -> bytes:
    """Return an Ethernet frame with an IPv4 packet."""
    return ETHERNET + b"\x08\x00" + packet


def udp(source: int, destination: int, payload: bytes) -> bytes:
    """Return UDP in IPv4."""
    addresses = b"\n\0\0\1", b"\n\0\0\2"
    packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 7, 0, 64, 17, 0, *addresses)
    return packet + struct.pack(">HHHH", source, destination, 8 + len(payload), 0) + payload


def write(
    path: Path,
    packets: list[tuple[int, int]],
    *,
    flows: int | None = None,
    frame_of: Callable[[bytes], bytes] = plain,
) -> Path:
    """Write a nanosecond pcap of UDP packets (stamp, number), each in the frame made of it.

    With flows they are probes of the generator, but for each fifth, which says nothing of itself.
    """
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1))
        for stamp_ns, number in packets:
            if flows is None or number % 5 == 0:
                payload = struct.pack(">IIQH", number, 0, 0, 0)
            else:
                payload = struct.pack(">2sHHIQ", b"t1", number % flows, 0, number, 0)
            frame = frame_of(udp(1000, 2000, payload))
            seconds, nanoseconds = divmod(stamp_ns, SECOND_NS)
            file.write(struct.pack("<IIII", seconds, nanoseconds, len(frame), len(frame)))
            file.write(frame)
    return path


def pair(folder: Path, seed: int, trouble: Trouble) -> tuple[Path, Path]:
    """Write an ingress and an egress capture."""
    ingress, egress = packets(seed, trouble)
    folder.mkdir(parents=True, exist_ok=True)
    return (
        write(folder / f"{seed}-ingress.pcap", ingress),
        write(folder / f"{seed}-egress.pcap", egress),
    )


def packets(seed: int, trouble: Trouble) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the packets of both captures in the order of the file."""
    draw = random.Random(seed)  # noqa: S311 - reproducible, not secret
    ingress: list[tuple[int, int]] = []
    egress: list[tuple[int, int]] = []
    now_ns = START_NS
    for number in range(trouble.packets):
        now_ns += 0 if draw.random() < trouble.tied else draw.randrange(1, trouble.step_ns)
        identity = number
        if ingress and draw.random() < trouble.reused:
            identity = draw.choice(ingress[-50:])[1]
        ingress.append((now_ns, identity))
        if draw.random() < trouble.lost:
            continue
        latency_ns = draw.choice((3_000, 4_000, 5_000, draw.randrange(1, 100_000)))
        if draw.random() < trouble.late:
            latency_ns = draw.randrange(1, 3 * SECOND_NS)
        if trouble.negative_ns:
            latency_ns -= draw.randrange(trouble.negative_ns)
        egress.append((now_ns + latency_ns, identity))
        while draw.random() < trouble.copied:
            egress.append((now_ns + latency_ns + draw.randrange(2 * SECOND_NS), identity))
        if draw.random() < trouble.alien:
            egress.append((now_ns + draw.randrange(10_000), 1_000_000 + number))
    return _disordered(draw, ingress, trouble), _disordered(draw, egress, trouble)


def _disordered(
    draw: random.Random, packets: list[tuple[int, int]], trouble: Trouble
) -> list[tuple[int, int]]:
    """Sort by stamp, but for some that are recorded later than they should be."""
    late = {
        packet: draw.randrange(trouble.disorder_ns)
        if trouble.disorder_ns and draw.random() < 0.1
        else 0
        for packet in packets
    }
    return sorted(packets, key=lambda packet: packet[0] + late[packet])
