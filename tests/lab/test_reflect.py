"""The reflector on a cable of its own: replies, refusals and the end of its modes."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from peers import FAR, FAR6, KEY, NEAR, Cable, adds_up, sender_packet, signed, unix
from releases import entering

pytestmark = pytest.mark.reflectors
AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
MODES = {
    "socket": (),
    "busy": ("--busy-poll",),
    "busy at addresses": ("--busy-poll", "--address", FAR, "--address", FAR6),
    "xdp": ("--mode", "xdp", "--interface", "far"),
    "af-xdp": ("--mode", "af-xdp", "--interface", "far"),
}


@pytest.mark.fast
def test_a_session_that_began_outside_of_the_pid_namespace() -> None:
    # The leader of the session is 0 there, no process ID.
    root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    inside = ["unshare", *root, "--net", "--pid", "--fork", "--kill-child"]
    with subprocess.Popen(
        [*inside, AGENT, "reflect", "--user", "0", "--echo", "7"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as reflector:
        assert reflector.stdout is not None
        try:
            assert json.loads(reflector.stdout.readline()) == {"event": "ready"}
        finally:
            # It passes no other signal on.
            reflector.kill()


def test_an_address_of_the_link_has_a_zone(cable: Cable) -> None:
    link = {cable.near: ("fe80::a1", "near"), cable.far: ("fe80::a2", "far")}
    for host, (address, name) in link.items():
        host.must("ip", "address", "add", f"{address}/64", "dev", name, "nodad")
    with cable.reflector(AGENT, "--stamp", "862", "--address", "fe80::a2%far"):
        words = ("-p", "stamp", "--rate", "100pps", "-c", "5", "--json")
        for target in ("fe80::a2%near", "[fe80::a2%near]:862"):
            (stream,) = json.loads(cable.near.must(AGENT, "ping", target, *words))["streams"]
            assert stream["probes"]["answered"] == 5
    other = ("--address", "fe80::a2%far", "--address", FAR)
    done = cable.far.run(AGENT, "reflect", "--stamp", "862", *other)
    assert (done.returncode, "one interface for all" in done.stderr) == (2, True)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_answers_and_refuses_alike(cable: Cable, mode: str) -> None:
    services = ("--echo", "7", "--stamp", "862", "--twamp", "8620", "--limit", "0")
    with cable.reflector(AGENT, *services, *MODES[mode]) as reflector:
        for address in (FAR, FAR6):
            echo = cable.asker(address, 7)
            for payload in (b"", b"x", b"hello" * 200):
                assert echo.ask(payload) == payload
            stamp = cable.asker(address, 862)
            request = sender_packet(7)
            reply = stamp.ask(request)
            assert reply is not None
            assert len(reply) == 44
            sequence, t3, _, ssid, t2, number, t1 = struct.unpack(">IQHHQIQ", reply[:36])
            assert (sequence, ssid, number, reply[40]) == (7, 5, 7, 64)
            assert t1 == struct.unpack(">Q", request[4:12])[0]
            # One clock on both sides.
            assert unix(t1) <= unix(t2) <= unix(t3) <= time.time()
            # A TLV, the class that the reply shall have, is answered: flags 0.
            answered = stamp.ask(request + bytes.fromhex("8004000428000000"))
            assert answered is not None
            assert answered[44:48] == bytes.fromhex("00040004")
            assert stamp.ask(b"x" * 43, 0.2) is None
            twamp = cable.asker(address, 8620).ask(sender_packet(3) + b"p" * 16)
            assert twamp is not None
            assert (len(twamp), twamp[44:]) == (60, b"p" * 16)
            # A client that asks from a service's port might be a reflector itself.
            assert cable.asker(address, 7, source_port=1000).ask(b"x", 0.2) is None
            assert cable.asker(address, 7, source_port=8620).ask(b"x", 0.2) is None
        result = reflector.stop()
    assert adds_up(result)
    assert (result["received"], result["reflected"]) == (18, 12)
    assert (result["refused"]["source_port"], result["refused"]["short"]) == (4, 2)
    assert result["root_given_up"]


def test_regular_clients_and_others_are_answered(cable: Cable) -> None:
    # A client that asks 64 times has a socket of its own, until another one does and it is silent.
    # The same numbers are asked with again and again.
    services = ("--echo", "7", "--stamp", "862", "--limit", "0", "--repeats", "0")
    with cable.reflector(AGENT, *services, *MODES["busy at addresses"]) as reflector:
        for address in (FAR, FAR6):
            one, other = cable.asker(address, 7), cable.asker(address, 7)
            for client in (one, other, one):
                assert all(client.ask(b"%d" % n) == b"%d" % n for n in range(70))
            for number in range(70):
                for client in (one, other):
                    assert client.ask(b"%d" % number) == b"%d" % number
            stamp = cable.asker(address, 862)
            for number in range(70):
                request = sender_packet(number)
                reply = stamp.ask(request)
                assert reply is not None
                t3, t2, t1 = (struct.unpack(">Q", reply[at : at + 8])[0] for at in (4, 16, 28))
                assert unix(t1) <= unix(t2) <= unix(t3) <= time.time()
        result = reflector.stop()
    assert adds_up(result)
    assert result["reflected"] == 2 * 6 * 70


@pytest.mark.parametrize("mode", ["socket", "xdp", "af-xdp"])
def test_lists_and_limits_hold(cable: Cable, mode: str) -> None:
    limit = ("--limit", "1", "--limit-burst", "3")
    words = ("--echo", "7", "--allow", FAR6 + "/64", *limit, *MODES[mode])
    with cable.reflector(AGENT, *words) as reflector:
        assert cable.asker(FAR, 7).ask(b"x", 0.2) is None
        allowed = cable.asker(FAR6, 7)
        begin = time.monotonic()
        assert all(allowed.ask(b"x") is not None for _ in range(3))
        answered = 3 + sum(allowed.ask(b"x", 0.1) is not None for _ in range(5))
        whole_s = math.ceil(time.monotonic() - begin)
        result = reflector.stop()
    # So many at once, and one more each second.
    assert answered <= result["reflected"] <= 3 + whole_s
    assert adds_up(result)
    assert (result["refused"]["not_allowed"], result["received"]) == (1, 9)
    assert result["refused"]["rate"] == 8 - result["reflected"]


def test_authenticated_stamp_answers_each_packet_once(cable: Cable, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    with cable.reflector(AGENT, "--stamp", "862", "--key-file", str(path)) as reflector:
        asker = cable.asker(FAR, 862)
        request = signed(1)
        reply = asker.ask(request)
        assert reply is not None
        assert len(reply) == len(request) == 112
        assert reply[96:] == hmac.new(KEY, reply[:96], hashlib.sha256).digest()[:16]
        assert asker.ask(request, 0.2) is None
        assert asker.ask(signed(2, b"somebody else's key"), 0.2) is None
        assert asker.ask(sender_packet(3), 0.2) is None
        assert asker.ask(signed(4)) is not None
        result = reflector.stop()
    refused = {reason: count for reason, count in result["refused"].items() if count}
    assert refused == {"replayed": 1, "hmac": 1, "short": 1}
    assert adds_up(result)


def test_the_next_reply_tells_when_the_last_one_left(cable: Cable) -> None:
    with cable.reflector(AGENT, "--stamp", "862", "--stateful") as reflector:
        asker = cable.asker(FAR, 862)
        request = sender_packet(40) + bytes.fromhex("80070010") + bytes(16)
        first, second = asker.ask(request), asker.ask(request)
        assert first is not None
        assert second is not None
        result = reflector.stop()
    assert (struct.unpack(">I", first[:4]), struct.unpack(">I", second[:4])) == ((0,), (1,))
    assert first[48:64] == bytes(16)
    sequence, left, by = struct.unpack(">IQB", second[48:61])
    t3 = struct.unpack(">Q", first[4:12])[0]
    # Number 0, by software, after T3 was written and before the second was received.
    assert (sequence, by) == (0, 2)
    assert t3 < left < struct.unpack(">Q", second[16:24])[0]
    assert adds_up(result)


@pytest.mark.parametrize("mode", ["socket", "xdp", "af-xdp"])
def test_replies_with_state_have_numbers_of_their_own(cable: Cable, mode: str) -> None:
    services = ("--stamp", "862", "--twamp", "8620", "--stateful")
    with cable.reflector(AGENT, *services, *MODES[mode]) as reflector:
        for port in (862, 8620):
            asker = cable.asker(FAR, port)
            replies = [asker.ask(sender_packet(40 + number)) for number in range(3)]
            numbers = [struct.unpack(">I20xI", reply[:28]) for reply in replies if reply]
            assert numbers == [(0, 40), (1, 41), (2, 42)]
        result = reflector.stop()
    assert adds_up(result)


def tables(cable: Cable) -> str:
    return cable.far.must("nft", "list", "tables")


def forwarding(cable: Cable) -> str:
    return cable.far.must("sysctl", "-n", "net.ipv4.conf.far.forwarding").strip()


def has_no_table(cable: Cable) -> bool:
    """Say whether there is only the table of others and no forwarding in the end."""
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        if tables(cable).split() == ["table", "inet", "of_others"]:
            return forwarding(cable) == "0"
        time.sleep(0.05)
    return False


NAT = ("--mode", "nat", "--interface", "far", "--echo", "7", "--limit", "0")


def test_translation_leaves_nothing_behind_when_killed(cable: Cable) -> None:
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    cable.far.must("nft", "add", "table", "inet", "of_others")
    with cable.reflector(AGENT, *NAT) as killed:
        assert cable.asker(FAR, 7).ask(b"one") == b"one"
        assert forwarding(cable) == "1"
        assert "tailtrim_reflect_" in tables(cable)
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait()
        # The helper process undoes everything.
        assert has_no_table(cable)


def test_translation_removes_what_killed_processes_left(cable: Cable) -> None:
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    cable.far.must("nft", "add", "table", "inet", "of_others")
    with cable.reflector(AGENT, *NAT) as killed:
        pid = killed.process.pid
        (keeper,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # The one that would undo everything, too.
        for process in (int(keeper), pid):
            os.kill(process, signal.SIGKILL)
        killed.process.wait()
    assert "tailtrim_reflect_" in tables(cable)
    with cable.reflector(AGENT, *NAT) as reflector:
        asker = cable.asker(FAR, 7)
        for number in range(20):
            assert asker.ask(b"%d" % number) == b"%d" % number
        assert cable.asker(FAR, 7, source_port=99).ask(b"x", 0.2) is None
        result = reflector.stop()
    assert adds_up(result)
    assert (result["received"], result["reflected"]) == (21, 20)
    assert result["refused"]["source_port"] == 1
    assert len(result["removed"]) == 1
    # At once: it ends when all is undone.
    assert tables(cable).split() == ["table", "inet", "of_others"]
    assert forwarding(cable) == "0"


def test_translation_ends_when_its_counters_cannot_be_read(cable: Cable) -> None:
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    with cable.reflector(AGENT, *NAT) as reflector:
        pid = reflector.process.pid
        (keeper,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(keeper), signal.SIGKILL)
        _, said = reflector.process.communicate(timeout=20)
    assert reflector.process.returncode == 3
    assert said.startswith("error: ")
    assert "privileges" in said.splitlines()[0]


def test_a_mode_that_cannot_be_says_so(cable: Cable) -> None:
    for words, expected in (
        (("--mode", "nat", "--interface", "far", "--stamp", "862"), "reflects UDP echo only"),
        (("--mode", "xdp"), "name the interface"),
        (("--mode", "xdp", "--interface", "nowhere"), "nowhere"),
        (("--address", "192.0.2.1"), "expected an address of this host"),
        (("--key-file", "/dev/null"), "expected 16 or more"),
        (("--allow", "10.0.0.0/33"), "invalid prefix"),
    ):
        refused = cable.far.run(AGENT, "reflect", *words)
        assert refused.returncode in (2, 3), refused
        assert expected in refused.stderr


def peer(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.mark.packages
@pytest.mark.parametrize("mode", ["socket", "xdp", "nat"])
def test_hipercontracer_measures_against_it(cable: Cable, mode: str, tmp_path: Path) -> None:
    # 2.0 was the first with UDP.
    peer_words = [*entering("sid-peers"), "hipercontracer"]
    words = MODES.get(mode, ("--mode", "nat", "--interface", "far"))
    tmp_path.chmod(0o777)
    with cable.reflector(AGENT, "--echo", "7", *words) as reflector:
        done = cable.near.run(
            *peer_words, "--source", NEAR, "--destination", FAR, "--ping", "--iomodule", "UDP",
            "--iterations", "3", "--pinginterval", "200", "--pingexpiration", "1000",
            "--pingudpdestinationport", "7", "--resultsdirectory", str(tmp_path),
            "--resultscompression", "None", "--user", "root",
        )  # fmt: skip
        result = reflector.stop()
    lines = [
        line.split()
        for file in tmp_path.rglob("*.hpct")
        for line in file.read_text().splitlines()
        if line.startswith("#P")
    ]
    assert lines, f"no results: {done.stdout[-300:]}{done.stderr[-300:]}"
    assert result["reflected"] >= len([line for line in lines if line[-8] == "255"]) >= 1
    assert adds_up(result)


@pytest.mark.packages
def test_sockperf_measures_against_its_echo(cable: Cable) -> None:
    program = peer("sockperf")
    with cable.reflector(AGENT, "--echo", "11111", "--limit", "0") as reflector:
        done = cable.near.run(program, "ping-pong", "-i", FAR, "-p", "11111", "-t", "1")
        result = reflector.stop()
    # It looks for the mark of its own server in replies, and says where that is missing.
    assert result["reflected"] > 0, done.stdout + done.stderr
    assert adds_up(result)


@pytest.mark.packages
def test_irtt_is_no_echo_but_is_not_amplified(cable: Cable) -> None:
    program = peer("irtt")
    with cable.reflector(AGENT, "--echo", "2112") as reflector:
        cable.near.run(program, "client", "-d", "1s", "--timeouts=200ms", FAR, timeout_s=20)
        result = reflector.stop()
    assert result["received"] >= 1
    assert adds_up(result)


@pytest.mark.parametrize("mode", ["socket", "xdp", "af-xdp"])
def test_invented_senders_get_no_more_than_they_sent(cable: Cable, mode: str) -> None:
    def moved(direction: str) -> int:
        (told,) = json.loads(cable.far.must("ip", "-s", "-j", "link", "show", "far"))
        return int(told["stats64"][direction]["bytes"])

    # Hosts that do not exist are not asked for, nor is anything else sent meanwhile.
    for last in range(20, 40):
        cable.far.must(
            *("ip", "neigh", "add", f"10.77.0.{last}", "dev", "far", "lladdr", "02:00:00:00:00:99")
        )
    words = ("--stamp", "862", "--echo", "7", "--limit", "1", "--limit-burst", "2", *MODES[mode])
    with cable.reflector(AGENT, *words) as reflector:
        raw = cable.raw_sender()
        fences = [cable.asker(FAR, port) for port in (862, 7)]
        before = (moved("rx"), moved("tx"))
        begin = time.monotonic()
        for round_ in range(10):
            for last in range(20, 40):
                for port in (40_000 + round_, 862, 7, 53):
                    raw.sendto(udp(f"10.77.0.{last}", port, 862, sender_packet(round_)), (FAR, 0))
                    raw.sendto(udp(f"10.77.0.{last}", port, 7, b"x" * 300), (FAR, 0))
            cable.until_read()
        # A client that is answered now comes behind them all: this one may ask twice.
        assert all(fence.ask(sender_packet(0)) is not None for fence in fences)
        whole_s = math.ceil(time.monotonic() - begin)
        after = (moved("rx"), moved("tx"))
        result = reflector.stop()
    assert adds_up(result)
    assert result["received"] == 1_600 + 2
    # Two at once of each, and one more each second.
    assert result["refused"]["source_port"] == 1_200
    assert 40 <= result["reflected"] - 2 <= 20 * (2 + whole_s)
    assert result["refused"]["rate"] == 400 + 2 - result["reflected"]
    assert after[1] - before[1] < after[0] - before[0]


@pytest.mark.parametrize("mode", ["socket", "xdp"])
def test_what_is_longer_than_the_room_is_refused(cable: Cable, mode: str) -> None:
    with cable.reflector(AGENT, "--echo", "7", "--stamp", "862", *MODES[mode]) as reflector:
        for port in (7, 862):
            assert cable.asker(FAR, port).ask(sender_packet(1) + bytes(20_000), 0.3) is None
            assert cable.asker(FAR, port).ask(sender_packet(1) + bytes(5_000)) is not None
        result = reflector.stop()
    assert (result["refused"]["too_long"], result["reflected"]) == (2, 2)
    assert adds_up(result)


def udp(source: str, source_port: int, port: int, payload: bytes) -> bytes:
    """Return an IPv4 packet with a sender of one's choice; over IPv4, UDP needs no checksum."""
    header = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 17, 0,
        socket.inet_aton(source), socket.inet_aton(FAR),
    )  # fmt: skip
    return header + struct.pack(">HHHH", source_port, port, 8 + len(payload), 0) + payload
