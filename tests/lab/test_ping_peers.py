"""Round trips compared with those of other tools, and in their formats."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import tools
from pairs import NEAR, paired
from peers import EVERYWHERE
from reflectors import FAR
from releases import entering, of_release

from tailtrim.analysis.roundtrip import read_hpct, read_irtt
from tailtrim.analysis.roundtrip.hpct import HIPERCONTRACER
from tailtrim.analysis.roundtrip.irtt import IRTT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pairs import Pair


pytestmark = pytest.mark.packages
#: So long a frame is held on its way there, and on its way back.
THERE_NS, BACK_NS = 20_000_000, 5_000_000


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return two hosts with a wire of a known length between them."""
    ways = (THERE_NS, BACK_NS)
    with paired(tmp_path_factory.mktemp("pair"), lambda way, _: [ways[way]]) as pair:
        yield pair


def is_the_round_trip(shortest_ns: float) -> bool:
    """Say whether the shortest of many takes as long as the wire holds frames, and little more.

    One way in place of both, half, twice or another unit does not; nor does a tool that measures
    from where a probe comes back. The 10 ms on top are for a machine that does other things: of
    each tool it is the shortest trip that counts.
    """
    return THERE_NS + BACK_NS <= shortest_ns < THERE_NS + BACK_NS + 10_000_000


@pytest.mark.reflectors
def test_ours(pair: Pair) -> None:
    """Both round trips of ``ping`` are those of the wire."""
    parts = pair.measure(FAR, "-p", "icmp", "--rate", "200pps", "-c", "200")["parts"]
    assert is_the_round_trip(parts["application"]["ns"]["min"])
    assert is_the_round_trip(parts["software"]["ns"]["min"])


def test_those_of_iputils(pair: Pair) -> None:
    """The program that users compare with says the same of the same wire."""
    tools.need(tools.PING)
    text = pair.near.run("ping", "-n", "-i", "0.01", "-c", "100", FAR)
    assert is_the_round_trip(1e6 * min(map(float, re.findall(r"time=([\d.]+) ms", text))))


def test_those_of_irtt(pair: Pair, tmp_path: Path) -> None:
    """Its round trips are imported as it counts them."""
    tools.need(IRTT)
    place = tmp_path / "irtt.json.gz"
    with serving(pair, 2112, "irtt", "server", "-b", FAR):
        pair.near.run("irtt", "client", "-i", "10ms", "-d", "1s", "-q", "-o", str(place), FAR)
    session = read_irtt(place)
    stats = json.loads(gzip.decompress(place.read_bytes()))["stats"]
    assert session.remote == f"{FAR}:2112"
    took = sorted(ns for ns in session.round_trip_ns if ns >= 0)
    assert len(took) == len(session.sent_ns) == stats["packets_sent"]
    assert is_the_round_trip(took[0])
    assert (took[0], took[-1]) == (stats["rtt"]["min"], stats["rtt"]["max"])
    imported = pair.lab.run("import", str(place), "--out", "irtt", "--json")
    assert imported.returncode == 0, imported.stderr
    summary = json.loads(imported.stdout)
    assert (summary["samples"], summary["latency_ns"]["max"]) == (len(took), took[-1])


def test_those_of_sockperf(pair: Pair) -> None:
    """It says half of a round trip unless it is asked for the whole."""
    tools.need(tools.SOCKPERF)
    with serving(pair, 11_111, "sockperf", "server", "-i", FAR):
        text = pair.near.run("sockperf", "ping-pong", "-i", FAR, "-t", "1", "--full-rtt")
    found = re.search(r"<MIN> observation *= *([\d.]+)", text)
    assert found, text
    assert is_the_round_trip(1e3 * float(found[1]))


@contextmanager
def serving(pair: Pair, port: int, *command: str) -> Iterator[None]:
    """Have a program answer at a UDP port of the far host."""
    with subprocess.Popen([*pair.far.prefix, *command], stdout=subprocess.DEVNULL) as server:
        try:
            pair.until_bound(port)
            yield
        finally:
            server.kill()


@pytest.mark.parametrize("module", ["installed", "ICMP", "UDP"])
def test_those_of_hipercontracer(pair: Pair, tmp_path: Path, module: str) -> None:
    """Debian's own release, of 2022, and sid's: the unit and the stamps are read as meant."""
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
        pair.until_received(8)
        process.send_signal(signal.SIGINT)
        process.wait(30)
    (file,) = [path for path in folder.iterdir() if path.is_file()]
    pings = read_hpct(file)
    assert is_the_round_trip(min(ping.application_ns for ping in pings))
    for ping in pings:
        assert (ping.source, ping.destination, ping.status) == (NEAR, FAR, 255)
        assert ping.packet_bytes == 44
        assert ping.module == ("UDP" if module == "UDP" else "ICMP")
    imported = pair.lab.run("import", str(file), "--out", f"hpct-{module}", "--json")
    assert imported.returncode == 0, imported.stderr
    assert json.loads(imported.stdout)["samples"] == len(pings)


@pytest.fixture(scope="module")
def run(pair: Pair) -> dict[str, Any]:
    """Have a run directory of 300 round trips by ICMP; return what was told of its stream."""
    words = (FAR, "-p", "icmp", "--rate", "500pps", "-c", "300", "--out", "run", "--json")
    ended = subprocess.run(
        [*pair.near.prefix, *pair.lab.command("ping", *words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=pair.lab.folder,
    )
    assert ended.returncode == 0, ended.stderr
    (stream,) = json.loads(ended.stdout)["streams"]
    assert isinstance(stream, dict)
    return stream


@pytest.fixture(scope="module")
def converted(pair: Pair, run: dict[str, Any]) -> Path:
    """Return the run in HiPerConTracer's format."""
    del run
    ended = pair.lab.run("convert", "run", "--format", "hpct")
    assert ended.returncode == 0, ended.stderr
    return pair.lab.folder / ended.stdout.strip()


@pytest.mark.reflectors
def test_a_run_directory_is_what_was_told(pair: Pair, run: dict[str, Any]) -> None:
    folder = pair.lab.folder / "run"
    assert json.loads((folder / "summary.json").read_text()) == run["summary"]
    kept = pq.read_schema(folder / "roundtrip.parquet").metadata[b"tailtrim.ping"]
    assert json.loads(kept)["lost_ways"] == run["lost_ways"]
    reported = pair.lab.run("report", "run")
    assert reported.returncode == 0, reported.stderr


@pytest.mark.reflectors
def test_a_run_in_hipercontracers_format(run: dict[str, Any], converted: Path) -> None:
    name = rf"Ping-ICMP-#0-{NEAR}-\d{{8}}T\d{{6}}\.\d{{6}}-000000001\.hpct\.xz"
    assert re.fullmatch(name, converted.name)
    pings = read_hpct(converted)
    assert len(pings) == 300
    assert {ping.time_source for ping in pings} == {0x11666600}
    software = sorted(ping.software_ns for ping in pings)
    assert software[-1] == run["parts"]["software"]["ns"]["max"]
    assert all(
        ping.application_ns
        == ping.app_send_ns + ping.queueing_ns + ping.software_ns + ping.app_receive_ns
        for ping in pings
    )


def test_hipercontracers_tool_reads_it(converted: Path, tmp_path: Path) -> None:
    table = tmp_path / "theirs.csv"
    theirs = [*of_release("sid-peers", "hpct-results"), str(converted), "-o", str(table)]
    subprocess.run(theirs, check=True)
    assert len(table.read_text().splitlines()) == 301
