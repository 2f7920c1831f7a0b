"""Round trips in one capture: requests matched with their replies by protocol."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tailtrim.analysis.exchanges import PROTOCOLS, analyze_exchanges, count_exchanges
from tailtrim.cli.application import app
from tailtrim.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
T0, COUNT, APART_NS = 1_700_000_000_000_000_000, 500, 1_000_000


def capture(path: Path, packets: Iterable[tuple[int, bytes]]) -> Path:
    """Write packets with their stamps in ns, in order of time."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for stamp_ns, frame in sorted(packets):
            file.write(struct.pack("<IIII", *divmod(stamp_ns, 10**9), len(frame), len(frame)))
            file.write(frame)
    return path


def ipv4(protocol: int, payload: bytes, *, reply: bool) -> bytes:
    """Return a frame between client and server."""
    addresses = SERVER + CLIENT if reply else CLIENT + SERVER
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0)
    return bytes(12) + b"\x08\x00" + head + addresses + payload


def ipv6(protocol: int, payload: bytes, *, reply: bool) -> bytes:
    """Return a frame between the same by IPv6, within a VLAN."""
    ends = [bytes(12) + SERVER, bytes(12) + CLIENT]
    head = struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64)
    tagged = bytes(12) + b"\x81\x00\x00\x05\x86\xdd"
    return tagged + head + b"".join(ends if reply else reversed(ends)) + payload


def udp(port: int, payload: bytes, *, reply: bool, client: int = 40_000) -> bytes:
    """Return a datagram to or from a port of the server."""
    ports = (port, client) if reply else (client, port)
    return ipv4(17, struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload, reply=reply)


def tcp(  # noqa: PLR0913 - the fields of a segment
    flags: int,
    *,
    reply: bool,
    seq: int = 0,
    ack: int = 0,
    stamps: tuple[int, int] | None = None,
    data: bytes = b"",
) -> bytes:
    """Return a segment to or from port 80 of the server."""
    options = b"" if stamps is None else b"\x01\x01\x08\x0a" + struct.pack(">II", *stamps)
    ports = (80, 40_000) if reply else (40_000, 80)
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(">HHIIBBHHH", *ports, seq, ack, offset, flags, 512, 0, 0)
    return ipv4(6, head + options + data, reply=reply)


def message(protocol: str, number: int, *, reply: bool) -> bytes:
    """Return the request or the reply of this number."""
    # Sequence numbers and timestamps go beyond 2³².
    large = 0xFFFFFF00 + number & 0xFFFFFFFF
    echo = (0 if reply else 8, ipv4, 1) if number % 2 else (129 if reply else 128, ipv6, 58)
    kind, packet, ip_protocol = echo
    own = struct.pack(">I", number + 1_000 * reply) + bytes(20)
    messages = {
        "icmp": lambda: packet(
            ip_protocol, struct.pack(">BBHHH", kind, 0, 0, 7, number) + bytes(32), reply=reply
        ),
        "udp-echo": lambda: udp(7, struct.pack(">Q", number) + bytes(40), reply=reply),
        "stamp": lambda: udp(862, own + struct.pack(">I", number) + bytes(16), reply=reply),
        "dns": lambda: udp(
            53, struct.pack(">HH", number, 0x8180 if reply else 0x0100) + bytes(20), reply=reply
        ),
        "tcp-handshake": lambda: (
            tcp(0x12, reply=True, ack=(large + 1) & 0xFFFFFFFF)
            if reply
            else tcp(0x02, reply=False, seq=large)
        ),
        "tcp-timestamp": lambda: (
            tcp(0x10, reply=True, stamps=(5, large))
            if reply
            else tcp(0x18, reply=False, stamps=(large, 5), data=b"GET /")
        ),
    }
    return messages[protocol]()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_round_trips_of_each_protocol(tmp_path: Path, protocol: str) -> None:
    draw = random.Random(protocol)  # noqa: S311 - latencies, not secrets
    latencies = [draw.randint(1_000, 400_000) for _ in range(COUNT)]
    lost = {*draw.sample(range(COUNT - 10), 20)}
    at = [T0 + number * APART_NS for number in range(COUNT)]
    packets = [(at[n], message(protocol, n, reply=False)) for n in range(COUNT)]
    replied = [n for n in range(COUNT) if n not in lost]
    packets += [(at[n] + latencies[n], message(protocol, n, reply=True)) for n in replied]
    # Traffic of others, and TCP segments that repeat a timestamp: none of them counts.
    others = [(stamp + 1, udp(9, bytes(20), reply=False)) for stamp in at[:30]]
    analysis, found = analyze_exchanges(
        capture(tmp_path / "one.pcap", packets + others), keep_samples=True
    )
    assert found.commonest == protocol
    assert found.messages[protocol] == (COUNT, COUNT - 20)
    assert (found.packets, found.others) == (2 * COUNT - 20 + 30, 30)
    assert analysis.summary.ingress.lost == 20
    samples = analysis.samples.to_pydict()
    measured = [
        out - into for into, out in zip(samples["ingress_ns"], samples["egress_ns"], strict=True)
    ]
    assert sorted(measured) == sorted(latencies[n] for n in replied)


