"""Packets that are matched while they are captured, on a live testbed."""

from __future__ import annotations

import json
import struct
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laboratory import Lab


class Chain:
    """A generator, a device and a sink in one namespace: g0 - d0, the device, d1 - s0."""

    def __init__(self, node: Namespace, lab: Lab) -> None:
        self.node, self.lab = node, lab
        macs = [f"02:00:00:00:00:{number:02x}" for number in range(1, 5)]
        link(node, "g0", node, "d0", macs=(macs[0], macs[1]), mtu=1500)
        link(node, "d1", node, "s0", macs=(macs[2], macs[3]), mtu=1500)
        for name in ("g0", "d0", "d1", "s0"):
            node.run("ip", "link", "set", name, "up")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a program of the agent, and wait until it is ready."""
        process = subprocess.Popen(
            [*self.node.prefix, self.lab.agent, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.lab.environment,
            cwd=self.lab.folder,
        )
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"event": "ready"}
        return process

    def capture(self, *words: str) -> subprocess.Popen[str]:
        return self.start("capture", "--tap", "ingress=d0", "--tap", "egress=s0", *words)

    def forward(self) -> subprocess.Popen[str]:
        return self.start("forward", "--ingress", "d0", "--egress", "d1", "--mode", "wait")

    def generate(self, seconds: int, flow: int = 1) -> None:
        """Send 5,000 packets a second, which no other flow has."""
        words = ["--rate", "5kpps", "--duration", f"{seconds}s", "--src-port", f"{flow}"]
        command = [*self.node.prefix, self.lab.agent, "generate", "--interface", "g0", *words]
        subprocess.run(command, check=True, capture_output=True, timeout=60)


@pytest.fixture
def chain(lab: Lab) -> Iterator[Chain]:
    with Namespace("online") as node:
        yield Chain(node, lab)


def ended(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """End a program and return its events."""
    process.terminate()
    told, wrong = process.communicate(timeout=60)
    assert process.returncode == 0, wrong
    return [json.loads(line) for line in told.splitlines()]


def results(folder: Path) -> dict[str, Any]:
    """Return the summary of a run directory without what only one of file and tap can say.

    Only files can be read again, for where packets are missing.
    """
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    again = {"hole", "missing_flows"}
    summary["warnings"] = [one for one in summary["warnings"] if one["code"] not in again]
    for tap in summary["taps"].values():
        del tap["capture"]
        assert tap.pop("tap_drops") in (0, None)
    return summary


@pytest.mark.fast
@pytest.mark.parametrize("dies", [False, True])
def test_the_result_is_that_of_the_files(lab: Lab, chain: Chain, *, dies: bool) -> None:
    words = ("--skip", "300ms", "--quantile", "0.9995", "--snap", "96")
    tapping = chain.capture("--out", "files", "--analyze", "online", "--live", *words)
    device = chain.forward()
    chain.generate(2)
    if dies:
        # Packets of a second are lost, and those after it are not.
        ended(device)
        chain.generate(1, flow=2)
        device = chain.forward()
        chain.generate(1, flow=3)
    time.sleep(0.3)
    ended(device)
    *seconds, result = ended(tapping)
    asked = ("--skip", "300ms", "--quantile", "0.9995", "--out", "from-files", "--json")
    analyzed = lab.run("analyze", "files/ingress.pcap", "files/egress.pcap", *asked)
    assert analyzed.returncode == 0, analyzed.stderr
    online, from_files = lab.folder / "online", lab.folder / "from-files"
    assert results(online) == results(from_files)
    tables = {path.name for path in from_files.glob("*.parquet")}
    assert "sample.parquet" in tables
    for name in tables:
        assert (online / name).read_bytes() == (from_files / name).read_bytes(), name
    summary = results(online)
    assert (summary["ingress"]["lost"] > 4_000) == dies
    assert result["taps"]["ingress"]["packets"] == summary["ingress"]["packets"]
    assert result["analysis"]["samples"] == summary["samples"]
    assert result["cpu_s"] > 0
    lines = [one for one in seconds if one["event"] == "live"]
    assert [one["seconds"] for one in lines] == [*range(1, len(lines) + 1)]
    assert 0 < lines[-1]["samples"] <= summary["samples"]
    assert max(one["latency_ns"].get("max", 0) for one in lines) <= summary["latency_ns"]["max"]


def test_a_device_that_is_dead_is_told_each_second_and_in_the_result(chain: Chain) -> None:
    tapping = chain.capture("--live", "--window", "200ms", "--skip", "0s")
    device = chain.forward()
    chain.generate(1)
    ended(device)
    chain.generate(4, flow=2)
    time.sleep(4)
    *seconds, result = ended(tapping)
    lost = [one["lost"] for one in seconds if one["event"] == "live"]
    # It is known while the capture goes on: two windows and at most a second later.
    assert lost == sorted(lost)
    # A host that has just got an interface sends some packets of IPv6 as well.
    assert 20_000 <= lost[-2] < 20_050
    assert 20_000 <= result["analysis"]["ingress"]["lost"] < 20_050
    assert "file" not in result["taps"]["ingress"]


def test_taps_that_cannot_be_matched_are_refused(lab: Lab) -> None:
    ended = subprocess.run(
        [lab.agent, "capture", "--tap", "ingress=lo", "--live"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 2
    assert "--tap ingress=PORT --tap egress=PORT" in ended.stderr


def _records(path: Path) -> list[tuple[int, bytes]]:
    """Return stamps in ns and bytes of a pcap file with nanosecond stamps."""
    with pa.input_stream(str(path)) as file:
        content = file.read()
    assert struct.unpack("<I", content[:4]) == (0xA1B23C4D,)
    at, found = 24, []
    while at < len(content):
        seconds, ns, kept, _ = struct.unpack_from("<IIII", content, at)
        found.append((seconds * 10**9 + ns, content[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def test_by_minute_is_the_result_of_the_files_and_the_captures_around_the_worst_packets(
    lab: Lab, chain: Chain
) -> None:
    words = ("--skip", "300ms", "--snap", "96")
    tapping = chain.capture("--out", "files", "--analyze", "online", "--by-minute", *words)
    device = chain.forward()
    chain.generate(3)
    time.sleep(0.3)
    ended(device)
    *_, result = ended(tapping)
    asked = ("--skip", "300ms", "--out", "from-files", "--json")
    analyzed = lab.run("analyze", "files/ingress.pcap", "files/egress.pcap", *asked)
    assert analyzed.returncode == 0, analyzed.stderr
    online, from_files = lab.folder / "online", lab.folder / "from-files"
    assert results(online) == results(from_files)
    for path in from_files.glob("*.parquet"):
        if path.name != "sample.parquet":
            assert (online / path.name).read_bytes() == path.read_bytes(), path.name
    assert not (online / "sample.parquet").exists()
    lines = [json.loads(line) for line in (online / "minute.jsonl").read_text().splitlines()]
    assert sum(line["samples"] for line in lines) == results(online)["samples"]
    assert max(line["latency_ns"]["max"] for line in lines) == result["around"][0]["latency_ns"]

    # Worst packets of less than a second are one disturbance.
    assert 1 <= len(result["around"]) <= 4
    worst = pq.read_table(from_files / "worst.parquet").to_pylist()
    assert result["around"][0]["ingress_ns"] == worst[0]["ingress_ns"]
    names = set()
    for one in result["around"]:
        assert one["complete"]
        ingress_ns = one["ingress_ns"]
        from_ns, to_ns = ingress_ns - 5 * 10**8, ingress_ns + one["latency_ns"] + 5 * 10**8
        for tap in ("ingress", "egress"):
            names.add(f"{ingress_ns}-{tap}.pcap.zst")
            kept = _records(online / "around" / f"{ingress_ns}-{tap}.pcap.zst")
            whole = _records(lab.folder / "files" / f"{tap}.pcap")
            assert kept == [one for one in whole if from_ns <= one[0] <= to_ns]
            at_ns = ingress_ns + one["latency_ns"] * (tap == "egress")
            assert at_ns in {stamp for stamp, _ in kept}
    assert {path.name for path in (online / "around").iterdir()} == names
