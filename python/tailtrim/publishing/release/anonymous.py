"""Anonymised packets: no addresses and payloads, but still distinguishable from each other.

Addresses of IPv4 and IPv6 are encrypted by Crypto-PAn (Xu et al., ICNP 2002): two that share a
prefix share one of the same length afterwards. MAC addresses become others, of local
administration. Bytes behind the headers of IP, UDP and TCP are cut. A keyed hash (BLAKE2)
replaces those that packets are matched by, so the same payload is the same hash at both taps, and
zeros replace the rest. Checksums of IPv4 are made anew, others are zero.

The key is made for a release and kept nowhere.
"""

from __future__ import annotations

import hashlib
import secrets
from functools import lru_cache
from typing import TYPE_CHECKING

from tailtrim.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY_BYTES = 32
_HASH_BYTES = 16
#: Bytes behind the link layer by which packets are matched (docs/measuring.md).
_MATCHED_BYTES = 64
_MACS = 12
_TAGS = (b"\x81\x00", b"\x88\xa8", b"\x91\x00")
_IPV4, _IPV6 = b"\x08\x00", b"\x86\xdd"
_TCP, _UDP = 6, 17
_IPV4_HEADER, _IPV6_HEADER, _UDP_HEADER, _TCP_HEADER = 20, 40, 8, 20
_MOST_ADDRESSES = 1 << 20


class Anonymous:
    """Packets, addresses and MAC addresses of one release, by one key.

    Raises:
        MissingPackageError: Crypto-PAn is not installed.

    """

    def __init__(self) -> None:
        """Make a key."""
        try:
            from yacryptopan import CryptoPAn  # noqa: PLC0415 - of the extra `release`
        except ModuleNotFoundError as error:
            failure = MissingPackageError("yacryptopan is not installed, anonymised data need it")
            failure.add_note("pip install 'tailtrim[release]'")
            raise failure from error
        self._key = secrets.token_bytes(_KEY_BYTES)
        encrypt: Callable[[int, int], int] = CryptoPAn(
            secrets.token_bytes(_KEY_BYTES)
        ).anonymize_bin

        @lru_cache(_MOST_ADDRESSES)
        def address(given: bytes) -> bytes:
            version = 4 if len(given) == 4 else 6  # noqa: PLR2004 - bytes of an IPv4 address
            return encrypt(int.from_bytes(given), version).to_bytes(len(given))

        self._address = address

    def mac(self, address: str) -> str:
        """Return what stands for a MAC address, which is written ``aa:bb:cc:dd:ee:ff``."""
        return self._mac(bytes.fromhex(address.replace(":", ""))).hex(":")

    def packet(self, captured: bytes) -> bytes:
        """Return what stands for the captured bytes of an Ethernet frame: as many."""
        if len(captured) < _MACS + 2:
            return bytes(len(captured))
        macs = self._mac(captured[:6]) + self._mac(captured[6:_MACS])
        at = _MACS
        while captured[at : at + 2] in _TAGS:
            at += 4
        kind, link = captured[at : at + 2], at + 2
        of_link = macs + captured[_MACS:link]
        packet = captured[link:]
        if kind == _IPV4 and len(packet) >= _IPV4_HEADER and packet[0] >> 4 == 4:  # noqa: PLR2004
            return of_link + self._ipv4(packet)
        if kind == _IPV6 and len(packet) >= _IPV6_HEADER and packet[0] >> 4 == 6:  # noqa: PLR2004
            return of_link + self._ipv6(packet)
        return of_link + self._cut(packet, len(packet), 0)

    def _ipv4(self, packet: bytes) -> bytes:
        header = bytearray(packet[:_IPV4_HEADER])
        header[12:16], header[16:20] = self._address(packet[12:16]), self._address(packet[16:20])
        header[10:12] = bytes(2)
        behind = max((packet[0] & 15) * 4, _IPV4_HEADER)
        options = self._cut(packet[_IPV4_HEADER:behind], behind - _IPV4_HEADER, _IPV4_HEADER)
        header[10:12] = _checksum(bytes(header) + options)
        first = (packet[6] & 0x1F, packet[7]) == (0, 0)
        end = min(max(int.from_bytes(packet[2:4]), behind), len(packet))
        protocol = packet[9] if first else None
        return (
            bytes(header)
            + options
            + self._transport(packet[behind:], protocol, end - behind, behind)
        )

    def _ipv6(self, packet: bytes) -> bytes:
        addresses = self._address(packet[8:24]) + self._address(packet[24:40])
        end = min(_IPV6_HEADER + int.from_bytes(packet[4:6]), len(packet))
        rest = self._transport(packet[40:], packet[6], end - _IPV6_HEADER, _IPV6_HEADER)
        return packet[:8] + addresses + rest

    def _transport(self, rest: bytes, protocol: int | None, length: int, at: int) -> bytes:
        """Return a header of UDP or TCP without its checksum, and the payload cut."""
        size = {_UDP: _UDP_HEADER, _TCP: _TCP_HEADER}.get(protocol or 0, 0)
        if len(rest) < size or length < size:
            size = 0
        header = bytearray(rest[:size])
        if size == _UDP_HEADER:
            header[6:8] = bytes(2)
        elif size == _TCP_HEADER:
            header[16:18] = bytes(2)
        return bytes(header) + self._cut(rest[size:], length - size, at + size)

    def _cut(self, payload: bytes, length: int, at: int) -> bytes:
        """Return as many bytes: a hash of what counts for matching, then zeros.

        Args:
            payload: its captured bytes.
            length: how many of these are of the packet; link padding is behind them.
            at: where it begins, from the end of the link layer on.

        """
        matched = payload[: max(0, min(length, _MATCHED_BYTES - at))]
        if not matched:
            return bytes(len(payload))
        size = min(len(matched), _HASH_BYTES)
        short = hashlib.blake2b(matched, key=self._key, digest_size=size).digest()
        return short.ljust(len(payload), b"\0")

    def _mac(self, address: bytes) -> bytes:
        short = hashlib.blake2b(address, key=self._key, person=b"mac", digest_size=6).digest()
        # Local administration (0x02), and a group address (0x01) stays one.
        return bytes([short[0] & 0xFC | 0x02 | address[0] & 1]) + short[1:]


def _checksum(header: bytes) -> bytes:
    """Return the checksum of an IPv4 header whose checksum is zero (RFC 1071)."""
    total = sum(
        int.from_bytes(header[at : at + 2].ljust(2, b"\0")) for at in range(0, len(header), 2)
    )
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (total ^ 0xFFFF).to_bytes(2)