def test_the_first_segment_of_a_timestamp_counts(tmp_path: Path) -> None:
    packets = []
    for n in range(100):
        at = T0 + n * APART_NS
        request, reply = (message("tcp-timestamp", n, reply=part) for part in (False, True))
        packets += [(at, request), (at + 20, request), (at + 5_000, reply), (at + 9_000, reply)]
    analysis, found = analyze_exchanges(capture(tmp_path / "one.pcap", packets))
    assert found.repeated == 200
    latency = analysis.summary.latency_ns
    assert (analysis.summary.samples, latency.min, latency.max) == (100, 5_000, 5_000)


def test_packets_add_up(tmp_path: Path) -> None:
    packets = [
        (T0 + n, message(protocol, n, reply=n % 2 == 1))
        for n, protocol in enumerate(PROTOCOLS * 20)
    ]
    found = count_exchanges(capture(tmp_path / "mixed.pcap", [*packets, (T0, bytes(60))]))
    messages = sum(map(sum, found.messages.values()))
    assert messages + found.repeated + found.others + found.unstamped == found.packets == 121


def test_a_retransmitted_request_is_ambiguous(tmp_path: Path) -> None:
    syn = message("tcp-handshake", 1, reply=False)
    packets = [(T0, syn), (T0 + 10, syn), (T0 + 20, message("tcp-handshake", 1, reply=True))]
    analysis, _ = analyze_exchanges(capture(tmp_path / "one.pcap", packets))
    assert analysis.summary.ingress.duplicate == 2
    assert analysis.summary.samples == 0


def test_a_capture_without_replies(tmp_path: Path) -> None:
    path = capture(tmp_path / "one.pcap", [(T0, message("icmp", 1, reply=False))])
    with pytest.raises(CaptureError, match=r"icmp: 1 requests, 0 replies; expected requests and"):
        analyze_exchanges(path)


def test_the_command(tmp_path: Path) -> None:
    packets = [
        (T0 + n * APART_NS + 7_000 * reply, message("icmp", n, reply=bool(reply)))
        for n in range(50)
        for reply in (0, 1)
    ]
    path = str(capture(tmp_path / "ping.pcap", packets))
    out = str(tmp_path / "run")
    run = CliRunner().invoke
    shown = run(app, ["analyze", path, "--round-trip", "--skip", "0", "--out", out])
    assert shown.exit_code == 0
    assert "icmp: 50 requests, 50 replies" in shown.output
    assert "7.00 µs" in shown.output
    wrong = run(app, ["analyze", path, path, "--round-trip"])
    assert "within one capture" in wrong.output
    assert "of --round-trip" in run(app, ["analyze", path, "--protocol", "icmp"]).output
