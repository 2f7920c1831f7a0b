"""Captures of runs on hosts: where they are matched, how they are fetched, and corrections."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hosts import described

from tailtrim.analysis import analyze
from tailtrim.analysis.options import Departures
from tailtrim.laboratory.nodes.ssh.address import Ssh
from tailtrim.laboratory.nodes.ssh.node import SshNode
from tailtrim.laboratory.nodes.ssh.session import SshSession
from tailtrim.results import TABLES
from tailtrim.results.minutes import counted, minutes

if TYPE_CHECKING:
    from hosts import Host, Hosts
    from laboratory import Lab


def test_what_is_matched_on_the_timestamper_is_the_same_byte_for_byte(
    lab: Lab, three_hosts: Hosts
) -> None:
    """The captures stay on the timestamper; matched here again, they give the same files."""
    said = described(three_hosts) | {"captures": "leave"}
    said["nodes"]["stamp"]["ports"]["a1"]["cable_m"] = 10
    said["nodes"]["stamp"]["ports"]["b0"]["cable_m"] = 2
    plan = lab.plan(testbed=said, keep_captures=True, skip_s=0.1)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    matching, run = lab.result("run-000", "nodes")["matching"], lab.folder / "out" / "run-000"
    assert matching["matched_on"] == "stamp"
    assert matching["by"].startswith("tailtrim-agent ")
    captures = [_copied(three_hosts.hosts["stamp"], told, lab.folder) for told in matching["kept"]]
    departures = Departures.read(run / "departures.csv")
    options: dict[str, Any] = {"skip_s": 0.1, "departures": departures}
    again = lab.folder / "again"
    analyze(*captures, **options, correction_ns=59, out=again)
    for name in TABLES:
        file = f"{name}.parquet"
        assert (run / file).read_bytes() == (again / file).read_bytes(), name
    there, here = ((place / "summary.json").read_text() for place in (run, again))
    for capture in captures:
        # Where the captures were is in it.
        found = re.search(f'"capture": "(.*{capture.name})"', there)
        assert found is not None
        there = there.replace(found[1], str(capture))
    assert there == here
    told = lab.result("run-000", "provenance")["inputs"]
    digests = [hashlib.sha256(capture.read_bytes()).hexdigest() for capture in captures]
    assert [one["sha256"] for one in told] == digests
    _is_corrected(
        lab.result("run-000", "summary"), captures, options, lab.result("run-000", "nodes")
    )


def _is_corrected(
    summary: dict[str, Any], captures: list[Path], options: dict[str, Any], nodes: dict[str, Any]
) -> None:
    """10 m and 2 m at 4.9 ns/m: 59 ns less, at each quantile."""
    assert summary["correction_ns"] == nodes["correction"]["ns"] == 59
    assert nodes["correction"]["source"] == "lengths in the testbed file"
    plain = analyze(*captures, **options).summary.latency_ns
    assert plain.min is not None
    assert summary["latency_ns"]["min"] == plain.min - 59
    found = {q["p"]: q["value"] for q in summary["latency_ns"]["quantiles"]}
    assert found == {q.p: None if q.value is None else q.value - 59 for q in plain.quantiles}


def _copied(host: Host, told: str, folder: Path) -> Path:
    name, _, path = told.partition(":")
    assert name == host.name
    target = folder / path.rpartition("/")[2]
    words = ("nsenter", "-t", str(host.pid), "--mount", "--", "cat", path)
    with target.open("wb") as file:
        subprocess.run(["/usr/bin/env", *words], check=True, stdout=file)
    return target


def test_small_captures_are_fetched_and_nothing_stays(lab: Lab, three_hosts: Hosts) -> None:
    plan = lab.plan(testbed=described(three_hosts), keep_captures=True)
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    matching = lab.result("run-000", "nodes")["matching"]
    assert (matching["captures"], matching["matched_on"]) == ("auto", "here")
    assert 0 < matching["bytes"] < matching["fetched_up_to_bytes"]
    assert all((lab.folder / "out" / "run-000" / name).is_file() for name in matching["kept"])
    for host in three_hosts.hosts.values():
        assert host.left() == []


def test_minutes_of_a_run_on_hosts_are_fetched(lab: Lab, three_hosts: Hosts) -> None:
    plan = lab.plan(
        testbed=described(three_hosts),
        by_minute=True,
        traffic={"rate_pps": 2_000, "duration_s": 2},
    )
    ended = lab.run("run", str(plan), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    run, summary = lab.folder / "out" / "run-000", lab.result("run-000", "summary")
    assert sum(one.samples for one in minutes(run)) == summary["samples"] > 0
    assert len(counted(run)) == 1
    around = lab.result("run-000", "capture")["around"]
    assert {path.name for path in (run / "around").iterdir()} == {
        f"{one['ingress_ns']}-{tap}.pcap.zst" for one in around for tap in ("ingress", "egress")
    }
    for host in three_hosts.hosts.values():
        assert host.left() == []


def test_a_file_arrives_whole_although_the_connection_is_lost_on_the_way(
    lab: Lab, one_host: Hosts
) -> None:
    """Of 8 MB at 20 Mbit/s, about 3 s, the connection is lost after 5 MB, which are not sent again.

    Bytes that were on their way then are: a window of SSH has 2 MiB.
    """
    host = one_host.hosts["far"]
    with (
        SshSession("far", Ssh(**one_host.ssh("far")), "test") as session,
        SshNode("dut", session, [], lab.folder) as node,
    ):
        place = node.path("large.zst")
        node.run("sh", "-c", f"head -c 8000000 /dev/urandom >{place}")
        digest = node.run("sha256sum", place).split()[0]
        slow = "tc qdisc add dev control root tbf rate 20mbit burst 20kb latency 50ms"
        host.run(*slow.split())
        before = _sent(host)
        killed: list[int] = []
        killer = threading.Thread(target=_kill_after, args=(host, lab.folder, killed))
        killer.start()
        fetched = node.get("large.zst")
        killer.join()
        assert killed
        assert fetched is not None
        assert hashlib.sha256(fetched.read_bytes()).hexdigest() == digest
        assert _sent(host) - before < 8_000_000 + 3_000_000
        # Further transfers use the new connection.
        assert node.get("large.zst") == fetched
        assert node.get("missing") is None
    until_s = time.monotonic() + 20
    while host.left() and time.monotonic() < until_s:
        time.sleep(0.2)
    assert host.left() == []


def _sent(host: Host) -> int:
    """Return the bytes that a host has sent by the port of the connection."""
    (told,) = json.loads(host.run("ip", "-json", "-s", "link", "show", "dev", "control"))
    return int(told["stats64"]["tx"]["bytes"])


def _kill_after(host: Host, folder: Path, killed: list[int]) -> None:
    """Kill what serves the connection when 5 MB have come."""
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        if sum(_open_bytes(folder)) > 5_000_000:
            killed += host.serving()
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.02)


def _open_bytes(folder: Path) -> list[int]:
    """Return the sizes of this process's open files in a folder, removed ones too."""
    sizes = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if str(descriptor.readlink()).startswith(str(folder)):
                sizes.append(descriptor.stat().st_size)
    return sizes
