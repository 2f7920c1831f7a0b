"""Captures by Wireshark's tools: pcapng with options, merged, with comments, compressed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from peers import FAR
from releases import entering

if TYPE_CHECKING:
    from peers import Cable

pytestmark = pytest.mark.packages

AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
DATAGRAMS = 200
COMMENT = "a cable and a loopback"


def told(*words: str | Path) -> str:
    """Return what one of Wireshark's tools prints."""
    command = [*entering("sid-peers"), *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read(place: Path) -> dict[str, Any]:
    """Return what we make of a capture, matched with itself."""
    words = [AGENT, "analyze", str(place), str(place), "--skip", "0", "--allow-negative"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    # 1: copies are no second packet.
    assert done.returncode in (0, 1), done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


@pytest.fixture
def captured(cable: Cable, tmp_path: Path) -> Path:
    """Return what dumpcap captures on two interfaces, at the resolution of nanoseconds."""
    tmp_path.chmod(0o777)
    place = tmp_path / "two.pcapng"
    words = ["dumpcap", "-q", "-i", "near", "-f", "udp", "-i", "lo", "-f", "udp"]
    words += ["--capture-comment", COMMENT, "-w", str(place)]
    writer = subprocess.Popen(
        cable.near.command(*entering("sid-peers"), *words),
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 20
    while not (place.is_file() and place.stat().st_size) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1)
    with cable.far_listener(9):
        asker, own = cable.asker(FAR, 9), cable.asker("127.0.0.1", 9)
        for number in range(DATAGRAMS):
            for sender in (asker, own):
                sender.socket.sendto(b"probe %6d" % number, sender.to)
    time.sleep(1)
    writer.send_signal(signal.SIGINT)
    _, said = writer.communicate(timeout=20)
    assert writer.returncode == 0, said
    return place


def test_all_that_it_wrote_is_read(captured: Path) -> None:
    named = dict(
        re.findall(r"^(\w[^:\n]*): +(.+)$", told("capinfos", "-M", captured), re.MULTILINE)
    )
    assert named["Number of packets"] == str(2 * DATAGRAMS)
    assert named["Capture comment"] == COMMENT
    summary = read(captured)
    tap = summary["taps"]["ingress"]
    assert (summary["samples"], summary["latency_ns"]["max"]) == (2 * DATAGRAMS, 0)
    assert named["Data size"] == f"{tap['bytes']} bytes"
    assert (tap["tap_drops"], tap["damage"]) == (0, None)
    for name, ns in (("Earliest packet time", "first_ns"), ("Latest packet time", "last_ns")):
        assert named[name].endswith(f".{tap[ns] % 10**9:09}")


@pytest.mark.parametrize(
    ("words", "copies"),
    [
        (["editcap", "-a", "3:a comment of a packet", "OLD", "NEW"], 1),
        (["editcap", "-F", "nsecpcap", "OLD", "NEW"], 1),
        (["editcap", "--compress", "gzip", "OLD", "NEW"], 1),
        (["mergecap", "-I", "none", "-w", "NEW", "OLD", "OLD"], 2),
        (["mergecap", "-I", "all", "-a", "-w", "NEW", "OLD", "OLD"], 2),
    ],
    ids=["comments", "nanosecond pcap", "gzip", "all interfaces", "one behind the other"],
)
def test_so_is_what_other_tools_make_of_it(
    captured: Path, tmp_path: Path, words: list[str], copies: int
) -> None:
    made = tmp_path / "made"
    told(*({"OLD": captured, "NEW": made}.get(word, word) for word in words))
    before, after = read(captured), read(made)
    assert after["ingress"]["packets"] == copies * 2 * DATAGRAMS
    for name in ("first_ns", "last_ns", "damage"):
        assert after["taps"]["ingress"][name] == before["taps"]["ingress"][name]
