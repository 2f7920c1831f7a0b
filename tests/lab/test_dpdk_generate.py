"""Loads that tailtrim-dpdk sends: all, in order, none before its time, every departure told."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dpdk import Dpdk, capture, frame, program, read, written

from tailtrim.laboratory.nodes.agent import Agent
from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from laboratory import Lab

LEAD_NS = 200_000_000


def apart(count: int, gap_ns: int, length: int = 60) -> list[tuple[int, bytes]]:
    """Return frames that are due from soon on."""
    start_ns = time.time_ns() + LEAD_NS
    return [(start_ns + number * gap_ns, frame(number, length)) for number in range(count)]


def null(folder: Path, out: str) -> str:
    nothing = written(folder / "nothing.pcap", [])
    return f"net_pcap0,rx_pcap={nothing},tx_pcap={folder / out}"


def test_all_frames_leave_in_order_and_with_the_zeros_that_were_left_out(tmp_path: Path) -> None:
    with Dpdk("generate", "--interface", null(tmp_path, "out.pcap")) as generate:
        load = apart(5_000, 20_000, 1_000)
        generate.give(capture(load, kept=40))
        told = generate.result()
    assert (told["due"], told["sent"], told["refused"]) == (5_000, 5_000, 0)
    assert told["sent_bytes"] == 5_000 * 1_000
    assert (told["departures"], told["untold"]) == ("software", 0)
    assert [one for _, one in read(tmp_path / "out.pcap")] == [one for _, one in load]


def departures(data: bytes) -> list[tuple[int, int]]:
    return list(struct.iter_unpack("<qq", data))


@pytest.mark.parametrize("queues", [1, 2])
def test_a_socket_is_told_each_departure_and_none_is_before_its_time(queues: int) -> None:
    ours, theirs = socket.socketpair()
    words = ("--interface", "net_null0", "--queues", str(queues))
    with ours, theirs, Dpdk("generate", *words, given=theirs.fileno()) as generate:
        theirs.close()
        load = apart(2_000, 100_000)
        ours.sendall(capture(load))
        ours.shutdown(socket.SHUT_WR)
        with ours.makefile("rb") as file:
            seen = departures(file.read())
        told = generate.result()
    assert sorted(intended for intended, _ in seen) == [at_ns for at_ns, _ in load]
    lateness = sorted(actual - intended for intended, actual in seen)
    assert lateness[0] >= 0
    assert told["latest_ns"] == lateness[-1]


def test_what_is_due_at_once_leaves_at_once() -> None:
    with Dpdk("generate", "--interface", "net_null0") as generate:
        generate.give(capture([(1, frame(number)) for number in range(20_000)]))
        told = generate.result()
    assert told["sent"] == 20_000


def test_it_ends_while_its_input_and_its_schedule_go_on() -> None:
    with Dpdk("generate", "--interface", "net_null0") as generate:
        assert generate.process.stdin
        generate.process.stdin.write(capture(apart(100, 10**10)))
        generate.process.stdin.flush()
        generate.until(1)
        assert generate.stop()["sent"] == 1


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"no capture at all: too short", "expected a capture of Ethernet frames in nanoseconds"),
        (capture([(1, frame(0))])[:-1], "it ends within frame 0"),
        (capture([(1, frame(0)), (2, b"short")]), "frame 1 has 5 bytes, 5 of them there"),
        (capture([(1, frame(0, 2_049))]), "frame 0 has 2049 bytes"),
    ],
)
def test_a_load_that_cannot_be_read_is_told(data: bytes, says: str) -> None:
    ended = subprocess.run(
        [program(), "generate", "--interface", "net_null0"],
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 2
    assert ended.stderr.decode().startswith("error: standard input: ")
    assert says in ended.stderr.decode()


def agent(lab: Lab, *words: str) -> list[str]:
    # The agent finds it on the PATH.
    lab.environment["PATH"] = f"{Path(program()).parent}:{lab.environment['PATH']}"
    return [lab.agent, "generate", *words]


def generated(output: str) -> dict[str, Any]:
    events = [json.loads(line) for line in output.splitlines()]
    assert [event["event"] for event in events] == ["ready", "result"]
    return dict(events[-1])


def test_the_agent_s_schedules_leave_by_dpdk(lab: Lab) -> None:
    """Compare probes of a Poisson schedule with those that the agent's log tells of."""
    log, out = lab.folder / "log.bin", null(lab.folder, "out.pcap")
    words = ("--schedule", "poisson", "--rate", "20kpps", "--count", "4000", "--flows", "4")
    more = ("--frame-bytes", "64,1518", "--log", str(log), "--seed", "7")
    ended = subprocess.run(
        agent(lab, "--interface", f"dpdk:{out}", *words, *more),
        capture_output=True,
        text=True,
        check=False,
        env=lab.environment,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    told = generated(ended.stdout)
    assert (told["due"], told["sent"], told["refused"], told["untold"]) == (4_000, 4_000, 0, 0)
    frames = [one for _, one in read(lab.folder / "out.pcap")]
    assert [len(one) for one in frames] == [60, 1_514] * 2_000
    # Behind the headers: magic, flow, sequence number, intended departure.
    probes = [struct.unpack(">2sHHIQ", one[42:60]) for one in frames]
    assert {one[6:12] for one in frames} == {bytes.fromhex("027063617000")}
    assert [probe[3] for probe in probes] == [*range(4_000)]
    logged = list(struct.iter_unpack("<qqq", log.read_bytes()))
    assert [(probe[3], probe[4]) for probe in probes] == [line[:2] for line in logged]
    lateness = [actual - intended for _, intended, actual in logged]
    assert min(lateness) >= 0
    assert told["lateness_ns"]["max"] // 1_000 == max(lateness) // 1_000
    assert told["intended_ns"] == logged[-1][1] - logged[0][1]


def test_departures_that_are_told_are_those_on_a_cable(lab: Lab) -> None:
    """Send by AF_PACKET through a veth pair, whose other end stamps in the same system call."""
    log = lab.folder / "log.bin"
    with Namespace("loadgen", lab.folder) as node:
        link(node, "a0", node, "a1", macs=("02:00:00:00:00:01", "02:00:00:00:00:02"), mtu=1500)
        for name in ("a0", "a1"):
            node.set(f"net/ipv6/conf/{name}/disable_ipv6", "1")
            node.run("ip", "link", "set", name, "up")
        load = ("--rate", "5kpps", "--count", "1000", "--log", str(log))
        command = agent(lab, "--interface", "dpdk:net_af_packet0,iface=a0", *load)
        # Stamps of the kernel, which do not wait for a process.
        with Agent(node, "capture", "--tap", "cable=a1", "--out", str(lab.folder)) as tap:
            tap.ready()
            sent = subprocess.run(
                [*node.prefix, *command],
                capture_output=True,
                text=True,
                check=False,
                env=lab.environment,
                timeout=60,
            )
            assert sent.returncode == 0, sent.stderr
            told = tap.stop()["taps"]["cable"]
    assert (generated(sent.stdout)["sent"], told["packets"]) == (1_000, 1_000)
    stamps = [at_ns for at_ns, _ in read(lab.folder / "cable.pcap")]
    actual = [line[2] for line in struct.iter_unpack("<qqq", log.read_bytes())]
    # The offset between clocks is read within some 50 ns; the way to the other end takes longer.
    assert all(told - 1_000 < stamp for stamp, told in zip(stamps, actual, strict=True))


def test_it_ends_with_an_agent_that_is_killed(lab: Lab) -> None:
    words = ("--interface", "dpdk:net_null0", "--rate", "1pps")
    with subprocess.Popen(
        agent(lab, *words), stdout=subprocess.PIPE, env=lab.environment
    ) as running:
        assert running.stdout
        running.stdout.readline()
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text()
        running.kill()
    (child,) = children.split()
    until_s = time.monotonic() + 10
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_the_agent_ends_it_and_says_what_it_says(lab: Lab) -> None:
    words = ("--interface", "dpdk:net_null0", "--rate", "1pps")
    with subprocess.Popen(
        agent(lab, *words), stdout=subprocess.PIPE, text=True, env=lab.environment
    ) as running:
        assert running.stdout
        assert json.loads(running.stdout.readline()) == {"event": "ready"}
        time.sleep(0.5)
        running.send_signal(signal.SIGTERM)
        told = json.loads(running.stdout.readline())
        assert running.wait(10) == 0
    # One a second, and the machine may be busy.
    assert 1 <= told["sent"] == told["due"] < 10
    for device, code, says in (
        ("nosuch0", 3, "error: tailtrim-dpdk: nosuch0: cannot be opened"),
        ("net_null0 --frame-bytes 4096", 2, "error: carries frames of up to 2052 bytes"),
    ):
        wrong = f"--interface dpdk:{device} --rate 1kpps --count 1".split()
        ended = subprocess.run(
            agent(lab, *wrong), capture_output=True, text=True, check=False, env=lab.environment
        )
        assert (ended.returncode, ended.stderr.startswith(says)) == (code, True), ended.stderr
    lab.environment["PATH"] = "/nowhere"
    ended = subprocess.run(
        [lab.agent, "generate", "--interface", "dpdk:net_null0", "--rate", "1kpps"],
        capture_output=True,
        text=True,
        check=False,
        env=lab.environment,
    )
    assert ended.returncode == 3
    assert "expected Debian package tailtrim-dpdk" in ended.stderr
