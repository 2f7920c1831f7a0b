"""Frames byte by byte, with faults wherever a case wants them."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

UDP = 17
IPV4, IPV6, VLAN = b"\x08\x00", b"\x86\xdd", b"\x81\x00"


def ones(data: bytes) -> int:
    """Return the sum of the 16-bit words with carries (RFC 1071)."""
    total: int = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksum(data: bytes) -> int:
    """Return the checksum of data in which it is zero."""
    return ~ones(data) & 0xFFFF


@dataclass(frozen=True, kw_only=True, slots=True)
class Datagram:
    """A UDP datagram in a frame. Fields that are ``None`` have the correct value."""

    source: str
    destination: str
    source_mac: bytes
    destination_mac: bytes
    source_port: int
    port: int
    payload: bytes
    udp_length: int | None = None
    udp_checksum: int | None = None
    ip_length: int | None = None
    ip_checksum: int | None = None
    version: int | None = None
    hops: int = 64
    options: bytes = b""
    #: First bytes of IPv6 extension headers, each with its number: of the first in front.
    extensions: tuple[tuple[int, bytes], ...] = ()
    tag: int | None = None
    padding: bytes = b""
    #: Bytes of the frame that are left after it is cut.
    cut_to: int | None = None
    #: Bytes of UDP in the first of two fragments.
    first_fragment: int | None = None

    @property
    def v6(self) -> bool:
        """Whether it is IPv6."""
        return ":" in self.source

    def addresses(self) -> bytes:
        """Return both addresses."""
        family = socket.AF_INET6 if self.v6 else socket.AF_INET
        return b"".join(socket.inet_pton(family, one) for one in (self.source, self.destination))

    def udp(self) -> bytes:
        """Return the datagram; its checksum covers what its length says."""
        length = 8 + len(self.payload) if self.udp_length is None else self.udp_length
        header = struct.pack(">HHH", self.source_port, self.port, length)
        whole = header + bytes(2) + self.payload
        covered = whole[:length] if length else whole
        pseudo = self.addresses() + struct.pack(">HH", UDP, length or len(whole))
        right = checksum(pseudo + covered) or 0xFFFF
        chosen = right if self.udp_checksum is None else self.udp_checksum
        if chosen < 0:
            chosen = right ^ 0x0100
        return header + struct.pack(">H", chosen) + self.payload

    def frames(self) -> list[bytes]:
        """Return the frame, or two with a fragment each."""
        udp = self.udp()
        if self.first_fragment is None:
            pieces = [(udp, 0, False)]
        else:
            cut = self.first_fragment
            pieces = [(udp[:cut], 0, True), (udp[cut:], cut // 8, False)]
        return [self.frame(piece, offset, more=more) for piece, offset, more in pieces]

    def frame(self, piece: bytes, offset: int, *, more: bool) -> bytes:
        """Return a frame with a piece of the datagram."""
        packet = (self.ipv6 if self.v6 else self.ipv4)(piece, offset, more=more)
        ethernet = self.destination_mac + self.source_mac
        if self.tag is not None:
            ethernet += VLAN + struct.pack(">H", self.tag)
        return (ethernet + (IPV6 if self.v6 else IPV4) + packet + self.padding)[: self.cut_to]

    def ipv4(self, piece: bytes, offset: int, *, more: bool) -> bytes:
        """Return an IPv4 packet."""
        header_length = 20 + len(self.options)
        length = header_length + len(piece) if self.ip_length is None else self.ip_length
        first = (self.version or 4) << 4 | header_length // 4
        fragment = (0x2000 if more else 0) | offset
        start = struct.pack(">BBHHHBB", first, 0, length, 77, fragment, self.hops, UDP)
        rest = self.addresses() + self.options
        right = checksum(start + bytes(2) + rest)
        chosen = right if self.ip_checksum is None else self.ip_checksum
        return start + struct.pack(">H", chosen) + rest + piece

    def ipv6(self, piece: bytes, offset: int, *, more: bool) -> bytes:
        """Return an IPv6 packet."""
        fragmented = self.first_fragment is not None
        chain = [(number, bytes(rest)) for number, rest in self.extensions]
        if fragmented:
            chain.append((44, struct.pack(">xHI", offset << 3 | more, 77)))
        numbers = [number for number, _ in chain] + [UDP]
        body = b"".join(bytes([numbers[at + 1]]) + rest for at, (_, rest) in enumerate(chain))
        body += piece
        length = len(body) if self.ip_length is None else self.ip_length
        start = struct.pack(">IHBB", (self.version or 6) << 28, length, numbers[0], self.hops)
        return start + self.addresses() + body
