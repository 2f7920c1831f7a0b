"""Round trips beside those of other tools, and in their formats."""

from __future__ import annotations

import json
import re
import signal
import statistics
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
import tools
from pairs import NEAR
from peers import EVERYWHERE
from reflectors import FAR
from releases import entering, of_release

from tailtrim.roundtrip import read_hpct, read_irtt
from tailtrim.roundtrip.hpct import HIPERCONTRACER
from tailtrim.roundtrip.irtt import IRTT

if TYPE_CHECKING:
    from pairs import Pair


pytestmark = pytest.mark.packages


def test_beside_iputils(pair: Pair) -> None:
    tools.need(tools.PING)
    text = pair.near.run("ping", "-n", "-i", "0.005", "-c", "200", FAR)
    theirs_ns = 1e6 * min(map(float, re.findall(r"time=([\d.]+) ms", text)))
    ours = pair.measure(FAR, "-p", "icmp", "--rate", "200pps", "-n", "200")
    # The shortest of each: how long the others take is decided by who else uses the CPUs (once a
    # median of 83 us beside one of 8 us).
    assert 0.1 < ours["parts"]["application"]["ns"]["min"] / theirs_ns < 10
    assert ours["parts"]["software"]["ns"]["min"] < 10 * theirs_ns


def test_beside_irtt(pair: Pair, tmp_path: Path) -> None:
    tools.need(IRTT)
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
    apart = []
    for trip in trips:
        assert None not in {trip.forward_ns, trip.backward_ns, trip.far_sent_ns}
        one_way_ns = (trip.forward_ns or 0) + (trip.backward_ns or 0)
        apart.append(abs(one_way_ns - (trip.round_trip_ns or 0)))
    # irtt reads one clock for the ways and another one for the round trip, and may be interrupted
    # in between.
    assert statistics.median(apart) < 2_000
    ours = pair.measure(FAR, "-p", "icmp", "--rate", "200pps", "-n", "200")
    # The same unit: how long it takes is the machine's.
    assert 0.01 < ours["parts"]["application"]["ns"]["p50"] / statistics.median(took) < 100
    imported = pair.lab.run("import", str(place), "--out", "irtt", "--json")
    assert imported.returncode == 0, imported.stderr
    summary = json.loads(imported.stdout)
    assert (summary["samples"], summary["latency_ns"]["max"]) == (len(took), took[-1])


def test_beside_sockperf(pair: Pair) -> None:
    tools.need(tools.SOCKPERF)
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


@pytest.mark.parametrize("module", ["installed", "ICMP", "UDP"])
def test_what_hipercontracer_writes(pair: Pair, tmp_path: Path, module: str) -> None:
    """Debian's own release, of 2022, and sid's."""
    if module == "installed":
        tools.need(HIPERCONTRACER)
        program, how = ["hipercontracer"], []
    else:
        program, how = [*entering("sid-peers"), "hipercontracer"], ["--iomodule", module]
    folder = tmp_path / "hpct"
    folder.mkdir()
    with ExitStack() as stack:
        if module == "UDP":
            words = (pair.lab.agent, "reflect", "--echo", "7", *EVERYWHERE)
            stack.enter_context(pair.far.start(*words, log="reflect.log"))
            pair.lab.until(Path(pair.far.path("reflect.log")), "ready")
        # It runs until it is told to end.
        process = subprocess.Popen(
            [
                *pair.near.prefix,
                *(*program, *how, "-S", NEAR, "-D", FAR, "-P", "--pinginterval", "200"),
                *("-R", str(folder), "-U", "root"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        process.wait(30)
    (file,) = [path for path in folder.iterdir() if path.is_file()]
    pings = read_hpct(file).pings
    assert pings
    for ping in pings:
        assert (ping.source, ping.destination, ping.status) == (NEAR, FAR, 255)
        assert 0 < ping.application_ns < 10**9
        assert ping.packet_bytes == 44
        assert ping.module == ("UDP" if module == "UDP" else "ICMP")
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
    kept = pq.read_schema(run / "roundtrip.parquet").metadata[b"tailtrim.ping"]
    assert json.loads(kept)["lost_ways"] == stream["lost_ways"]
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
    table = pair.lab.folder / "theirs.csv"
    theirs = [*of_release("sid-peers", "hpct-results"), str(pair.lab.folder / place)]
    subprocess.run([*theirs, "-o", str(table)], check=True)
    assert len(table.read_text().splitlines()) == 301
    assert {ping.time_source for ping in pings} == {0x11666600}
    software = sorted(ping.software_ns for ping in pings)
    assert software[-1] == stream["parts"]["software"]["ns"]["max"]
    assert all(
        ping.application_ns
        == ping.app_send_ns + ping.queueing_ns + ping.software_ns + ping.app_receive_ns
        for ping in pings
    )
