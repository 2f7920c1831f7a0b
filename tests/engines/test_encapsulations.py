"""Captures of which one has encapsulations that the other does not have."""

from __future__ import annotations

import struct
import threading
from typing import TYPE_CHECKING

import pytest
from command_line import tailtrim as run
from random_captures import ETHERNET, plain, udp, write

import tailtrim
from tailtrim.analysis import engines
from tailtrim.analysis.decode import decode, follow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKETS = 2_000
ENTERED = [(1_700_000_000 * 10**9 + number * 100_000, number) for number in range(PACKETS)]
LEFT = [(stamp_ns + 5_000 + number % 100, number) for stamp_ns, number in ENTERED]


def gtp_u(packet: bytes) -> bytes:
    """Return a frame with the packet in GTP-U."""
    return plain(udp(2152, 2152, struct.pack(">BBHI", 0x30, 0xFF, len(packet), 1) + packet))


def vxlan(packet: bytes) -> bytes:
    """Return a frame with the packet in VXLAN on the port of Linux."""
    return plain(udp(55_555, 8472, struct.pack(">II", 0x08000000, 42 << 8) + plain(packet)))


def mpls(packet: bytes) -> bytes:
    """Return a frame with the packet behind two labels."""
    return (
        ETHERNET + b"\x88\x47" + struct.pack(">II", 16 << 12 | 64, 17 << 12 | 1 << 8 | 64) + packet
    )


def tagged(packet: bytes) -> bytes:
    """Return a frame with the packet behind two VLAN tags."""
    return ETHERNET + bytes.fromhex("88a80005 81000006 0800") + packet


@pytest.mark.parametrize("frame_of", [gtp_u, vxlan, mpls])
def test_innermost_packets_match(tmp_path: Path, frame_of: Callable[[bytes], bytes]) -> None:
    wrapped = write(tmp_path / "in.pcap", ENTERED, frame_of=frame_of)
    bare = write(tmp_path / "out.pcap", LEFT)
    summary = tailtrim.analyze(wrapped, bare, masks=["tunnel"], skip_s=0).summary
    assert (summary.samples, summary.ingress.lost, summary.egress.unmatched) == (PACKETS, 0, 0)
    assert tailtrim.analyze(wrapped, bare, skip_s=0).summary.samples == 0
    # The other way round.
    bare = write(tmp_path / "bare.pcap", ENTERED)
    wrapped = write(tmp_path / "wrapped.pcap", LEFT, frame_of=frame_of)
    assert tailtrim.analyze(bare, wrapped, masks=["tunnel"], skip_s=0).summary.samples == PACKETS


def test_decoding_counts_encapsulations(tmp_path: Path) -> None:
    captures = [write(tmp_path / "plain.pcap", ENTERED)]
    captures += [
        write(tmp_path / f"{number}.pcap", LEFT, frame_of=frame_of)
        for number, frame_of in enumerate((vxlan, mpls, tagged))
    ]
    decoded = decode(captures, tmp_path / "decoded", masks=["tunnel"])
    counts = [captured.encapsulations() for captured in decoded.captures]
    assert counts == [{}, {"VXLAN": PACKETS}, {"MPLS": PACKETS}, {"VLAN": PACKETS}]
    assert "encapsulations" not in decoded.captures[0].facts


def test_files_of_a_capture_add_up(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, first in enumerate((0, 300)):
        part = ENTERED[first : first + 300]
        write(tmp_path / "in" / f"{number}.pcap", part, frame_of=(mpls, vxlan)[number])
    write(tmp_path / "in" / "2.pcap", ENTERED[600:650], frame_of=mpls)
    stop = threading.Event()
    stop.set()
    decoded = follow([tmp_path / "in"], tmp_path / "decoded", stop=stop)
    assert decoded.captures[0].encapsulations() == {"MPLS": 350, "VXLAN": 300}


def test_an_engine_matches_innermost_packets(tmp_path: Path) -> None:
    captures = [
        write(tmp_path / "in.pcap", ENTERED, frame_of=vxlan),
        write(tmp_path / "out.pcap", LEFT, frame_of=mpls),
    ]
    decoded = decode(captures, tmp_path / "decoded", masks=["tunnel"])
    with engines.connect("duckdb", engines.EngineOptions()) as engine:
        assert engines.analyze(engine, decoded, skip_s=0).summary.samples == PACKETS


def test_decode_says_what_was_not_stripped(tmp_path: Path) -> None:
    captures = [
        write(tmp_path / "in.pcap", ENTERED[:10], frame_of=mpls),
        write(tmp_path / "out.pcap", LEFT[:7], frame_of=tagged),
    ]
    told = run("decode", *captures, "--out", tmp_path / "one").stdout
    assert "MPLS 10 (signed: outer packets; inner ones: --mask tunnel)" in told
    assert "VLAN 7 (signed: innermost packets)" in told
    told = run("decode", *captures, "--out", tmp_path / "two", "--mask", "tunnel").stdout
    assert "MPLS 10 (signed: innermost packets)" in told
