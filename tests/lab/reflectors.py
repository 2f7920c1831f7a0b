"""Reflectors written for tests: with known faults, with known losses, from the RFCs alone."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tailtrim.laboratory.nodes.namespace import Namespace

FAR = "10.99.0.2"
#: Longer than a machine that does other things keeps a process waiting.
TIMEOUT_S = 0.8
# An echo probe begins with these: magic, session, number.
PROBE = struct.Struct(">4sIQ")


class Responder:
    """A reflector with known faults, each for one last digit of the probes' numbers."""

    def __init__(self, node: Namespace) -> None:
        def open_socket() -> socket.socket:
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened.bind((FAR, 7))
            opened.settimeout(0.05)
            return opened

        self.socket = node.inside(open_socket)
        self.other = node.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.held: list[tuple[bytes, Any]] = []
        self.waiting: list[tuple[float, bytes, Any]] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.socket.close()
        self.other.close()

    def serve(self) -> None:
        while not self.over.is_set() or self.waiting:
            while self.waiting and self.waiting[0][0] <= time.monotonic():
                self.socket.sendto(*self.waiting.pop(0)[1:])
            try:
                probe, client = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            digit = PROBE.unpack_from(probe)[2] % 10
            if digit == 1:
                self.held.append((probe, client))
            elif digit == 2:
                self.waiting.append((time.monotonic() + 2 * TIMEOUT_S, probe, client))
            elif digit > 2:
                self.answer(digit, probe, client)

    def answer(self, digit: int, probe: bytes, client: Any) -> None:
        self.socket.sendto(probe, client)
        for other in self.held:
            self.socket.sendto(*other)
        self.held.clear()
        if digit == 4:
            self.socket.sendto(probe, client)
        if digit == 5:
            self.socket.sendto(b"something else", client)
        if digit == 6:
            # A reply to another session.
            self.socket.sendto(probe[:4] + bytes(4) + probe[8:], client)


class Stamps:
    """A STAMP reflector by RFC 8762 section 4.3 alone, written without looking at ours.

    Its clock is ahead by ``ahead_ns``, it keeps every probe for ``keeps_ns``, and answers so often.
    """

    SINCE_1900_S = 2_208_988_800

    def __init__(self, node: Namespace, *, ahead_ns: int, keeps_ns: int, replies: int = 1) -> None:
        def open_socket() -> socket.socket:
            opened = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            opened.bind(("::", 862))
            opened.settimeout(0.05)
            return opened

        self.socket = node.inside(open_socket)
        self.ahead_ns, self.keeps_ns, self.replies = ahead_ns, keeps_ns, replies
        self.probes: list[bytes] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.socket.close()

    def stamp(self) -> bytes:
        seconds, ns = divmod(time.time_ns() + self.ahead_ns, 10**9)
        return struct.pack(">II", seconds + self.SINCE_1900_S, (ns << 32) // 10**9)

    def serve(self) -> None:
        while not self.over.is_set():
            try:
                probe, client = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            received = self.stamp()
            self.probes.append(probe)
            time.sleep(self.keeps_ns / 1e9)
            for _ in range(self.replies):
                self.socket.sendto(self.reply(probe, received, self.t1(probe)), client)

    def reply(self, probe: bytes, received: bytes, t1: bytes) -> bytes:
        # Own number and stamps; then the sender's: number, stamp, error estimate; its TTL.
        # S is set: synchronised, within 2^-32 s times 2^20: 244 µs.
        reply = self.number(probe) + self.stamp() + b"\x94\x01" + probe[14:16]
        return reply + received + probe[:4] + t1 + probe[12:14] + bytes(2) + b"\xff" + bytes(3)

    def number(self, _: bytes) -> bytes:
        return struct.pack(">I", len(self.probes))

    def t1(self, probe: bytes) -> bytes:
        return probe[4:12]


class Counting(Stamps):
    """The same with state: replies are numbered, and tell when the one before left (RFC 8972 4.7).

    Of ten probes it never sees one, and its reply to another one is lost.
    """

    NOT_THERE, NOT_BACK = 3, 6

    def __init__(self, node: Namespace) -> None:
        super().__init__(node, ahead_ns=0, keeps_ns=200_000)

    def serve(self) -> None:
        left, number = bytes(13), 0
        while not self.over.is_set():
            try:
                probe, client = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            received = self.stamp()
            digit = struct.unpack_from(">I", probe)[0] % 10
            if digit == self.NOT_THERE:
                continue
            t3 = self.stamp()
            # The time between this and the sending is known to telemetry only.
            time.sleep(self.keeps_ns / 1e9)
            reply = struct.pack(">I", number) + t3 + b"\x94\x01" + probe[14:16]
            reply += received + probe[:14] + bytes(2) + b"\xff" + bytes(3)
            if probe[44:48] == bytes.fromhex("80070010"):
                reply += bytes.fromhex("00070010") + left + bytes(3)
            left = struct.pack(">I", number) + self.stamp() + b"\x02"
            number += 1
            if digit != self.NOT_BACK:
                self.socket.sendto(reply + probe[len(reply) :], client)


class LosingReplies(Counting):
    """With state, and every probe arrives: of ten replies one is lost on its way back."""

    NOT_THERE = -1


class Altering(Stamps):
    """A reflector whose every fifth reply has another T1 than was sent."""

    def __init__(self, node: Namespace) -> None:
        super().__init__(node, ahead_ns=0, keeps_ns=0)

    def number(self, probe: bytes) -> bytes:
        return probe[:4]

    def t1(self, probe: bytes) -> bytes:
        t1 = super().t1(probe)
        altered = struct.unpack_from(">I", probe)[0] % 5 == 0
        return t1[:-1] + bytes([t1[-1] ^ 1]) if altered else t1


class Hostile(Responder):
    """To every probe a good reply, and with it what a session must not take for one."""

    def serve(self) -> None:
        stranger = self.other
        while not self.over.is_set():
            try:
                probe, client = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            self.socket.sendto(probe + bytes(60_000), client)
            self.socket.sendto(b"", client)
            self.socket.sendto(probe[:20], client)
            # A number that was never sent.
            self.socket.sendto(probe[:8] + struct.pack(">Q", 10**9) + probe[16:], client)
            # Not from where probes go.
            stranger.sendto(probe, client)
            # Good, and the same again.
            for _ in range(3):
                self.socket.sendto(probe, client)
