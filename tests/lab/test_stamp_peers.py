"""STAMP with peers that others wrote: stamp-suite (crates.io) and scapy (PyPI)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fetched import CRATES
from peers import FAR, KEY, NEAR, adds_up

if TYPE_CHECKING:
    from peers import Cable

pytestmark = pytest.mark.packages
AGENT = str(Path(sys.executable).with_name("tailtrim-agent"))
PROBES = 10


@pytest.fixture
def stamp_suite() -> str:
    found = shutil.which("stamp-suite") or shutil.which(CRATES / "stamp-suite")
    if found is None:
        pytest.skip("stamp-suite is not here (packaging/fetch.sh stamp-suite compiles it)")
    return found


@pytest.fixture(params=["open", "signed"])
def keyed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], list[str]]:
    """Return what our agent and stamp-suite need to know of the key."""
    if request.param == "open":
        return [], []
    path = tmp_path / "key"
    path.write_bytes(KEY)
    path.chmod(0o600)
    return ["--key-file", str(path)], ["--auth-mode", "A", "--hmac-key-file", str(path)]


def asked_by(cable: Cable, program: str, *words: str) -> dict[str, Any]:
    done = cable.near.run(
        program, "-r", FAR, "-S", NEAR, "-c", str(PROBES), "-d", "50", "-L", "2", "--ssid", "7",
        "--output-format", "json", *words,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (told["packets_sent"], told["packets_lost"]) == (PROBES, 0)
    return told


def test_it_understands_all_that_we_answer(
    cable: Cable, stamp_suite: str, keyed: tuple[list[str], list[str]]
) -> None:
    ours, theirs = keyed
    with cable.reflector(AGENT, "--stamp", "862", "--stateful", *ours) as reflector:
        told = asked_by(
            cable, stamp_suite, "--cos", "--dscp", "10", "--timestamp-info", "--location",
            "--direct-measurement", "--follow-up-telemetry", "--access-report", "1",
            "--extra-padding", "20", *theirs,
        )  # fmt: skip
        result = reflector.stop()
    assert adds_up(result)
    seen = told["measurements"]["tlv_validation"]
    assert (seen["evaluated_replies"], seen["rejected_replies"]) == (PROBES, 0)
    assert seen["flags"] == dict.fromkeys(seen["flags"], 0)
    # All types of RFC 8972, the last only where it is signed.
    kinds = {"1", "2", "3", "4", "5", "6", "7"} | ({"8"} if theirs else set())
    assert set(seen["by_type"]) == kinds
    assert seen["hmac"]["verified"] == (PROBES if theirs else 0)
    assert seen["hmac"]["failed"] == seen["hmac"]["missing"] == 0
    counters = told["measurements"]["direct_measurement"]["latest_transmit"]
    assert counters == {"sender_tx": PROBES, "reflector_rx": PROBES, "reflector_tx": PROBES}
    follow_up = told["measurements"]["follow_up"]
    assert (follow_up["observations"], follow_up["unavailable"]) == (PROBES, 1)
    assert follow_up["matched"] + follow_up["repeated"] == PROBES - 1


def test_what_it_malforms_comes_back_marked(cable: Cable, stamp_suite: str) -> None:
    with cable.reflector(AGENT, "--stamp", "862"):
        told = asked_by(cable, stamp_suite, "--cos", "--malformed", "bad-length")
        kinds = told["measurements"]["tlv_validation"]["by_type"]
        assert kinds["1"]["flags"]["malformed"] == PROBES
        assert kinds["4"]["flags"]["malformed"] == 0
        told = asked_by(cable, stamp_suite, "--cos", "--malformed", "bad-flags")
        flags = told["measurements"]["tlv_validation"]["flags"]
        assert flags == dict.fromkeys(flags, 0)


def test_it_answers_what_we_ask(
    cable: Cable, stamp_suite: str, keyed: tuple[list[str], list[str]]
) -> None:
    ours, theirs = keyed
    process = subprocess.Popen(
        cable.far.command(stamp_suite, "-i", "-S", FAR, "--stateful-reflector", *theirs),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ping = (AGENT, "ping", FAR, "-p", "stamp", "--json", "--timeout", "0.5", *ours)
        for _ in range(50):
            if cable.near.run(*ping, "-c", "1").returncode == 0:
                break
            time.sleep(0.1)
        asked = ("-c", "50", "--rate", "50pps", "--follow-up", "--packet-bytes", "300")
        done = cable.near.run(*ping, *asked)
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    (stream,) = json.loads(done.stdout)["streams"]
    assert stream["probes"]["answered"] == 50
    assert stream["parts"]["residence"]["ns"]["min"] > 0
    # Of the last one nobody can tell; where the machine does other things, of some more.
    assert stream["follow_up"]["told"] >= 40
    assert sum(stream["follow_up"].values()) == 50


@pytest.mark.reflectors
def test_scapy_reads_our_replies(cable: Cable) -> None:
    stamp = pytest.importorskip("scapy.contrib.stamp", reason="scapy is not installed")
    tlvs = [
        stamp.STAMPTestTLV(flags=0x80, type=kind, len=len(value), value=value)
        for kind, value in ((4, bytes(4)), (7, bytes(16)), (200, b"abc"), (5, b"short"), (1, b"p"))
    ]
    with cable.reflector(AGENT, "--stamp", "862", "--stateful"):
        request = stamp.STAMPSessionSenderTestUnauthenticated(seq=9, ssid=77, tlv_objects=tlvs)
        reply = cable.asker(FAR, 862).ask(bytes(request))
    assert reply is not None
    read = stamp.STAMPSessionReflectorTestUnauthenticated(reply)
    assert (read.seq, read.ssid, read.seq_sender, read.ttl_sender) == (0, 77, 9, 64)
    assert float(read.ts) >= float(read.ts_rx)
    # Known, known, not known, malformed, and what is behind that. By number: scapy names flags
    # from the other end.
    assert [int(tlv.flags) for tlv in read.tlv_objects] == [0, 0, 0x80, 0x40, 0x80]


@pytest.mark.reflectors
def test_scapy_reads_our_probes(cable: Cable) -> None:
    stamp = pytest.importorskip("scapy.contrib.stamp", reason="scapy is not installed")
    with cable.far_listener(862) as listener:
        cable.near.run(
            AGENT, "ping", FAR, "-p", "stamp", "-c", "1", "--follow-up", "--packet-bytes", "120",
            "--timeout", "0.1",
        )  # fmt: skip
        probe = listener.recv(2048)
    read = stamp.STAMPSessionSenderTestUnauthenticated(probe)
    assert (read.seq, read.mbz) == (0, 0)
    assert read.ssid != 0
    assert [(tlv.type, tlv.len, int(tlv.flags)) for tlv in read.tlv_objects] == [
        (7, 16, 0x80),
        (1, 24, 0x80),
    ]
    assert read.tlv_objects[0].value == bytes(16)
