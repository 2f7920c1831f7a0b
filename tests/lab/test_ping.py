"""Round trips between two namespaces: every probe and every datagram counted, beside real peers."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from reflectors import FAR, TIMEOUT_S, Counting, Hostile, Responder, Stamps

from tailtrim.errors import HostError
from tailtrim.roundtrip import read_hpct, read_irtt
from tailtrim.testbed.node import Node, link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from laboratory import Lab

NEAR = "10.99.0.1"
NEAR_6, FAR_6 = "fd99::1", "fd99::2"


class Pair:
    """Two hosts and a fibre between them."""

    def __init__(self, near: Node, far: Node, lab: Lab) -> None:
        self.near, self.far, self.lab = near, far, lab
        link(near, "veth0", far, "veth0", macs=("02:00:00:00:00:01", "02:00:00:00:00:02"), mtu=1500)
        for node, v4, v6 in ((near, NEAR, NEAR_6), (far, FAR, FAR_6)):
            node.run("ip", "address", "add", f"{v4}/24", "dev", "veth0")
            node.run("ip", "address", "add", f"{v6}/64", "dev", "veth0", "nodad")
            for name in ("lo", "veth0"):
                node.run("ip", "link", "set", name, "up")
        # A link takes its time until IPv6 goes through it; the first probes would wait or be lost.
        for target in (FAR, FAR_6):
            self.wait_for(target)

    def wait_for(self, target: str) -> None:
        command = [self.lab.agent, "ping", target, "-p", "icmp", "-n", "1", "--timeout", "0.2"]
        for _ in range(50):
            tried = subprocess.run([*self.near.prefix, *command], capture_output=True, check=False)
            if tried.returncode == 0:
                return
        raise AssertionError(tried.stderr.decode())

    def measure(self, *words: str) -> dict[str, Any]:
        """Run the agent's ping and return its only stream, checked."""
        command = [*self.near.prefix, self.lab.agent, "ping", *words, "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode in {0, 1}, ended.stderr
        (stream,) = json.loads(ended.stdout)["streams"]
        add_up(stream)
        assert isinstance(stream, dict)
        return stream


def add_up(stream: dict[str, Any]) -> None:
    """See that every probe and every datagram is counted once."""
    for counts, whole in ((stream["probes"], "due"), (stream["replies"], "datagrams")):
        parts = [value for name, value in counts.items() if name != whole]
        assert counts[whole] == sum(parts), counts
    assert sum(stream["lost_ways"].values()) == stream["probes"]["lost"]
    if "follow_up" in stream:
        assert sum(stream["follow_up"].values()) == stream["probes"]["answered"]
    for side in ("ingress", "egress"):
        counts = stream["summary"][side]
        assert counts["packets"] == sum(v for k, v in counts.items() if k != "packets"), counts
    assert stream["probes"]["answered"] == stream["summary"]["samples"] + stream["unstamped"]
    assert stream["replies"]["first"] == stream["probes"]["answered"]
    assert stream["replies"]["late"] == stream["probes"]["late"]


@pytest.fixture
def pair(lab: Lab) -> Iterator[Pair]:
    with Node("near") as near, Node("far") as far:
        yield Pair(near, far, lab)


@pytest.mark.parametrize("target", [FAR, f"[{FAR_6}]:862"])
def test_stamp_takes_the_residence_out(pair: Pair, target: str) -> None:
    with Stamps(pair.far, ahead_ns=50_000_000, keeps_ns=3_000_000) as reflector:
        stream = pair.measure(
            *(target, "-p", "stamp", "--same-clock", "--rate", "20pps", "-n", "20"),
        )
    assert stream["probes"]["answered"] == 20
    assert stream["parts"]["residence"]["ns"]["min"] >= 3_000_000
    # The shortest ones: on a machine that does other things, this reflector may be late.
    network = stream["parts"]["network"]["ns"]["min"]
    assert stream["parts"]["software"]["ns"]["min"] > 3_000_000 > network > 0
    one_way = stream["one_way"]
    # The user says that the clocks are one, and so their difference shows.
    assert one_way["forward"]["ns"]["min"] > 50_000_000
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
        stream = pair.measure(FAR, "-p", "twamp-light", "--rate", "100pps", "-n", "20")
    assert stream["probes"]["answered"] == 20
    assert stream["parts"]["residence"]["samples"] == 20
    if stream["one_way"] is not None:
        # This host is kept synchronised; both bounds count, that of the far host is 244 µs.
        assert stream["one_way"]["clock_bound_ns"] > 244_000


def test_the_applications_view_costs_no_stamps(pair: Pair) -> None:
    stream = pair.measure(
        FAR, "-p", "icmp", "--level", "application", "--rate", "200pps", "-n", "50"
    )
    assert stream["summary"]["samples"] == 50
    assert stream["parts"]["software"]["missing"] == 50
    assert stream["parts"]["app_receive"]["samples"] == 50


def test_known_faults_are_counted_exactly(pair: Pair) -> None:
    with Responder(pair.far):
        # The responder is slow: a millisecond a probe. The last hundred wait for the late ones.
        stream = pair.measure(
            FAR, "--rate", "100pps", "-n", "200", "--timeout", str(TIMEOUT_S),
        )  # fmt: skip
    probes, replies = stream["probes"], stream["replies"]
    assert probes["due"] == 200
    # Those of the last moments come when nobody listens any more.
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
            *(FAR, "-p", protocol, "--rate", "200pps", "-n", "100", "--timeout", "0.3"),
        )
    assert (stream["probes"]["answered"], stream["probes"]["lost"]) == (80, 20)
    assert stream["lost_ways"] == {"there": 10, "back": 10, "unknown": 0}


