"""Answers of each mode of the reflector, frame by frame: one table for all of them."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from frames import Datagram
from peers import FAR, FAR6, NEAR, NEAR6, Cable, Host, adds_up, within

pytestmark = pytest.mark.reflectors
AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
AT_FAR = ("--interface", "far")
MODES = {
    "socket": (),
    "xdp": ("--mode", "xdp", *AT_FAR),
    "af-xdp": ("--mode", "af-xdp", *AT_FAR),
    "nat": ("--mode", "nat", *AT_FAR),
}
PORT = 7
#: 108 bytes of UDP.
BODY = bytes(range(100))
BROADCAST = b"\xff" * 6
PAD = b"\x00\x01\x04" + bytes(4)


@dataclass(frozen=True, slots=True)
class Difference:
    """Different answer of a mode, and why it cannot be avoided."""

    heard: int | None
    why: str
    counted: str | None = None


Instead = dict[str, Difference]
NO_STACK = {"af-xdp": Difference(None, "no kernel behind AF_XDP reassembles what it receives")}
NO_OPTIONS = {"af-xdp": Difference(None, "no kernel behind AF_XDP reads options")}
NOT_UNICAST = {
    "af-xdp": Difference(None, "the reply would come from an address of many"),
    "nat": Difference(None, "the kernel does not forward what is for all"),
}
TRACKED = {
    "nat": Difference(None, "connection tracking sums what IP carries, not what UDP says"),
}
UNTRACKED = {
    "nat": Difference(None, "connection tracking accepts it; the client's kernel drops the reply"),
}
UNSUMMED = {
    "xdp": Difference(None, "a program cannot sum a whole payload; the reply is damaged, too"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A frame, the reply that the client hears, and the counters of XDP and AF_XDP for it."""

    name: str
    #: Bytes of the payload that come back; ``None``: no reply.
    heard: int | None
    #: Why it is refused; ``None``: it is answered, or left to the kernel.
    counted: str | None
    instead: Instead
    changes: dict[str, Any]


def case(
    name: str,
    heard: int | None,
    counted: str | None = None,
    instead: Instead | None = None,
    **changes: Any,
) -> Case:
    """Return a case."""
    return Case(name, heard, counted, instead or {}, changes)


WHOLE = len(BODY)
BOTH = (
    case("sound", WHOLE),
    case("UDP length 7", None, "malformed", udp_length=7),
    case("UDP length 8", 0, instead=TRACKED, udp_length=8),
    # Behind it may be UDP options (RFC 9868).
    case("UDP length 50", 42, instead=TRACKED, udp_length=50),
    case("UDP length 109", None, "malformed", udp_length=109),
    case("UDP length 65535", None, "malformed", udp_length=65_535),
    case("an empty payload", 0, payload=b""),
    case("fragments", WHOLE, instead=NO_STACK, first_fragment=48),
    case("a VLAN tag", None, tag=5),
    case("a tag with a priority alone", WHOLE, tag=0xE000),
    case("a wrong UDP checksum", None, "malformed", UNSUMMED, udp_checksum=-1),
    case("a source port of a service", None, "source_port", source_port=1_023),
    case("the lowest source port", WHOLE, source_port=1_024),
    case("a source port of ours", None, "source_port", source_port=7),
    case("source port 0", None, "source_port", source_port=0),
    case("to all Ethernet addresses", WHOLE, instead=NOT_UNICAST, destination_mac=BROADCAST),
    case("to another Ethernet address", None, destination_mac=b"\x02\0\0\0\0\x77"),
    case("cut within the payload", None, "malformed", cut_to=90),
    case("cut within the UDP header", None, cut_to=40),
    case("cut within the IP header", None, cut_to=30),
    case("cut behind the Ethernet header", None, cut_to=16),
    case("padding behind the packet", WHOLE, padding=bytes(30)),
    case("a short frame that is padded", 3, payload=b"abc", padding=bytes(17)),
    case("a wrong version", None, version=5),
    case(
        "a TTL of 1",
        WHOLE,
        hops=1,
        instead={"nat": Difference(None, "forwarding ends at a TTL of 1")},
    ),
)
V4 = (
    case("UDP length 0", None, "malformed", udp_length=0),
    case("IP options", WHOLE, instead=NO_OPTIONS, options=b"\x01\x01\x01\x01"),
    case("a wrong IP header checksum", None, ip_checksum=0x1234),
    case("no UDP checksum", WHOLE, udp_checksum=0),
    case("IP length 0", None, "malformed", ip_length=0),
    case("IP length of the header", None, "malformed", ip_length=20),
    case("IP length without the last byte", None, "malformed", ip_length=127),
    case("IP length beyond the frame", None, "malformed", ip_length=129),
    case("to the network's broadcast", None, destination="10.77.0.255", destination_mac=BROADCAST),
    case("to everybody", None, destination="255.255.255.255", destination_mac=BROADCAST),
    case("to a group", None, destination="224.0.0.1", destination_mac=b"\x01\0\x5e\0\0\x01"),
    case("to another host", None, destination="10.77.0.9"),
    case("from a group", None, "address", source="224.0.0.1"),
    case("from nobody", None, "address", source="0.0.0.0"),  # noqa: S104 - the sender's
    case("from everybody", None, "address", source="255.255.255.255"),
    case("from loopback", None, source="127.0.0.1"),
    case("from ourselves", None, source=FAR),
)
V6 = (
    # As in a jumbogram, which is what the kernel takes it for.
    case("UDP length 0", WHOLE, instead=TRACKED, udp_length=0),
    case("an option for the destination", WHOLE, instead=NO_OPTIONS, extensions=((60, PAD),)),
    case("an option for every hop", WHOLE, instead=NO_OPTIONS, extensions=((0, PAD),)),
    case("no UDP checksum", None, "malformed", UNTRACKED, udp_checksum=0),
    case("IP length 0", None, "malformed", ip_length=0),
    case("IP length without the last byte", None, "malformed", ip_length=107),
    case("IP length beyond the frame", None, "malformed", ip_length=109),
    case("to a group", None, destination="ff02::1", destination_mac=b"\x33\x33\0\0\0\x01"),
    case("to another host", None, destination="fd77::9"),
    case("from a group", None, "address", source="ff02::5"),
    case("from nobody", None, "address", source="::"),
    case("from loopback", None, source="::1"),
    case("from a mapped address", None, source="::ffff:10.77.0.1"),
    case("from ourselves", None, source=FAR6),
)
CASES = [(False, one) for one in (*BOTH, *V4)] + [(True, one) for one in (*BOTH, *V6)]


