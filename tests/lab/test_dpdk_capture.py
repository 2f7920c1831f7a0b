"""Captures by tailtrim-dpdk: each frame is in the file or counted; the clock of stamps is known."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dpdk import Dpdk, frame, numbers, read, written

from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from pathlib import Path

    from laboratory import Lab

MANY = 3_000


def test_frames_are_written_in_order_and_cut(tmp_path: Path) -> None:
    lengths = [60 if number % 2 else 1_000 for number in range(MANY)]
    load = [(number, frame(number, length)) for number, length in enumerate(lengths)]
    source = written(tmp_path / "in.pcap", load, kept=1_000)
    began_ns = time.time_ns()
    taps = ("--tap", f"ingress=net_pcap0,rx_pcap={source}", "--snap", "64")
    with Dpdk("capture", *taps, "--out", str(tmp_path / "captures")) as capture:
        capture.until(MANY)
        told = capture.stop()["taps"]["ingress"]
    assert (told["packets"], told["received"], told["bytes"]) == (MANY, MANY, sum(lengths))
    # This process stamps, and net_pcap of 22.11 and later is not taken for a clock.
    assert told["stamps"] == "process"
    assert told["not_by_driver"]
    frames = read(tmp_path / "captures" / "ingress.pcap")
    assert numbers([one for _, one in frames]) == [*range(MANY)]
    assert [len(one) for _, one in frames] == [60 if number % 2 else 64 for number in range(MANY)]
    stamps = [at_ns for at_ns, _ in frames]
    assert stamps == sorted(stamps)
    assert began_ns < stamps[0] <= stamps[-1] < time.time_ns()


def test_counts_add_up_where_the_disk_is_slower(tmp_path: Path) -> None:
    """Capture all that a port gives which is never empty, by two queues of it."""
    taps = ("--tap", "a=net_null0", "--tap", "b=net_null1,size=128", "--queues", "2")
    with Dpdk("capture", *taps, "--out", str(tmp_path), "--snap", "14") as capture:
        capture.until(1)
        told = capture.stop()["taps"]
    for name, tap in told.items():
        by = tap["dropped_by"]
        assert tap["received"] == tap["packets"] + by["writer"]
        assert tap["dropped"] == by["port"] + by["errors"] + by["no_buffer"] + by["writer"]
        size = (tmp_path / f"{name}.pcap").stat().st_size
        assert size == 24 + tap["packets"] * (16 + 14)
    assert told["b"]["bytes"] == 128 * told["b"]["packets"]


def test_frames_of_a_kernel_interface(lab: Lab) -> None:
    """Capture fewer frames than the ring of AF_PACKET holds, however late this process is."""
    with Namespace("timestamper", lab.folder) as node:
        link(node, "a0", node, "a1", macs=("02:00:00:00:00:01", "02:00:00:00:00:02"), mtu=1500)
        for name in ("a0", "a1"):
            node.set(f"net/ipv6/conf/{name}/disable_ipv6", "1")
            node.run("ip", "link", "set", name, "up")
        taps = ("--tap", "cable=net_af_packet0,iface=a1", "--out", str(lab.folder))
        with node.frames("a0") as cable, Dpdk("capture", *taps, before=node.prefix) as capture:
            for number in range(300):
                cable.send(frame(number))
            capture.until(300)
            told = capture.stop()["taps"]["cable"]
    assert (told["packets"], told["unstamped"]) == (300, 0)
    frames = read(lab.folder / "cable.pcap")
    assert numbers([one for _, one in frames]) == [*range(300)]