def test_what_the_far_host_tells_later_is_its_residence(pair: Pair) -> None:
    words = (FAR, "-p", "stamp", "--rate", "100pps", "-n", "100", "--timeout", "0.3")
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
        stream = pair.measure(FAR, "--rate", "50pps", "-n", "20", "--timeout", "0.5")
    assert stream["probes"]["answered"] == 20
    replies = stream["replies"]
    # Too long, empty, cut; of another number; twice again. What strangers send is not seen.
    assert (replies["malformed"], replies["stray"], replies["duplicate"]) == (60, 20, 40)


def test_unsigned_replies_to_signed_probes_are_none(pair: Pair, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"sixteen letters!")
    with Stamps(pair.far, ahead_ns=0, keeps_ns=0):
        stream = pair.measure(
            *(FAR, "-p", "stamp", "--key-file", str(key), "--packet-bytes", "200"),
            *("--rate", "100pps", "-n", "10", "--timeout", "0.2"),
        )
    # Its replies have 44 bytes; those of a signed session have 112.
    assert (stream["replies"]["malformed"], stream["probes"]["lost"]) == (10, 10)


@pytest.mark.parametrize("target", [FAR, FAR_6])
def test_icmp_has_all_its_parts(pair: Pair, target: str) -> None:
    stream = pair.measure(target, "-p", "icmp", "--rate", "500pps", "-n", "200")
    assert stream["probes"]["answered"] == 200
    parts = stream["parts"]
    for part in ("app_send", "queueing", "network", "app_receive", "application", "software"):
        assert (parts[part]["samples"], parts[part]["missing"]) == (200, 0), part
        assert parts[part]["ns"]["min"] >= 0
    assert parts["residence"]["samples"] == 0
    assert parts["software"]["ns"]["p50"] < parts["application"]["ns"]["p50"]


def test_a_filter_that_drops_every_tenth(pair: Pair) -> None:
    if shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin") is None:
        pytest.skip("nft is not installed (Debian package nftables)")
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
    stream = pair.measure(
        FAR,
        "-p",
        "icmp",
        "--rate",
        "1kpps",
        "--schedule",
        "burst:50",
        "-n",
        "500",
        "--timeout",
        "0.5",
    )
    probes = stream["probes"]
    assert (probes["due"], probes["lost"], probes["answered"]) == (500, 50, 450)
    adjusted = {row["p"]: row["value"] for row in stream["summary"]["delivery_adjusted_ns"]}
    assert adjusted["0.5"] is not None
    assert adjusted["0.99"] is None


