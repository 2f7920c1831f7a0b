"""Late probes that a watch catches: in which part of the round trip they were late, and why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from laboratory import Lab
from pairs import paired, running
from reflectors import FAR, Stamps

from tailtrim.errors import HostError
from tailtrim.laboratory.nodes.namespace import Namespace, link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pairs import Pair

pytestmark = pytest.mark.reflectors
#: Beyond what a machine that does other things adds.
LATE_S = 0.15
INSTANCES = Path("/sys/kernel/tracing/instances")


class Holds:
    """The fate of frames on a wire: each is held for a time, and the next reply for another."""

    def __init__(self, usual_ns: int = 0) -> None:
        self.usual_ns, self.next_ns = usual_ns, 0

    def __call__(self, way: int, _: bytes) -> list[int]:
        next_ns, self.next_ns = (self.next_ns, 0) if way else (0, self.next_ns)
        return [self.usual_ns + next_ns]


@contextmanager
def watching(
    pair: Pair, folder: Path, *words: str, trace: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Watch the far host with a deadline of 100 ms until the block ends, in order at first."""
    path = folder / "targets.yml"
    path.write_text(
        "defaults: {protocol: stamp, rate: 50pps, timeout: 800ms, objectives: ['p99 < 100ms']}\n"
        f"targets: [{{name: far, address: '{FAR}:862'}}]\n"
        f"catch: {{trace: {str(trace).lower()}, an_hour: 9}}\n"
    )
    command = [*pair.near.prefix, pair.lab.agent, "watch", str(path)]
    command += ["--out", str(folder / "kept"), *words]
    with running(command) as watch:
        pair.until_received(40)
        yield watch


def events(folder: Path, event: str) -> list[str]:
    """Return what the watch tells of an event."""
    path = folder / "kept" / "events.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line.get("told", "") for line in lines if line["event"] == event]


def traced(folder: Path) -> None:
    """Wait until the CPUs have been traced for a second, or skip where they cannot be."""
    until_s = time.monotonic() + 20
    while not (told := events(folder, "catch")):
        assert time.monotonic() < until_s
        time.sleep(0.05)
    if told[0].startswith("without"):
        pytest.skip(told[0])
    time.sleep(1)


def caught(folder: Path, after: Callable[[], object]) -> tuple[Path, dict[str, Any]]:
    """Do something, again if no probe met it; return the folder of its catch and the slowest."""
    before = len(events(folder, "caught"))
    until_s = time.monotonic() + 40
    while len(events(folder, "caught")) == before:
        assert time.monotonic() < until_s, events(folder, "catch")
        after()
        # A second after it and a timeout, it is kept.
        time.sleep(3)
    path = Path(events(folder, "caught")[-1])
    worst = json.loads((path / "worst.json").read_text())
    return path, worst["packets"][0]


