"""Round trips between two namespaces: every probe and every datagram counted."""

from __future__ import annotations

import re
import signal
import socket
import struct
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
import tools
from pairs import FAR_6, NEAR, only_stream, paired
from reflectors import (
    FAR,
    TIMEOUT_S,
    Altering,
    Counting,
    Hostile,
    LosingReplies,
    Responder,
    Stamps,
)

from tailtrim.errors import HostError
from tailtrim.laboratory.devices.nftables import NFT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pairs import Pair


pytestmark = pytest.mark.reflectors
TIMEOUT = ("--timeout", str(TIMEOUT_S))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return two hosts for all tests here: whatever one lays between them, it takes away."""
    with paired(tmp_path_factory.mktemp("pair")) as pair:
        yield pair


@pytest.mark.parametrize("target", [pytest.param(FAR, marks=pytest.mark.fast), f"[{FAR_6}]:862"])
def test_stamp_takes_the_residence_out(pair: Pair, target: str) -> None:
    keeps_ns, ahead_ns = 20_000_000, 500_000_000
    with Stamps(pair.far, ahead_ns=ahead_ns, keeps_ns=keeps_ns) as reflector:
        stream = pair.measure(
            *(target, "-p", "stamp", "--same-clock", "--rate", "20pps", "-c", "20"),
        )
    assert stream["probes"]["answered"] == 20
    assert stream["parts"]["residence"]["ns"]["min"] >= keeps_ns
    # The shortest ones: on a machine that does other things, this reflector may be late.
    network = stream["parts"]["network"]["ns"]["min"]
    assert stream["parts"]["software"]["ns"]["min"] > keeps_ns > network > 0
    one_way = stream["one_way"]
    # The user says that the clocks are one, and so their difference shows.
    assert one_way["forward"]["ns"]["min"] > ahead_ns
    assert one_way["backward"]["ns"]["min"] < 0
    assert one_way["clock_bound_ns"] == 0
    for number, probe in enumerate(reflector.probes):
        assert len(probe) == 44
        assert struct.unpack_from(">I", probe)[0] == number
        # A number of the session, never zero; the rest must be.
        assert probe[14:16] != bytes(2)
        assert probe[16:] == bytes(28)
        seconds = struct.unpack_from(">I", probe, 4)[0] - reflector.SINCE_1900_S
        assert abs(seconds - time.time()) < 60


def test_without_synchronised_clocks_there_are_no_one_way_delays(pair: Pair) -> None:
    with Stamps(pair.far, ahead_ns=0, keeps_ns=0):
        stream = pair.measure(FAR, "-p", "twamp-light", "--rate", "100pps", "-c", "20")
    assert stream["probes"]["answered"] == 20
    assert stream["parts"]["residence"]["samples"] == 20
    if stream["one_way"] is not None:
        # This host is kept synchronised; both bounds count, that of the far host is 244 µs.
        assert stream["one_way"]["clock_bound_ns"] > 244_000


@pytest.mark.parametrize("protocol", ["stamp", "twamp-light"])
@pytest.mark.parametrize("ahead_ns", [267_000_000, -267_000_000])
def test_a_reflector_that_answers_twice_and_has_another_time(
    pair: Pair, protocol: str, ahead_ns: int
) -> None:
    with Stamps(pair.far, ahead_ns=ahead_ns, keeps_ns=0, replies=2):
        stream = pair.measure(FAR, "-p", protocol, "--rate", "100pps", "-c", "10")
    assert (stream["probes"]["answered"], stream["replies"]["duplicate"]) == (10, 10)
    # It says that its clock is right within 244 µs.
    assert stream["one_way"] is None


@pytest.mark.parametrize(
    ("level", "app_receive", "software"),
    [("application", 0, 0), ("arrival", 50, 0), ("software", 50, 50)],
)
def test_a_level_costs_its_own_stamps(
    pair: Pair, level: str, app_receive: int, software: int
) -> None:
    stream = pair.measure(FAR, "-p", "icmp", "--stamps", level, "--rate", "200pps", "-c", "50")
    parts = stream["parts"]
    assert stream["summary"]["samples"] == 50
    assert parts["application"]["samples"] == 50
    # Other sockets of the host may have asked for stamps: this one is not told of them.
    assert parts["app_receive"]["samples"] == app_receive
    assert parts["software"]["samples"] == software


@pytest.mark.parametrize("level", ["software", "application"])
def test_known_faults_are_counted_exactly(pair: Pair, level: str) -> None:
    with Responder(pair.far):
        stream = pair.measure(FAR, "--stamps", level, "--rate", "80pps", "-c", "200", *TIMEOUT)
    probes, replies = stream["probes"], stream["replies"]
    assert probes["due"] == 200
    # Those of the last moments come after the end: within the last 0.8 s of 2.5.
    assert probes["late"] + probes["lost"] == 40
    assert 10 <= probes["late"] <= 20
    assert probes["answered"] == 160
    assert replies["duplicate"] == 20
    assert replies["malformed"] == 20
    assert replies["stray"] == 20
    # Number 1 comes after number 3.
    assert stream["reordered"] == 20
    assert stream["summary"]["ingress"]["beyond_window"] == probes["late"]


@pytest.mark.parametrize("protocol", ["stamp", "twamp-light"])
def test_the_far_hosts_numbers_tell_the_way_of_losses(pair: Pair, protocol: str) -> None:
    with Counting(pair.far):
        stream = pair.measure(
            *(FAR, "-p", protocol, "--rate", "200pps", "-c", "100", *TIMEOUT),
        )
    assert (stream["probes"]["answered"], stream["probes"]["lost"]) == (80, 20)
    assert stream["lost_ways"] == {"there": 10, "back": 10, "unknown": 0}


def ways(told: str) -> list[int]:
    """Return how many were lost there, back, and on a way that is unknown, as a user is told."""
    (line,) = [line for line in told.splitlines() if "way back" in line]
    return [int(number) for number in re.findall(r"\d+", line)]


def test_a_loss_on_the_way_back_is_told_with_what_tells_the_way(pair: Pair) -> None:
    words = (FAR, "-p", "stamp", "--rate", "200pps", "-c", "100", *TIMEOUT)
    with LosingReplies(pair.far):
        plain, told = pair.ping(*words), pair.ping(*words, "--follow-up")
    # Until a number differs from the probe's, it may be a reflector without state.
    assert (ways(plain), ways(told)) == ([0, 0, 10], [0, 10, 0])
    assert "--follow-up" in plain
    assert "hint" not in told


def test_a_reply_with_another_t1_is_no_answer(pair: Pair) -> None:
    with Altering(pair.far):
        stream = pair.measure(
            *(FAR, "-p", "stamp", "--rate", "200pps", "-c", "100", *TIMEOUT),
        )
    probes = stream["probes"]
    assert (probes["answered"], probes["altered"], probes["lost"]) == (80, 20, 0)
    assert stream["replies"]["altered"] == 20
    (warning,) = stream["summary"]["warnings"]
    assert (warning["code"], warning["count"]) == ("altered", 20)


def test_what_the_far_host_tells_later_is_its_residence(pair: Pair) -> None:
    words = (FAR, "-p", "stamp", "--rate", "100pps", "-c", "100", *TIMEOUT)
    with Counting(pair.far):
        without = pair.measure(*words)
        stream = pair.measure(*words, "--follow-up")
    assert "follow_up" not in without
    # The reflector sleeps behind T3.
    assert stream["parts"]["residence"]["ns"]["p50"] > 200_000
    assert without["parts"]["residence"]["ns"]["min"] < 200_000
    # It tells of the last one only: of ten, one was lost on its way behind the one before it.
    assert stream["follow_up"] == {"told": 69, "untold": 11}


def test_replies_that_are_none_are_counted_by_reason(pair: Pair) -> None:
    with Hostile(pair.far):
        stream = pair.measure(FAR, "--rate", "50pps", "-c", "20", *TIMEOUT)
    assert stream["probes"]["answered"] == 20
    replies = stream["replies"]
    # Too long, empty, cut; of another number; twice again. What strangers send is not seen.
    assert (replies["malformed"], replies["stray"]) == (60, 20)
    # With the first reply to the last probe it ends.
    assert 38 <= replies["duplicate"] <= 40


def test_unsigned_replies_to_signed_probes_are_none(pair: Pair, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"sixteen letters!")
    with Stamps(pair.far, ahead_ns=0, keeps_ns=0):
        stream = pair.measure(
            *(FAR, "-p", "stamp", "--key-file", str(key), "--packet-bytes", "200"),
            *("--rate", "100pps", "-c", "10", *TIMEOUT),
        )
    # Its replies have 44 bytes; those of a signed session have 112.
    assert (stream["replies"]["malformed"], stream["probes"]["lost"]) == (10, 10)


@pytest.mark.parametrize("target", [FAR, FAR_6])
def test_icmp_has_all_its_parts(pair: Pair, target: str) -> None:
    stream = pair.measure(target, "-p", "icmp", "--rate", "500pps", "-c", "200")
    assert stream["probes"]["answered"] == 200
    parts = stream["parts"]
    for part in ("app_send", "queueing", "network", "app_receive", "application", "software"):
        assert (parts[part]["samples"], parts[part]["missing"]) == (200, 0), part
        assert parts[part]["ns"]["min"] >= 0
    assert parts["residence"]["samples"] == 0
    assert parts["software"]["ns"]["p50"] < parts["application"]["ns"]["p50"]


def test_a_filter_that_drops_every_tenth(pair: Pair) -> None:
    tools.need(NFT)
    rules = """
        table ip t {
            chain c {
                type filter hook input priority 0;
                ip protocol icmp numgen inc mod 10 0 drop
            }
        }
    """
    try:
        pair.far.run("nft", "-f", "-", given=rules)
    except HostError as problem:
        pytest.skip(f"no such filter here: {problem}")
    try:
        bursts = ("--rate", "1kpps", "--schedule", "burst:50")
        stream = pair.measure(FAR, "-p", "icmp", *bursts, "-c", "500", *TIMEOUT)
    finally:
        pair.far.run("nft", "delete", "table", "ip", "t")
    probes = stream["probes"]
    assert (probes["due"], probes["lost"], probes["answered"]) == (500, 50, 450)
    adjusted = {row["p"]: row["value"] for row in stream["summary"]["delivery_adjusted_ns"]}
    assert adjusted["0.5"] is not None
    assert adjusted["0.99"] is None


def on_a_bad_wire(way: int, frame: bytes) -> Sequence[int]:
    """Lose, double or hold some of the echo replies, by the last digit of their number."""
    ip, icmp = frame[14:], frame[34:]
    if way == 0 or (frame[12:14], ip[9:10], icmp[:1]) != (b"\x08\0", b"\x01", b"\0"):
        return [0]
    digit = int.from_bytes(icmp[6:8]) % 10
    return {3: [], 4: [0, 0], 5: [300_000_000]}.get(digit, [0])


@pytest.mark.fast
def test_a_wire_loses_duplicates_and_reorders(tmp_path: Path) -> None:
    with paired(tmp_path, on_a_bad_wire) as pair:
        stream = pair.measure(FAR, "-p", "icmp", "--rate", "100pps", "-c", "200", *TIMEOUT)
    probes, replies = stream["probes"], stream["replies"]
    assert (probes["lost"], probes["answered"]) == (20, 180)
    assert replies["duplicate"] == 20
    # Those that are held come after some that were sent later.
    assert stream["reordered"] == 20


def test_nobody_there(pair: Pair) -> None:
    stream = pair.measure(FAR, "--rate", "100pps", "-c", "20", *TIMEOUT)
    probes = stream["probes"]
    assert probes["undelivered"] >= 1
    assert probes["undelivered"] + probes["lost"] == 20
    assert stream["obstacles"] == {"port unreachable": probes["undelivered"]}
    told = {warning["code"]: warning["text"] for warning in stream["summary"]["warnings"]}
    assert told["unanswered"] == "no probe was answered"
    assert "egress_empty" not in told
    assert stream["summary"]["ingress"]["lost"] == 20


def test_the_class_and_the_size_of_probes(pair: Pair) -> None:
    def open_socket() -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        opened.bind((FAR, 7))
        opened.settimeout(5)
        return opened

    with pair.far.inside(open_socket) as listening:
        pair.measure(
            *(FAR, "--dscp", "EF", "--packet-bytes", "200", "--src-port", "4711"),
            *("-c", "1", "--timeout", "0.1"),
        )
        probe, control, _, client = listening.recvmsg(2048, 64)
    assert len(probe) == 200 - 28
    assert control[0][2][0] == 46 << 2
    assert client == (NEAR, 4711)


def test_icmp_has_no_ports(pair: Pair) -> None:
    told = pair.near.run(pair.lab.agent, "ping", FAR, "-p", "icmp", "-c", "1")
    assert f": icmp to {FAR} from {NEAR}, " in told


def test_an_interrupted_ping_tells_what_it_has(pair: Pair) -> None:
    words = ("ping", FAR, "-p", "icmp", "--rate", "100pps", "--json")
    with subprocess.Popen(
        [*pair.near.prefix, pair.lab.agent, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        pair.until_received(50)
        # The first process is what starts the agent in the namespace; it becomes the agent.
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    assert only_stream(output)["probes"]["answered"] > 40