def test_netem_loses_duplicates_and_reorders(pair: Pair) -> None:
    try:
        pair.far.run(
            *("tc", "qdisc", "add", "dev", "veth0", "root", "netem"),
            *("delay", "2ms", "reorder", "90%", "loss", "20%", "duplicate", "20%"),
        )
    except HostError as problem:
        pytest.skip(f"no netem here: {problem}")
    stream = pair.measure(
        FAR,
        "-p",
        "icmp",
        "--rate",
        "2kpps",
        "--schedule",
        "burst:20",
        "-n",
        "2000",
        "--timeout",
        "0.5",
    )
    assert 250 < stream["probes"]["lost"] < 600
    assert stream["replies"]["duplicate"] > 100
    assert stream["reordered"] > 20


def test_nobody_there(pair: Pair) -> None:
    stream = pair.measure(FAR, "--rate", "100pps", "-n", "20", "--timeout", "0.3")
    probes = stream["probes"]
    assert probes["undelivered"] >= 1
    assert probes["undelivered"] + probes["lost"] == 20
    assert stream["obstacles"] == {"port unreachable": probes["undelivered"]}
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
            *(FAR, "--dscp", "EF", "--packet-bytes", "200", "--source-port", "4711"),
            *("-n", "1", "--timeout", "0.1"),
        )
        probe, control, _, client = listening.recvmsg(2048, 64)
    assert len(probe) == 200 - 28
    assert control[0][2][0] == 46 << 2
    assert client == (NEAR, 4711)


def test_beside_iputils(pair: Pair) -> None:
    if shutil.which("ping") is None:
        pytest.skip("ping is not installed (Debian package iputils-ping)")
    text = pair.near.run("ping", "-n", "-i", "0.005", "-c", "200", FAR)
    theirs_ns = 1e6 * statistics.median(map(float, re.findall(r"time=([\d.]+) ms", text)))
    ours = pair.measure(FAR, "-p", "icmp", "--rate", "200pps", "-n", "200")
    assert 0.1 < ours["parts"]["application"]["ns"]["p50"] / theirs_ns < 10
    assert ours["parts"]["software"]["ns"]["p50"] < 10 * theirs_ns


def test_beside_irtt(pair: Pair, tmp_path: Path) -> None:
    if shutil.which("irtt") is None:
        pytest.skip("irtt is not installed (Debian package irtt)")
    server = subprocess.Popen(
        [*pair.far.prefix, "irtt", "server", "-b", FAR], stdout=subprocess.DEVNULL
    )
    try:
        time.sleep(0.5)
        place = tmp_path / "irtt.json.gz"
        pair.near.run("irtt", "client", "-i", "10ms", "-d", "1s", "-q", "-o", str(place), FAR)
    finally:
        server.kill()
        server.wait()
    session = read_irtt(place)
    assert session.remote == f"{FAR}:2112"
    trips = [trip for trip in session.round_trips if trip.round_trip_ns is not None]
    assert len(trips) == len(session.round_trips) == session.stats["packets_sent"]
    took = sorted(trip.round_trip_ns or 0 for trip in trips)
    assert took[0] == session.stats["rtt"]["min"]
    assert took[-1] == session.stats["rtt"]["max"]
    for trip in trips:
        assert None not in {trip.forward_ns, trip.backward_ns, trip.far_sent_ns}
        assert (trip.forward_ns or 0) + (trip.backward_ns or 0) == pytest.approx(
            trip.round_trip_ns, abs=2_000
        )
    ours = pair.measure(FAR, "-p", "icmp", "--rate", "200pps", "-n", "200")
    assert 0.02 < ours["parts"]["application"]["ns"]["p50"] / statistics.median(took) < 5
    imported = pair.lab.run("import", str(place), "--out", "irtt", "--json")
    assert imported.returncode == 0, imported.stderr
    summary = json.loads(imported.stdout)
    assert (summary["samples"], summary["latency_ns"]["max"]) == (len(took), took[-1])


