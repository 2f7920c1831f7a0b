"""tailtrim-dpdk built with Debian 13's DPDK 24.11, whose net_af_packet has the kernel's stamps."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from dpdk import Dpdk, built, capture, frame, numbers, read, written
from releases import entering

from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from pathlib import Path

    from laboratory import Lab

pytestmark = pytest.mark.packages

MANY = 300


@pytest.fixture
def newer(tmp_path: Path) -> tuple[str, list[str]]:
    """Return the program, and what starts it."""
    enter = entering("trixie-dpdk")
    program = built(tmp_path / "built", *enter)
    told = subprocess.run([*enter, program, "--version"], capture_output=True, check=True)
    assert b"DPDK 24.11" in told.stdout
    return program, enter


def test_stamps_of_the_driver_are_those_of_the_kernel(
    lab: Lab, newer: tuple[str, list[str]]
) -> None:
    program, enter = newer
    with Namespace("timestamper", lab.folder) as node:
        link(node, "a0", node, "a1", macs=("02:00:00:00:00:01", "02:00:00:00:00:02"), mtu=1500)
        for name in ("a0", "a1"):
            node.set(f"net/ipv6/conf/{name}/disable_ipv6", "1")
            node.run("ip", "link", "set", name, "up")
        taps = ("--tap", "cable=net_af_packet0,iface=a1", "--out", str(lab.folder))
        begin = [*node.prefix, *enter]
        sent_ns = []
        with (
            node.frames("a0") as cable,
            Dpdk("capture", *taps, before=begin, path=program) as tap,
        ):
            for number in range(MANY):
                before_ns = time.time_ns()
                cable.send(frame(number))
                sent_ns.append((before_ns, time.time_ns()))
            tap.until(MANY)
            told = tap.stop()["taps"]["cable"]
    assert (told["packets"], told["unstamped"], told["stamps"]) == (MANY, 0, "driver")
    frames = read(lab.folder / "cable.pcap")
    assert numbers([one for _, one in frames]) == [*range(MANY)]
    # A frame is stamped while it is sent, or soon after where the kernel leaves that to a softirq.
    within = [
        at_ns <= after_ns
        for (at_ns, _), (before_ns, after_ns) in zip(frames, sent_ns, strict=True)
        if at_ns >= before_ns
    ]
    assert len(within) == MANY
    assert sum(within) > MANY // 2


def test_a_load_leaves_in_order(tmp_path: Path, newer: tuple[str, list[str]]) -> None:
    program, enter = newer
    nothing, out = written(tmp_path / "nothing.pcap", []), tmp_path / "out.pcap"
    device = f"net_pcap0,rx_pcap={nothing},tx_pcap={out}"
    with Dpdk("generate", "--interface", device, before=enter, path=program) as generate:
        start_ns = time.time_ns() + 100_000_000
        generate.give(capture([(start_ns + n * 10_000, frame(n)) for n in range(MANY)]))
        assert generate.result()["sent"] == MANY
    assert numbers([one for _, one in read(out)]) == [*range(MANY)]
