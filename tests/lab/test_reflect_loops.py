"""A forged datagram between two reflectors: in all pairs of modes and protocols it comes to rest.

A client forges the address and port of one reflector as those of a request to the other one. Each
reply would then be a request. All packets on the cable are counted.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
import tools
from peers import FAR, FAR6, KEY, NTP, Asker, Host, Reflector, adds_up, signed, within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from peers import Cable

pytestmark = pytest.mark.reflectors
AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
#: One reflector at each end, and the ports they are asked at.
ADDRESSES = (("10.9.0.1", "fd09::1"), ("10.9.0.2", "fd09::2"))
PORTS = ({"echo": 7007, "stamp": 7008, "twamp": 7009}, {"echo": 5007, "stamp": 5008, "twamp": 5009})
ECHOES = (PORTS[0]["echo"], PORTS[1]["echo"])
NAMES = ("one", "other")
MACS = ("02:00:00:00:09:01", "02:00:00:00:09:02")
#: Packets that one forged datagram may cause.
MOST = 200
#: No packets for so long: it has come to rest.
QUIET_S = 0.3
IP_HEADERS = {4: struct.Struct(">BBHHHBBH4s4s"), 6: struct.Struct(">IHBB16s16s")}

#: Modes, and the services that each reflects.
MODES = dict.fromkeys(("socket", "xdp", "af-xdp"), ("echo", "stamp", "twamp")) | {"nat": ("echo",)}
#: All pairs; each mode against itself is of the smoke laboratory.
PAIRS = [
    pytest.param(one, other, marks=[pytest.mark.fast] if one == other else [])
    for one, other in combinations_with_replacement(MODES, 2)
]


class Opposed:
    """Two hosts on a cable, each with a reflector, for as long as the context lasts."""

    def __init__(self, *words: tuple[str, ...]) -> None:
        self.words = words

    def __enter__(self) -> Self:
        self.hosts = (Host(), Host())
        first, second = self.hosts
        one, other = ((name, "address", mac) for name, mac in zip(NAMES, MACS, strict=True))
        first.must("ip", "link", "add", *one, "type", "veth", "peer", "name", *other)
        first.must("ip", "link", "set", NAMES[1], "netns", second.pid)
        for host, name, (v4, v6) in zip(self.hosts, NAMES, ADDRESSES, strict=True):
            host.must("sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
            host.must("ip", "address", "add", f"{v4}/24", "dev", name)
            host.must("ip", "address", "add", f"{v6}/64", "dev", name, "nodad")
            host.must("ip", "link", "set", "lo", "up")
            host.must("ip", "link", "set", name, "up")
        # So that both know each other's hardware addresses.
        for address in ADDRESSES[1]:
            first.must("ping", "-c", "1", "-w", "5", address)
        self.reflectors = []
        for host, name, words in zip(self.hosts, NAMES, self.words, strict=True):
            process = subprocess.Popen(
                host.command(AGENT, "reflect", "--limit", "0", "--interface", name, *words),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self.reflectors.append(Reflector(process))
        for reflector in self.reflectors:
            reflector.wait_until_ready()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for reflector in self.reflectors:
            if reflector.process.poll() is None:
                reflector.process.terminate()
            reflector.end()
        for host in self.hosts:
            host.close()

    def packets(self) -> int:
        """Return how many packets passed the cable, in both directions."""
        text = Path(f"/proc/{self.hosts[0].pid}/net/dev").read_text()
        counts = next(line for line in text.splitlines() if f"{NAMES[0]}:" in line).split()
        return int(counts[2]) + int(counts[10])

    def forge(self, packet: bytes, version: int) -> None:
        """Send an IP packet from the first host as it is."""
        with within(self.hosts[0]):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        with raw:
            raw.bind((NAMES[0], 0))
            macs = "".join(reversed(MACS)).replace(":", "")
            raw.send(bytes.fromhex(macs + ("0800" if version == 4 else "86dd")) + packet)

    def rests_after(self, *packets: tuple[bytes, int]) -> int:
        """Return how many packets passed until none did any more, or too many."""
        before = last = self.packets()
        for packet, version in packets:
            self.forge(packet, version)
        # At rest is only what has begun: the forged ones, and the first answer to them.
        changed, until_s = time.monotonic(), time.monotonic() + 10
        while last - before <= MOST * len(packets) and (
            time.monotonic() - changed < QUIET_S
            or (last - before <= len(packets) and time.monotonic() < until_s)
        ):
            time.sleep(0.01)
            if (now := self.packets()) != last:
                last, changed = now, time.monotonic()
        return last - before

    def stop(self) -> list[dict[str, Any]]:
        """End both and return their results."""
        return [reflector.stop() for reflector in self.reflectors]


def words(mode: str, ports: dict[str, int], *more: str) -> tuple[str, ...]:
    """Return what reflects everything that a mode can, or what is chosen of it."""
    services = ((f"--{protocol}", str(port)) for protocol, port in ports.items())
    known = (word for name, port in services if name[2:] in MODES[mode] for word in (name, port))
    return ("--mode", mode, *known, *more)


def checksum(*parts: bytes) -> int:
    whole = b"".join(parts)
    total = sum(byte << 8 * (1 - at % 2) for at, byte in enumerate(whole))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def forged(
    payload: bytes, version: int, *, ports: tuple[int, int] = ECHOES, ttl: int = 64
) -> bytes:
    """Return the packet of the first reflector to the second one, which it never sent."""
    source, target = (
        socket.inet_pton(socket.AF_INET if version == 4 else socket.AF_INET6, pair[version == 6])
        for pair in ADDRESSES
    )
    length = 8 + len(payload)
    udp = struct.pack(">HHHH", *ports, length, 0)
    sum_of_all = checksum(source + target, struct.pack(">HH", 17, length), udp, payload)
    udp = udp[:6] + struct.pack(">H", sum_of_all or 0xFFFF)
    if version == 4:
        layout = IP_HEADERS[4]
        fields = (0x45, 0, 20 + length, 0, 0, ttl, 17)
        header = layout.pack(*fields, 0, source, target)
        header = layout.pack(*fields, checksum(header), source, target)
    else:
        header = IP_HEADERS[6].pack(6 << 28, length, 17, ttl, source, target)
    return header + udp + payload


def request(*, keyed: bool) -> bytes:
    """Return what every protocol answers: 44 bytes of STAMP, or 112 with a key."""
    if keyed:
        return signed(7)
    stamp = (int(time.time()) + NTP) << 32
    return struct.pack(">IQHH28x", 7, stamp, 0x8001, 5)


@pytest.fixture(autouse=True)
def _tools() -> None:
    """Skip loudly where the other tests of reflectors do."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces for a reflector need root here")
    for program in ("ip", "unshare", "nsenter", "nft", "ping"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_no_pair_keeps_a_forged_datagram_going(one: str, other: str) -> None:
    """All pairs of protocols of a pair of modes, one after the other on the same two hosts."""
    same = one == other
    pairs = (
        combinations_with_replacement(MODES[one], 2) if same else product(MODES[one], MODES[other])
    )
    cases = [(first, second, 4) for first, second in pairs]
    cases += [(protocol, protocol, 6) for protocol in MODES[one] if same]
    with Opposed(words(one, PORTS[0]), words(other, PORTS[1])) as opposed:
        for first, second, version in cases:
            ports = PORTS[0][first], PORTS[1][second]
            packet = forged(request(keyed=False), version, ports=ports)
            packets = opposed.rests_after((packet, version))
            # The forged one came, and was answered.
            assert 2 <= packets <= MOST, (first, second, version)
        results = opposed.stop()
    assert all(adds_up(result) for result in results)
    assert sum(result["reflected"] for result in results) >= len(cases)


@pytest.mark.parametrize(
    ("protocol", "more"),
    [
        ("stamp", ["--stateful"]),
        ("twamp", ["--stateful"]),
        ("stamp", ["--key"]),
        ("stamp", ["--key", "--stateful"]),
        ("echo", ["--busy-poll"]),
        ("echo", ["--repeats", "0"]),
    ],
    ids=str,
)
def test_sessions_and_keys_keep_none_going(protocol: str, more: list[str], tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    keyed = "--key" in more
    more = [
        word
        for name in more
        for word in (("--key-file", str(path)) if name == "--key" else (name,))
    ]
    ports = PORTS[0][protocol], PORTS[1][protocol]
    ends = (words("socket", {protocol: port}, *more) for port in ports)
    with Opposed(*ends) as opposed:
        packets = opposed.rests_after((forged(request(keyed=keyed), 4, ports=ports), 4))
        results = opposed.stop()
    assert 2 <= packets <= MOST
    assert all(adds_up(result) for result in results)


@pytest.mark.parametrize("mode", MODES)
def test_many_datagrams_at_once_come_to_rest(mode: str) -> None:
    # Ten that differ, each twice, with all kinds of TTL.
    packets = [(forged(b"%d" % (n % 10) * 9, 4, ttl=1 + 7 * n % 255), 4) for n in range(20)]
    ends = (words(mode, {"echo": port}) for port in ECHOES)
    with Opposed(*ends) as opposed:
        assert opposed.rests_after(*packets) <= MOST * len(packets)
        results = opposed.stop()
    assert all(adds_up(result) for result in results)


@contextmanager
def foreign_echo(host: Host, port: int) -> Iterator[None]:
    """Have another echo server answer at the first host, with a fresh TTL and whatever comes."""
    program = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"s.bind(({ADDRESSES[0][0]!r}, {port}))\n"
        "print('ready', flush=True)\n"
        "while True: s.sendto(*s.recvfrom(2048))\n"
    )
    server = subprocess.Popen(host.command(sys.executable, "-c", program), stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        assert server.stdout.readline()
        yield
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_with_a_foreign_echo_server_ends(mode: str) -> None:
    """The budget of 64 ends it; ten more a second are too few for a slow machine to go on."""
    lengths = {44: 7011, 12: 7012, 4: 7013}
    # The first reflector has a port of its own; at the others there is the foreign one.
    ends = words("socket", {"echo": 7010}), words(mode, {"echo": ECHOES[1]}, "--repeats", "10")
    with Opposed(*ends) as opposed:
        for length, port in lengths.items():
            packet = forged(bytes(range(length)), 4, ports=(port, ECHOES[1]))
            with foreign_echo(opposed.hosts[0], port):
                packets = opposed.rests_after((packet, 4))
            # More than the TTL allows between two of ours: the other server sent with a fresh one.
            assert 65 < packets <= MOST, length
        result = opposed.stop()[1]
    assert result["refused"]["loop"] == len(lengths)
    assert "--repeats 0" in result["warnings"][0]


@pytest.mark.parametrize("mode", MODES)
def test_real_clients_do_not_meet_the_budget(cable: Cable, mode: str) -> None:
    words = ("--echo", "7007", "--limit", "0", "--mode", mode, "--interface", "far")
    with cable.reflector(AGENT, *words) as reflector:
        for target in (FAR, FAR6)[: 1 if mode == "nat" else 2]:
            asked = ("--dst-port", "7007", "--rate", "20kpps", "--duration", "1s", "--json")
            assert cable.near.run(AGENT, "ping", target, *asked).returncode in {0, 1}
        # Payload of iputils ping over ICMP: the same 56 bytes, here 50 a second.
        asker = cable.asker(FAR, 7007)
        for _ in range(100):
            assert asker.ask(bytes(range(56))) == bytes(range(56))
            time.sleep(0.02)
        result = reflector.stop()
    assert adds_up(result)
    assert result["received"] > 10_000
    assert (result["refused"]["loop"], "warnings" in result) == (0, False)


@pytest.mark.packages
@pytest.mark.parametrize("mode", MODES)
def test_sockperfs_numbered_messages_do_not_meet_the_budget(cable: Cable, mode: str) -> None:
    tools.need(tools.SOCKPERF)
    words = ("--echo", "7007", "--limit", "0", "--mode", mode, "--interface", "far")
    with cable.reflector(AGENT, *words) as reflector:
        load = ("--mps", "20000", "-t", "1", "-m", "14")
        cable.near.must("sockperf", "throughput", "-i", FAR, "-p", "7007", *load)
        result = reflector.stop()
    assert adds_up(result)
    # Many more than the budget allows of those that come again.
    assert result["received"] > 1_000
    assert (result["refused"]["loop"], "warnings" in result) == (0, False)


@pytest.mark.parametrize("mode", MODES)
def test_a_cookie_lets_in_who_knows_it(cable: Cable, mode: str) -> None:
    cookie = "5ae1c0ffee15900d"
    words = ("--echo", "7007", "--cookie", cookie, "--mode", mode, "--interface", "far")
    with cable.reflector(AGENT, *words) as reflector:
        asker = cable.asker(FAR, 7007)
        known = bytes.fromhex(cookie)
        for payload in (known, known + b"more"):
            assert asker.ask(payload) == payload
        for payload in (b"", known[:7], known[:7] + b"?", b"?" + known):
            assert asker.ask(payload, 0.2) is None
        asked = (FAR, "--dst-port", "7007", "-c", "20", "--rate", "200pps", "--json")
        done = cable.near.run(AGENT, "ping", *asked, "--cookie", cookie)
        assert json.loads(done.stdout)["streams"][0]["probes"]["answered"] == 20
        result = reflector.stop()
    assert adds_up(result)
    assert (result["refused"]["cookie"], result["reflected"]) == (4, 22)


def test_without_a_word_of_others_only_this_host_is_answered(cable: Cable) -> None:
    words = ("reflect", "--echo", "7007")
    with subprocess.Popen(
        cable.far.command(AGENT, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "ready" in process.stdout.readline()
        assert cable.asker(FAR, 7007).ask(b"x", 0.2) is None
        here = Asker(cable.far, "127.0.0.1", 7007)
        cable.askers.append(here)
        assert here.ask(b"x") == b"x"
        process.terminate()
        told, said = process.communicate(timeout=20)
    result = json.loads(told.splitlines()[-1])
    assert {entry["address"] for entry in result["listening"]} == {"127.0.0.1:7007", "[::1]:7007"}
    assert result["loopback_only"]
    assert "--interface INTERFACE" in said