def test_beside_sockperf(pair: Pair) -> None:
    if shutil.which("sockperf") is None:
        pytest.skip("sockperf is not installed (Debian package sockperf)")
    server = subprocess.Popen(
        [*pair.far.prefix, "sockperf", "server", "-i", FAR], stdout=subprocess.DEVNULL
    )
    try:
        time.sleep(0.5)
        text = pair.near.run("sockperf", "ping-pong", "-i", FAR, "-t", "1", "--full-rtt")
    finally:
        server.kill()
        server.wait()
    found = re.search(r"percentile 50\.000 *= *([\d.]+)", text)
    assert found, text
    ours = pair.measure(FAR, "-p", "icmp", "--rate", "500pps", "-n", "500")
    # Its probes follow each other at once, ours wake the hosts.
    assert 0.02 < ours["parts"]["application"]["ns"]["p50"] / (1e3 * float(found[1])) < 50


def test_what_hipercontracer_writes(pair: Pair, tmp_path: Path) -> None:
    if shutil.which("hipercontracer") is None:
        pytest.skip("hipercontracer is not installed (Debian package hipercontracer)")
    folder = tmp_path / "hpct"
    folder.mkdir()
    # It runs until it is told to end.
    program = subprocess.Popen(
        [
            *pair.near.prefix,
            *("hipercontracer", "-S", NEAR, "-D", FAR, "-P", "--pinginterval", "200"),
            *("-R", str(folder), "-U", "root"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(2)
    program.send_signal(signal.SIGINT)
    program.wait(30)
    (file,) = [path for path in folder.iterdir() if path.is_file()]
    pings = read_hpct(file).pings
    assert pings
    for ping in pings:
        assert (ping.source, ping.destination, ping.status) == (NEAR, FAR, 255)
        assert 0 < ping.application_ns < 10**9
        assert ping.packet_bytes == 44
    imported = pair.lab.run("import", str(file), "--out", "run", "--json")
    assert imported.returncode == 0, imported.stderr
    assert json.loads(imported.stdout)["samples"] == len(pings)


def test_a_run_directory_and_hipercontracers_format(pair: Pair) -> None:
    command = pair.lab.command(
        "ping", FAR, "-p", "icmp", "--rate", "500pps", "-n", "300", "--out", "run", "--json"
    )
    ended = subprocess.run(
        [*pair.near.prefix, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=pair.lab.folder,
    )
    assert ended.returncode == 0, ended.stderr
    (stream,) = json.loads(ended.stdout)["streams"]
    run = pair.lab.folder / "run"
    assert json.loads((run / "summary.json").read_text()) == stream["summary"]
    reported = pair.lab.run("report", "run")
    assert reported.returncode == 0, reported.stderr
    converted = pair.lab.run("convert", "run", "--to", "hpct")
    assert converted.returncode == 0, converted.stderr
    place = Path(converted.stdout.strip())
    assert re.fullmatch(
        rf"Ping-ICMP-#0-{NEAR}-\d{{8}}T\d{{6}}\.\d{{6}}-000000001\.hpct\.xz", place.name
    )
    pings = read_hpct(pair.lab.folder / place).pings
    assert len(pings) == 300
    theirs = shutil.which("hpct-results")
    if theirs is not None:
        table = pair.lab.folder / "theirs.csv"
        subprocess.run([theirs, str(pair.lab.folder / place), "-o", str(table)], check=True)
        assert len(table.read_text().splitlines()) == 301
    assert {ping.time_source for ping in pings} == {0x11666600}
    software = sorted(ping.software_ns for ping in pings)
    assert software[-1] == stream["parts"]["software"]["ns"]["max"]
    assert all(
        ping.application_ns
        == ping.app_send_ns + ping.queueing_ns + ping.software_ns + ping.app_receive_ns
        for ping in pings
    )


def test_an_interrupted_ping_tells_what_it_has(pair: Pair) -> None:
    process = subprocess.Popen(
        [
            *pair.near.prefix,
            pair.lab.agent,
            "ping",
            FAR,
            "-p",
            "icmp",
            "--rate",
            "100pps",
            "--json",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    time.sleep(1)
    # The first process is what starts the agent in the namespace; it becomes the agent.
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=10)
    assert process.returncode == 0
    (stream,) = json.loads(output)["streams"]
    add_up(stream)
    assert stream["probes"]["answered"] > 10