class Client:
    """Sends frames as they are; hears packets that its kernel takes, and frames on its wire."""

    def __init__(self, cable: Cable) -> None:
        self.macs = mac(cable.near, "near"), mac(cable.far, "far")
        # Neighbours are found before anything is measured.
        for address in (FAR, FAR6):
            asker = cable.asker(address, PORT)
            assert any(asker.ask(b"%d" % number, 0.3) for number in range(40))
        self.last = [cable.asker(address, PORT) for address in (FAR, FAR6)]
        self.ports: dict[int, int] = {}
        self.sockets: dict[int, socket.socket] = {}
        with within(cable.near):
            self.raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.raw.bind(("near", 3))
            for number, (v6, one) in enumerate(CASES):
                port = one.changes.get("source_port", 20_000 + number)
                family, address = (socket.AF_INET6, NEAR6) if v6 else (socket.AF_INET, NEAR)
                self.ports[number] = port
                self.sockets[number] = socket.socket(family, socket.SOCK_DGRAM)
                self.sockets[number].bind((address, port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()
        for one in self.sockets.values():
            one.close()

    def send(self, number: int) -> None:
        """Send the frames of a case."""
        v6, one = CASES[number]
        usual: dict[str, Any] = {
            "source": NEAR6 if v6 else NEAR,
            "destination": FAR6 if v6 else FAR,
            "source_mac": self.macs[0],
            "destination_mac": self.macs[1],
            "source_port": self.ports[number],
            "port": PORT,
            # No payload is that of another case: repeated ones are limited.
            "payload": bytes([number]) + BODY[1:],
        }
        for frame in Datagram(**usual | one.changes).frames():
            self.raw.send(frame)
            time.sleep(0.005)

    def settle(self) -> None:
        """Return when all that was sent before is judged: requests behind it are answered."""
        assert all(asker.ask(b"the last", 10) for asker in self.last)

    def heard(self, number: int, *, awaited: bool) -> bytes | None:
        """Return the payload of the reply that the kernel took, if there was one."""
        self.sockets[number].settimeout(10 if awaited else 0)
        try:
            return self.sockets[number].recv(2_048)
        except (BlockingIOError, TimeoutError):
            return None

    def carried(self) -> set[tuple[bool, int]]:
        """Return family and port of all replies on the wire, whichever socket takes them."""
        replies: set[tuple[bool, int]] = set()
        self.raw.settimeout(0.1)
        while True:
            try:
                frame, (_, _, kind, *_) = self.raw.recvfrom(2_048)
            except TimeoutError:
                return replies
            v6 = frame[12:14] == b"\x86\xdd"
            udp = frame[54:] if v6 else frame[34:]
            if kind != socket.PACKET_OUTGOING and udp[:2] == PORT.to_bytes(2):
                replies.add((v6, int.from_bytes(udp[2:4])))


def mac(host: Host, name: str) -> bytes:
    (shown,) = json.loads(host.must("ip", "-j", "link", "show", "dev", name))
    return bytes.fromhex(shown["address"].replace(":", ""))


@pytest.mark.fast
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_judges_every_frame_alike(cable: Cable, mode: str) -> None:
    if mode == "nat" and shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    if mode == "nat":
        # Translating IPv6 takes a host that forwards it.
        cable.far.must("sysctl", "-w", "net.ipv6.conf.all.forwarding=1")
    words = ("--echo", str(PORT), "--limit", "0", *MODES[mode])
    with cable.reflector(AGENT, *words) as reflector, Client(cable) as client:
        for number in range(len(CASES)):
            client.send(number)
        client.settle()
        wrong = []
        silent = []
        refused: Counter[str] = Counter()
        for number, (v6, one) in enumerate(CASES):
            other = one.instead.get(mode)
            expected, counted = (other.heard, other.counted) if other else (one.heard, one.counted)
            sent = one.changes.get("payload", bytes([number]) + BODY[1:])
            heard = client.heard(number, awaited=expected is not None)
            name = f"{'IPv6' if v6 else 'IPv4'}, {one.name}"
            if heard != (None if expected is None else sent[:expected]):
                wrong.append(f"{name}: {expected} bytes expected, heard {heard!r}")
            if expected is None and other is None:
                silent.append((name, (v6, client.ports[number])))
            if counted:
                refused[counted] += 1
        carried = client.carried()
        unheard = [name for name, port in silent if port in carried]
        wrong += [f"{name}: a reply that the client's kernel did not take" for name in unheard]
        result = reflector.stop()
    assert not wrong, "\n".join(wrong)
    assert adds_up(result)
    if mode in {"xdp", "af-xdp"}:
        # The program leaves some frames, such as requests to groups, to the sockets: these count.
        result = result["xdp"]["counters"] if mode == "xdp" else result
        assert {reason: count for reason, count in result["refused"].items() if count} == refused