@contextmanager
def reflecting(pair: Pair, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Reflect at the far host until the block ends."""
    command = [*words, pair.lab.agent, "reflect", "--stamp", "862", "--address", FAR]
    with subprocess.Popen(
        [*pair.far.prefix, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as reflector:
        try:
            pair.until_bound(862)
            yield reflector
        finally:
            reflector.terminate()


def test_the_part_that_took_long_is_named(tmp_path: Path) -> None:
    holds = Holds()
    with paired(tmp_path, holds) as pair, reflecting(pair) as reflector:
        with watching(pair, tmp_path):

            def stall() -> None:
                reflector.send_signal(signal.SIGSTOP)
                time.sleep(LATE_S)
                reflector.send_signal(signal.SIGCONT)

            path, packet = caught(tmp_path, stall)
            assert packet["parts"][0]["name"] == "residence"
            assert packet["parts"][0]["share_ppm"] > 900_000

            def hold() -> None:
                holds.next_ns = int(LATE_S * 1e9)

            _, packet = caught(tmp_path, hold)
            assert packet["parts"][0]["name"] == "network"
            assert packet["parts"][0]["ns"] > LATE_S * 1e9 > 10 * packet["parts"][0]["usual_ns"]
        # It says once that the CPUs are not traced, and why.
        assert json.loads((path / "catch.json").read_text())["trace"] == {"missing": "trace: false"}
        told = pair.lab.run("explain", str(tmp_path / "kept" / "far")).stdout
        assert "% the far host (1" in told
        assert "% network (1" in told
    with pa.input_stream(str(path / "stamps.jsonl.zst"), compression="zstd") as stream:
        stamps = [json.loads(line) for line in stream.read().splitlines()]
    # A second before and after, at 50 a second.
    assert 80 < len(stamps) < 130
    assert all(line["far_sent_ns"] >= line["far_received_ns"] for line in stamps)


@contextmanager
def elsewhere_than(cpu: int) -> Iterator[None]:
    """Have this thread, and what it starts, run on other CPUs."""
    before = os.sched_getaffinity(0)
    if before <= {cpu}:
        pytest.skip("needs two CPUs")
    os.sched_setaffinity(0, before - {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.alone
def test_what_had_the_cpu_of_the_watch_is_named(tmp_path: Path) -> None:
    hog = f"import time\nuntil = time.monotonic() + {LATE_S}\nwhile time.monotonic() < until: pass"
    # So long, each probe is under way; what holds them is on the other CPU.
    holds = Holds(usual_ns=10_000_000)
    with (
        elsewhere_than(1),
        paired(tmp_path, holds) as pair,
        reflecting(pair),
    ):
        with watching(pair, tmp_path, "--cpu", "1", trace=True):
            traced(tmp_path)
            command = ["chrt", "-f", "80", "taskset", "-c", "1", "python3", "-c", hog]
            path, packet = caught(tmp_path, lambda: subprocess.run(command, check=True))
        assert packet["host_part"] == packet["parts"][0]["name"] == "own_host_behind"
        verdict = packet["host"]["verdict"]
        (late,) = verdict["late"]
        cause, ns = max(late["causes"], key=lambda part: part[1])
        assert verdict["causes"][cause]["name"] == "python3"
        assert ns > 0.8 * late["excess_ns"]
        told = pair.lab.run("explain", str(path)).stdout
        assert "this host after receiving" in told
        assert "% python3" in told
        assert json.loads((path / "catch.json").read_text())["trace"]["kept"]["complete"]


def instances(watch: subprocess.Popen[str]) -> list[str]:
    """Return the traces of a watch in the kernel."""
    names = [path.name for path in INSTANCES.glob("tailtrim-*")]
    return [name for name in names if name.split("-")[1] == str(watch.pid)]


def test_a_killed_watch_leaves_no_trace_in_the_kernel(tmp_path: Path) -> None:
    with (
        paired(tmp_path) as pair,
        Stamps(pair.far, ahead_ns=0, keeps_ns=0),
        watching(pair, tmp_path, trace=True) as watch,
    ):
        traced(tmp_path)
        assert len(instances(watch)) == 2
        watch.kill()
        watch.wait()
        until_s = time.monotonic() + 20
        while instances(watch):
            assert time.monotonic() < until_s, instances(watch)
            time.sleep(0.05)


def joined(one: Namespace, other: Namespace, net: int) -> None:
    """Join two routers by a network of their own."""
    macs = (f"02:00:00:00:{net:02}:01", f"02:00:00:00:{net:02}:02")
    link(one, f"to{net}", other, f"from{net}", macs=macs, mtu=1500)
    for node, port, host in ((one, f"to{net}", 1), (other, f"from{net}", 2)):
        node.run("ip", "address", "add", f"10.98.{net}.{host}/24", "dev", port)
        node.run("ip", "link", "set", port, "up")
        node.run("ip", "link", "set", "lo", "up")


def looked_up(folder: Path, count: int) -> dict[str, Any]:
    """Return the last one of so many looks at the path, when it is there."""
    until_s = time.monotonic() + 20
    while True:
        files = (folder / "kept" / "far").glob("*.paths.jsonl")
        lines = [line for path in sorted(files) for line in path.read_text().splitlines()]
        if len(lines) == count:
            found: dict[str, Any] = json.loads(lines[-1])
            return found
        assert time.monotonic() < until_s, lines
        time.sleep(0.05)


@contextmanager
def routed(folder: Path) -> Iterator[tuple[Namespace, Namespace, Namespace]]:
    """Return a host, a router with a way to the far host and one by another router, and that."""
    names = ("near", "one", "two", "far")
    with ExitStack() as stack:
        try:
            for name in names:
                (folder / name).mkdir()
            nodes = [stack.enter_context(Namespace(name, folder / name)) for name in names]
        except HostError as problem:
            pytest.skip(f"no network namespaces here: {problem}")
        near, one, two, far = nodes
        for net, ends in enumerate(((near, one), (one, far), (one, two), (two, far)), 1):
            joined(*ends, net)
        for node in nodes:
            for key in ("ip_forward=1", "icmp_ratelimit=0", "conf.all.rp_filter=0"):
                node.run("sysctl", "-qw", f"net.ipv4.{key}")
        far.run("ip", "address", "add", f"{FAR}/32", "dev", "lo")
        near.run("ip", "route", "add", "default", "via", "10.98.1.2")
        one.run("ip", "route", "add", FAR, "via", "10.98.2.2")
        two.run("ip", "route", "add", FAR, "via", "10.98.4.2")
        two.run("ip", "route", "add", "10.98.1.0/24", "via", "10.98.3.1")
        far.run("ip", "route", "add", "10.98.1.0/24", "via", "10.98.2.1")
        yield near, one, far


def test_a_change_of_the_path_is_looked_up(tmp_path: Path) -> None:
    agent = Lab(tmp_path).agent
    path = tmp_path / "targets.yml"
    path.write_text(
        "targets: [{name: far, protocol: stamp, rate: 50pps, timeout: 500ms,"
        f" address: '{FAR}:862'}}]\ncatch: {{trace: false}}\n"
    )
    with routed(tmp_path) as (near, one, far):
        reflector = [*far.prefix, agent, "reflect", "--stamp", "862", "--address", FAR]
        watch = [*near.prefix, agent, "watch", str(path), "--out", str(tmp_path / "kept")]
        with (
            subprocess.Popen(reflector, stdout=subprocess.DEVNULL) as reflecting,
            subprocess.Popen(watch, stdout=subprocess.DEVNULL) as watching,
        ):
            try:
                first = looked_up(tmp_path, 1)
                one.run("ip", "route", "replace", FAR, "via", "10.98.3.2")
                second = looked_up(tmp_path, 2)
            finally:
                watching.terminate()
                watching.wait(20)
                reflecting.terminate()
    assert [hop["by"] for hop in first["hops"]] == ["10.98.1.2", FAR]
    assert first["why"] == "start"
    assert first["reached"]
    assert first["as_long"]
    assert second["why"] == {"changed": {"there": {"from": 254, "to": 253}}}
    assert [hop["by"] for hop in second["hops"]] == ["10.98.1.2", "10.98.3.2", FAR]
    assert second["as_long"]
    assert events(tmp_path, "path")
