"""Two hosts, each a network namespace without a name, joined by a cable: client and reflector."""

from __future__ import annotations

import ctypes
import hashlib
import hmac
import json
import signal
import socket
import struct
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

NEAR, FAR = "10.77.0.1", "10.77.0.2"
NEAR6, FAR6 = "fd77::1", "fd77::2"
#: Seconds from 1900 to 1970.
NTP = 2_208_988_800
#: The key of authenticated STAMP.
KEY = b"a key of enough letters"
#: Addresses of a reflector that everybody may ask.
EVERYWHERE = ("--address", "0.0.0.0", "--address", "::")  # noqa: S104 - in a namespace
#: Of <sched.h>.
CLONE_NEWNET = 0x4000_0000


class Host:
    """A namespace, held by a process that waits for the end of its standard input."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(
            ["/usr/bin/env", "unshare", "--net", "sh", "-c", "echo up; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.holder.stdout is not None
        self.holder.stdout.readline()
        self.pid = str(self.holder.pid)

    def command(self, *words: str) -> list[str]:
        return ["/usr/bin/env", "nsenter", "--net=/proc/" + self.pid + "/ns/net", *words]

    def run(self, *words: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, check=False, timeout=timeout_s
        )

    def must(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def close(self) -> None:
        # Its standard input ends, and so does it.
        self.holder.communicate(timeout=10)


class Cable:
    """Both hosts, with addresses, for as long as the context lasts."""

    def __enter__(self) -> Self:
        self.near, self.far = Host(), Host()
        self.askers: list[Asker] = []
        self.senders: list[socket.socket] = []
        self.near.must("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
        self.near.must("ip", "link", "set", "far", "netns", self.far.pid)
        for host, name, address, address6 in (
            (self.near, "near", NEAR, NEAR6),
            (self.far, "far", FAR, FAR6),
        ):
            host.must("ip", "address", "add", f"{address}/24", "dev", name)
            host.must("ip", "address", "add", f"{address6}/64", "dev", name, "nodad")
            host.must("ip", "link", "set", "lo", "up")
            host.must("ip", "link", "set", name, "up")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for asker in self.askers:
            asker.close()
        for sender in self.senders:
            sender.close()
        # The interfaces go with their namespaces.
        self.near.close()
        self.far.close()

    def asker(self, address: str, port: int, *, source_port: int = 0) -> Asker:
        """Return one on the near host."""
        self.askers.append(Asker(self.near, address, port, source_port=source_port))
        return self.askers[-1]

    def raw_sender(self) -> socket.socket:
        """Return a socket on the near host that sends IPv4 packets as they are."""
        with within(self.near):
            sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.senders.append(sender)
        return sender

    def until_read(self) -> None:
        """Wait until nothing waits in a UDP socket of the far host."""
        until_s = time.monotonic() + 20
        while any(waiting(Path(f"/proc/{self.far.pid}/net/{name}")) for name in ("udp", "udp6")):
            assert time.monotonic() < until_s, "the far host's sockets are not read"
            time.sleep(0.001)

    @contextmanager
    def far_listener(self, port: int) -> Iterator[socket.socket]:
        """Listen on the far host, and answer nothing."""
        with within(self.far):
            listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with listener:
            listener.bind((FAR, port))
            listener.settimeout(5)
            yield listener

    @contextmanager
    def reflector(self, agent: str, *words: str) -> Iterator[Reflector]:
        """Have one run on the far host, at all addresses unless told otherwise."""
        if not {"--address", "--allow", "--interface"}.intersection(words):
            words = (*words, *EVERYWHERE)
        process = subprocess.Popen(
            self.far.command(agent, "reflect", *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        reflector = Reflector(process)
        try:
            reflector.wait_until_ready()
            yield reflector
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            reflector.end()


class Reflector:
    """A reflector that runs, and its result in the end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.result: dict[str, Any] = {}

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "ready" not in line:
            _, said = self.process.communicate(timeout=10)
            raise AssertionError(said)

    def stop(self) -> dict[str, Any]:
        """End it and return its result."""
        self.process.send_signal(signal.SIGINT)
        self.end()
        assert self.process.returncode == 0
        return self.result

    def end(self) -> None:
        if self.process.returncode is not None and self.result:
            return
        output, _ = self.process.communicate(timeout=20)
        for line in output.splitlines():
            event = json.loads(line)
            if event["event"] == "result":
                self.result = event


def waiting(sockets: Path) -> bool:
    """Say whether bytes wait in one of the sockets of a table of proc_net(5)."""
    rows = [line.split() for line in sockets.read_text().splitlines()[1:]]
    return any(int(row[4].split(":")[1], 16) for row in rows)


def enter(namespace: int) -> None:
    """Have this thread be in a network namespace: os.setns, which Python has from 3.12 on."""
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def within(host: Host) -> Iterator[None]:
    """Have this thread's new sockets belong to the host."""
    mine_path, other_path = Path("/proc/self/ns/net"), Path(f"/proc/{host.pid}/ns/net")
    with mine_path.open("rb") as mine, other_path.open("rb") as other:
        enter(other.fileno())
        try:
            yield
        finally:
            enter(mine.fileno())


class Asker:
    """Asks as any peer might: raw bytes in, raw bytes out."""

    def __init__(self, host: Host, address: str, port: int, *, source_port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with within(host):
            self.socket = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if source_port:
            self.socket.bind(("", source_port))
        self.to = (address, port)

    def ask(self, request: bytes, timeout_s: float = 10) -> bytes | None:
        """Return the reply, or nothing when none comes in this time."""
        self.socket.settimeout(timeout_s)
        try:
            self.socket.sendto(request, self.to)
            return self.socket.recv(65_535)
        except OSError:
            return None

    def close(self) -> None:
        self.socket.close()


def sender_packet(sequence: int, *, ssid: int = 5) -> bytes:
    """Return an unauthenticated STAMP packet as RFC 8762 section 4.2.1 draws it, by hand."""
    now = time.time()
    whole = int(now)
    stamp = (whole + NTP) << 32 | int((now - whole) * 2**32)
    return struct.pack(">IQHH28x", sequence, stamp, 0x8001, ssid)


def unix(stamp: int) -> float:
    """Return the seconds since 1970 of eight bytes of NTP."""
    return (stamp >> 32) - NTP + (stamp & 0xFFFFFFFF) / 2**32


def signed(sequence: int, key: bytes = KEY) -> bytes:
    """Return an authenticated STAMP packet as RFC 8762 section 4.2.2 draws it, by hand."""
    plain = sender_packet(sequence)
    base = struct.pack(">4s12x8s4s68x", plain[:4], plain[4:12], plain[12:16])
    return base + hmac.new(key, base, hashlib.sha256).digest()[:16]


def adds_up(result: dict[str, Any]) -> bool:
    """Say whether a reflector counted every request once."""
    counted: int = result["reflected"] + result["unsent"] + sum(result["refused"].values())
    return counted == int(result["received"])
