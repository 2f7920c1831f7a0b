"""Captures without addresses and payloads, and with the same numbers."""

from __future__ import annotations

import json
import re
import shutil
import struct
from ipaddress import ip_address, ip_network
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tailtrim.errors import ReleaseError
from tailtrim.publishing.release import CheckResult, ReleaseOptions, release, verify
from tailtrim.publishing.release.anonymous import Anonymous

pytestmark = pytest.mark.long

QUICK = ("files", "grid", "numbers", "validity")
RUN = "experiment/run-001"


def levels(root: Path) -> dict[str, CheckResult]:
    return {one.name: one for one in verify(root, only=QUICK)}


def texts(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def packets(place: Path) -> list[bytes]:
    content, at, found = place.read_bytes(), 24, []
    while at < len(content):
        (length,) = struct.unpack_from("<8xI4x", content, at)
        found.append(content[at + 16 : at + 16 + length])
        at += 16 + length
    return found


@pytest.fixture(scope="module")
def anonymised(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a release with anonymised captures; not to be altered."""
    place = tmp_path_factory.mktemp("anonymised") / "released"
    release(experiment, place, ReleaseOptions(anonymise=True))
    return place


def test_anonymised_captures_give_the_same_numbers(experiment: Path, anonymised: Path) -> None:
    out = anonymised
    found = levels(out)
    assert [one.wrong for one in found.values() if one.wrong] == []
    assert re.fullmatch("2 .*captures, 0 .*samples", found["numbers"].told)
    before = packets(experiment / "run-001" / "ingress.pcap")
    after = packets(out / RUN / "ingress.pcap")
    assert [len(one) for one in before] == [len(one) for one in after]
    for one, other in zip(before, after, strict=True):
        assert other[:12] != one[:12]
        assert other[26:34] != one[26:34]
        # Ports stay, the payload does not.
        assert other[34:38] == one[34:38]
        assert other[42:] != one[42:]
    # As many packets as before: the bytes in which they differ are still there.
    assert len({one[42:] for one in after}) == len({one[42:] for one in before})
    worst = [pq.read_table(at / "worst.parquet") for at in (out / RUN, experiment / "run-001")]
    assert worst[0]["latency_ns"] == worst[1]["latency_ns"]
    assert worst[0]["signature_low"] != worst[1]["signature_low"]


def test_anonymised_checksums_of_ipv4_hold(anonymised: Path) -> None:
    header = packets(anonymised / RUN / "ingress.pcap")[0][14:34]
    total = sum(struct.unpack(">10H", header))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF


def test_anonymised_mac_addresses_are_others_everywhere(anonymised: Path) -> None:
    found = [name for name, text in texts(anonymised).items() if b"02:00:00:00:01:03" in text]
    assert found == []
    ports = json.loads((anonymised / RUN / "nodes.json").read_text())["ports"]
    assert re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", ports["tap_out"]["mac"])


def test_addresses_that_share_a_prefix_share_one_afterwards() -> None:
    frame = bytes(12) + b"\x08\x00" + bytes.fromhex("4500001c00000000401100000a0102030a010263")
    anonymous = Anonymous()
    shown = anonymous.packet(frame + bytes.fromhex("0001000200080000"))
    one, other = (ip_address(shown[at : at + 4]) for at in (26, 30))
    assert one != ip_address("10.1.2.3")
    # 3 and 99 share their first bit: 25 bits in all.
    assert ip_address(other) in ip_network(f"{one}/25", strict=False)
    assert ip_address(other) not in ip_network(f"{one}/26", strict=False)
    six = bytes(12) + b"\x86\xdd" + bytes.fromhex("6000000000083b40" + "20" * 16 + "30" * 16)
    assert len(anonymous.packet(six + bytes(8))) == len(six) + 8
    assert anonymous.packet(six + bytes(8))[22:38] != b"\x20" * 16


@pytest.mark.parametrize("length", [0, 1, 13, 14, 15, 30, 33, 34, 40, 41, 42, 60])
def test_packets_that_are_cut_keep_their_length(length: int) -> None:
    headers = bytes(12) + b"\x81\x00\x00\x05\x08\x00"
    ipv4 = bytes.fromhex("4600002a00000000400600000a0102030a010263")
    frame = (headers + ipv4 + bytes(range(200, 240)))[:length]
    shown = Anonymous().packet(frame)
    assert len(shown) == length


def test_captures_of_another_format_are_refused(experiment: Path, tmp_path: Path) -> None:
    mine = Path(shutil.copytree(experiment, tmp_path / "experiment"))
    (mine / "run-000" / "ingress.pcap").write_bytes(b"\x0a\x0d\x0d\x0a" + bytes(100))
    with pytest.raises(ReleaseError, match=r"run-000/ingress\.pcap: .*pcap files of Ethernet"):
        release(mine, tmp_path / "out", ReleaseOptions(anonymise=True))
