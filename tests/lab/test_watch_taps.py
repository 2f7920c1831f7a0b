"""Devices that a watch taps: minutes that add up to what was sent, and interfaces that go."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from laboratory import Lab

ENTERED = ("matched", "lost", "beyond_window", "duplicate", "copy", "unstamped", "cut")
LEFT = ("matched", "unmatched", "copy", "unstamped", "cut")
#: So many frames that the analysis need not wait for more to learn what they have in common.
FIRST = 4_000
FILTER = "udp and dst port 5000"


class Device:
    """A generator, a device and a sink in one namespace: g0 - d0, the device, d1 - s0."""

    def __init__(self, node: Namespace, lab: Lab) -> None:
        self.node, self.lab = node, lab
        self.lay("g0", "d0", 1)
        self.lay("d1", "s0", 3)

    def lay(self, one: str, other: str, number: int) -> None:
        """Lay a fibre."""
        macs = (f"02:00:00:00:00:{number:02x}", f"02:00:00:00:00:{number + 1:02x}")
        link(self.node, one, self.node, other, macs=macs, mtu=1500)
        for name in (one, other):
            self.node.run("ip", "link", "set", name, "up")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a program of the agent, and wait until it is ready."""
        process = subprocess.Popen(
            [*self.node.prefix, self.lab.agent, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.lab.environment,
        )
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "ready", process.stderr
        return process

    def generate(self, packets: int, flow: int, port: int = 5000) -> None:
        """Send packets of a flow of their own, 4,000 a second."""
        words = ("--rate", "4kpps", "--count", f"{packets}", "--src-port", f"{flow}")
        command = [self.lab.agent, "generate", "--interface", "g0", *words, "--dst-port", f"{port}"]
        subprocess.run([*self.node.prefix, *command], check=True, capture_output=True, timeout=60)

    @contextmanager
    def forwarding(self) -> Iterator[None]:
        """Be the device until the block ends."""
        with self.start(
            "forward", "--ingress", "d0", "--egress", "d1", "--mode", "wait"
        ) as forward:
            try:
                yield
            finally:
                forward.terminate()
                forward.communicate(timeout=30)

    @contextmanager
    def watched(self, path: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
        """Watch until the block ends."""
        watch = self.start("watch", str(path), "--out", str(out), "--listen", "127.0.0.1:9465")
        try:
            yield watch
        finally:
            watch.send_signal(signal.SIGTERM)
            _, wrong = watch.communicate(timeout=30)
            assert watch.returncode == 0, wrong

    def metrics(self) -> dict[str, float]:
        """Return the metrics by name with labels."""
        command = [*self.node.prefix, "curl", "-s", "http://127.0.0.1:9465/metrics"]
        text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        told = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in told}

    def until(self, name: str, packets: int) -> None:
        """Wait until so many packets of a device have an outcome."""
        start = f'tailtrim_watch_packets_total{{target="{name}",'
        until_s = time.monotonic() + 60
        while True:
            told = {name: value for name, value in self.metrics().items() if start in name}
            if sum(told.values()) >= packets:
                return
            assert time.monotonic() < until_s, told
            time.sleep(0.1)


@pytest.fixture
def device(lab: Lab) -> Iterator[Device]:
    with Namespace("tapped") as node:
        node.run("ip", "link", "set", "lo", "up")
        yield Device(node, lab)


def plan(folder: Path, *names: str) -> Path:
    """Write a file of taps of the device, with all of these names."""
    path = folder / "taps.yml"
    objectives = "objectives: ['p99 < 1s', 'loss < 50%']"
    ports = f"ingress: d0, egress: s0, window: 2s, filter: '{FILTER}'"
    taps = [f"- {{name: {name}, {ports}, {objectives}}}" for name in names]
    path.write_text("\n".join(["taps:", *taps]))
    return path


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the minutes of a device, each with outcomes that add up."""
    found = []
    for day in sorted(folder.glob("*.jsonl.zst")):
        with pa.input_stream(str(day), compression="zstd") as stream:
            found += [json.loads(line) for line in stream.read().splitlines()]
    for line in found:
        assert sum(line[outcome] for outcome in ENTERED) == line["packets"]
        assert sum(line["egress"][outcome] for outcome in LEFT) == line["egress"]["packets"]
        assert len(line["latency_ns"]) == line["packets"] - line["duplicate"] - line["cut"]
    return found


def total(folder: Path, *keys: str) -> int:
    """Return a count of all minutes of a device."""
    found = 0
    for line in lines(folder):
        value: Any = line
        for key in keys:
            value = value[key]
        found += value
    return found


def events_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]


def test_minutes_add_up_to_what_was_sent_whatever_is_reloaded(
    device: Device, tmp_path: Path
) -> None:
    out = tmp_path / "minutes"
    path = plan(tmp_path, "stays", "goes")
    with device.watched(path, out) as watch:
        with device.forwarding():
            device.generate(FIRST, flow=1)
            # Another port: the filter leaves these out.
            device.generate(500, flow=2, port=6000)
            device.until("stays", FIRST)
            device.until("goes", FIRST)
            plan(tmp_path, "stays", "comes")
            watch.send_signal(signal.SIGHUP)
            device.generate(1_000, flow=3)
            device.until("stays", FIRST + 1_000)
        # The device is dead: all of these are lost.
        device.generate(600, flow=4)
        device.until("stays", FIRST + 1_600)
    stays = out / "stays"
    matched, lost = total(stays, "matched"), total(stays, "lost")
    assert total(stays, "packets") == FIRST + 1_600
    assert matched == total(stays, "egress", "matched") > 0
    assert lost >= 600
    assert total(stays, "foreign") >= 500
    assert total(stays, "health", "ingress_dropped") == 0
    told = [(event["event"], event.get("target")) for event in events_of(out)]
    assert told.count(("tapped", "stays")) == told.count(("target", "stays")) == 1
    assert {("end", "goes"), ("tapped", "comes")} <= set(told)
    shown = device.lab.run("report", f"{stays}@today", "--out", "page.html")
    assert shown.returncode == 0, shown.stderr
    compared = device.lab.run("compare", f"{stays}@today", f"{out / 'goes'}@today")
    assert compared.returncode in {0, 1}, compared.stderr


def test_an_interface_that_goes_is_told_and_tapped_again(device: Device, tmp_path: Path) -> None:
    out = tmp_path / "minutes"
    path = plan(tmp_path, "device")

    def until_tapped(times: int) -> None:
        until_s = time.monotonic() + 20
        while (out / "events.jsonl").read_text().count('"tapped"') < times:
            assert time.monotonic() < until_s, (out / "events.jsonl").read_text()
            time.sleep(0.05)

    with device.watched(path, out):
        with device.forwarding():
            device.generate(FIRST, flow=1)
            device.until("device", FIRST)
            device.node.run("ip", "link", "set", "s0", "down")
            device.lab.until(out / "events.jsonl", "Network is down")
            time.sleep(2)
            device.node.run("ip", "link", "set", "s0", "up")
            until_tapped(2)
            device.generate(FIRST, flow=2)
            device.until("device", 2 * FIRST)
        device.node.run("ip", "link", "delete", "s0")
        device.lab.until(out / "events.jsonl", "no such interface")
        device.lay("d1", "s0", 3)
        until_tapped(3)
        with device.forwarding():
            device.generate(FIRST, flow=3)
            device.until("device", 3 * FIRST)
    assert total(out / "device", "packets") == 3 * FIRST
    assert total(out / "device", "matched") > 0
    told = events_of(out)
    whole_ns = told[-1]["at_ns"] - told[0]["at_ns"]
    assert total(out / "device", "health", "tapped_ns") < whole_ns - 2 * 10**9


def test_without_the_right_to_tap_it_does_not_begin(device: Device, tmp_path: Path) -> None:
    path = plan(tmp_path, "device")
    unable = ("setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--")
    command = [device.lab.agent, "watch", str(path), "--out", str(tmp_path / "minutes")]
    told = subprocess.run(
        [*device.node.prefix, *unable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=os.environ,
    )
    assert told.returncode != 0
    (line,) = told.stderr.strip().splitlines()
    assert "tap device: packet:d0: raw sockets" in line
    assert "CAP_NET_RAW" in line
