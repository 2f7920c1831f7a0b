"""Frames through tailtrim-dpdk: what enters leaves, and whatever cannot be is told."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from dpdk import Dpdk, capture, frame, numbers, program, read, written

from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from pathlib import Path

    from laboratory import Lab

MANY = 1_000


def load(folder: Path, name: str = "in.pcap") -> Path:
    return written(folder / name, [(number, frame(number)) for number in range(MANY)])


@pytest.mark.parametrize(
    ("mode", "destination", "source"),
    [
        ("io", "020000000002", "020000000001"),
        # The MAC address of a port of net_pcap, and the second port's number.
        ("mac", "020000000001", "027063617001"),
        ("macswap", "020000000001", "020000000002"),
    ],
)
def test_frames_keep_their_order_and_all_but_their_mac_addresses(
    tmp_path: Path, mode: str, destination: str, source: str
) -> None:
    out, back = tmp_path / "out.pcap", tmp_path / "back.pcap"
    there = f"net_pcap0,rx_pcap={load(tmp_path)},tx_pcap={back}"
    # Nothing comes back.
    nothing = written(tmp_path / "nothing.pcap", [])
    here = f"net_pcap1,rx_pcap={nothing},tx_pcap={out}"
    with Dpdk("forward", "--ingress", there, "--egress", here, "--forward-mode", mode) as forward:
        forward.until(MANY)
        told = forward.stop()
    assert (told["received"], told["sent"], told["refused"]) == (MANY, MANY, 0)
    frames = [one for _, one in read(out)]
    assert numbers(frames) == [*range(MANY)]
    assert {one[:12].hex() for one in frames} == {destination + source}
    assert {len(one) for one in frames} == {60}


def test_both_ways_through_a_ring(tmp_path: Path) -> None:
    """Send frames into a ring, which gives them back."""
    back = tmp_path / "back.pcap"
    ends = ("--ingress", f"net_pcap0,rx_pcap={load(tmp_path)},tx_pcap={back}")
    with Dpdk("forward", *ends, "--egress", "net_ring0", "--both-ways") as forward:
        forward.until(2 * MANY)
        told = forward.stop()
    assert (told["sent"], told["back"]["sent"]) == (MANY, MANY)
    assert numbers([one for _, one in read(back)]) == [*range(MANY)]


def test_each_queue_has_its_worker() -> None:
    ends = ("--ingress", "net_null0", "--egress", "net_null1", "--queues", "2")
    with Dpdk("forward", *ends) as forward:
        forward.until(1)
        told = forward.stop()
    assert [port["queues"] for port in told["ports"]] == [2, 2]
    assert told["received"] == told["sent"] + told["refused"] > 0


def test_an_interrupt_wakes_it_for_frames(tmp_path: Path) -> None:
    """Receive by virtio from another process: a driver without a card that interrupts."""
    out, socket = tmp_path / "out.pcap", tmp_path / "vhost.sock"
    nothing = written(tmp_path / "nothing.pcap", [])
    receiver = ("--ingress", f"net_virtio_user0,path={socket},queues=1")
    to = ("--egress", f"net_pcap0,rx_pcap={nothing},tx_pcap={out}")
    # The server first: its link comes up with its client.
    with Dpdk("generate", "--interface", f"net_vhost0,iface={socket}", ready=False) as sender:
        while not socket.exists():
            assert sender.process.poll() is None
        with Dpdk("forward", *receiver, *to, "--mode", "interrupt") as forward:
            sender.ready()
            start_ns = time.time_ns() + 100_000_000
            sender.give(capture([(start_ns + n * 1_000_000, frame(n)) for n in range(MANY)]))
            assert sender.result()["sent"] == MANY
            forward.until(MANY)
            told = forward.stop()
    assert told["received"] == told["sent"] == MANY
    # Frames a millisecond apart wake it one by one, unless others have the CPU.
    assert told["wakeups"] > 10
    assert numbers([one for _, one in read(out)]) == [*range(MANY)]


def test_frames_of_kernel_interfaces(lab: Lab) -> None:
    """Forward between two veth pairs by AF_PACKET."""
    with Namespace("dut", lab.folder) as node:
        for near, far in (("a0", "a1"), ("b0", "b1")):
            link(node, near, node, far, macs=("02:00:00:00:00:01", "02:00:00:00:00:02"), mtu=1500)
            for name in (near, far):
                node.set(f"net/ipv6/conf/{name}/disable_ipv6", "1")
                node.run("ip", "link", "set", name, "up")
        ends = ("--ingress", "net_af_packet0,iface=a1", "--egress", "net_af_packet1,iface=b1")
        with (
            node.frames("a0") as into,
            node.frames("b0") as out,
            Dpdk("forward", *ends, "--both-ways", before=node.prefix) as forward,
        ):
            for number in range(100):
                into.send(frame(number))
            came = [one for _ in range(100) if (one := out.receive(5)) is not None]
            told = forward.stop()
    assert numbers(came) == [*range(100)]
    assert told["sent"] == 100


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("forward", "--ingress", "net_null0"), 2, "--egress is missing"),
        (("forward", "--mode", "sleep"), 2, "--mode sleep: expected one of poll, interrupt"),
        (("forward", "--snap", "96"), 2, "--snap is not an option of forward"),
        (("forward", "--batch", "65"), 2, "--batch 65: expected a number from 1 to 64"),
        (("bridge",), 2, "bridge: expected generate, capture or forward"),
        (("capture", "--tap", "a/b=net_null0"), 2, "--tap a/b=net_null0: expected NAME=DEVICE"),
        (("generate", "--interface", "0000:99:00.0"), 3, "0000:99:00.0: DPDK has no such port"),
        (("generate", "--interface", "net_af_packet0,iface=nope"), 3, "cannot be opened"),
        (("generate", "--interface", "net_af_packet0,iface=lo", "--queues", "9"), 2, "not 9"),
        (
            ("forward", "--ingress", "net_null0", "--egress", "net_null1", "--mode", "interrupt"),
            3,
            "the driver net_null has no interrupts for frames",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_error(words: tuple[str, ...], code: int, says: str) -> None:
    ended = subprocess.run(
        [program(), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.startswith("error: ")
    assert says in ended.stderr.splitlines()[0]
    assert ended.stderr.count("error:") == 1
    assert ended.stdout == ""


def test_it_ends_with_its_input_and_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    ends = ("--ingress", "net_null0", "--egress", "net_null1", "--until-eof")
    with Dpdk("forward", *ends) as forward:
        forward.give(b"")
        assert forward.result()["sent"] > 0
    with Dpdk("forward", *ends) as killed:
        killed.process.kill()
        killed.process.wait()
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []
