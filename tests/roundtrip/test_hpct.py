"""HiPerConTracer's results: lines as its manual page has them, to the last field."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailtrim.analysis.roundtrip import HpctPing, RoundTripError, read_hpct, write_hpct
from tailtrim.analysis.roundtrip.hpct import hpct_name
from tailtrim.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable

PING_2 = (
    "#Pi 88888888 10.193.4.168 10.193.4.67 178f2cc6c7ea013a 0 b8 44 48 7d61 0 0 255 "
    "11666600 36997 6983 50311 426999 332708 -1"
)
PING_1 = "#P 2001:700:4100:4::2 2001:250:3801:71::149 5ed91fe263db1 9106 200 5000000 0 44 6"
TRACEROUTE_2 = (
    "#Ti 12345678 10.44.33.111 1.1.1.1 1795a9a23c629fbf 0 2 0 44 90e1 0 0 200 a7cfb997ef00d133\n"
    "\t1795a9a23c629fbf 1 56 1 116666aa 117720 19410 40428729 57465605 16899746 16778688 "
    "10.44.32.1\n"
    "\t1795a9a2447335b4 2 44 255 116666aa 85299 13915 16096643 17068626 872769 802375 1.1.1.1"
)
JITTER_2 = (
    "#Ji 7 10.0.0.1 10.0.0.2 178f2cc6c7ea013a 3 0 44 7d61 0 0 255 11666600 0 "
    "16 1 2 16 3 4 16 5 6 16 7 8 16 9 10 0 -1 -1"
)


def test_a_ping_to_its_last_field(tmp_path: Path) -> None:
    file = tmp_path / "some.hpct"
    file.write_text(f"#? HPCT Ping 2 HiPerConTracer/2.1.12\n{PING_2}\n")
    assert read_hpct(file) == [
        HpctPing(
            module="ICMP",
            measurement=88888888,
            source="10.193.4.168",
            destination="10.193.4.67",
            sent_ns=0x178F2CC6C7EA013A,
            burst_position=0,
            traffic_class=0xB8,
            packet_bytes=44,
            response_bytes=48,
            checksum=0x7D61,
            source_port=0,
            destination_port=0,
            status=255,
            time_source=0x11666600,
            app_send_ns=36997,
            queueing_ns=6983,
            app_receive_ns=50311,
            application_ns=426999,
            software_ns=332708,
            hardware_ns=-1,
        )
    ]


def test_version_1_has_microseconds(tmp_path: Path) -> None:
    file = tmp_path / "old.results"
    file.write_text("\n".join([PING_1, PING_1.rsplit(" ", 3)[0]]))
    first, second = read_hpct(file)
    assert (first.sent_ns, first.application_ns) == (0x5ED91FE263DB1 * 1000, 5_000_000_000)
    assert (first.status, first.answered) == (200, False)
    assert (first.packet_bytes, first.time_source) == (44, 0x06000000)
    assert (second.packet_bytes, second.time_source, second.checksum) == (0, 0, 0x9106)


def test_traceroutes_and_jitter_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "all.hpct"
    file.write_text(f"{TRACEROUTE_2}\n{TRACEROUTE_2}\n{PING_2}\n{JITTER_2}\n")
    assert [ping.application_ns for ping in read_hpct(file)] == [426999]


@pytest.mark.parametrize(
    "line",
    ["#Pi 1 10.0.0.1", "#Px 1", "#X 1", PING_2.replace("10.193", "x"), PING_2 + " 1"],
)
def test_damage_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "damaged.hpct"
    file.write_text(f"{PING_2}\n{line}\n")
    with pytest.raises(RoundTripError, match="line 2"):
        read_hpct(file)


@pytest.mark.parametrize("extension", ["", ".xz"])
def test_files_are_compressed_as_their_names_say(tmp_path: Path, extension: str) -> None:
    pings = read_lines(tmp_path, f"#? HPCT Ping 2 x/1\n{PING_2}\n")
    written = tmp_path / f"a.hpct{extension}"
    write_hpct(written, pings)
    assert read_hpct(written) == pings
    if not extension:
        assert written.read_text().splitlines()[1] == PING_2


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


@pytest.mark.parametrize("compress", [lzma.compress, bz2.compress, gzip.compress, zstd])
def test_compressed_files_are_read_by_their_content(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    text = f"{PING_2}\n"
    file = tmp_path / "whatever it is called"
    file.write_bytes(compress(text.encode()))
    assert read_hpct(file) == read_lines(tmp_path, text)


def test_a_file_cut_off_is_told(tmp_path: Path) -> None:
    write_hpct(tmp_path / "a.hpct.xz", read_lines(tmp_path, PING_2 + "\n") * 100)
    whole = (tmp_path / "a.hpct.xz").read_bytes()
    (tmp_path / "a.hpct.xz").write_bytes(whole[:-20])
    with pytest.raises(RoundTripError, match="cannot be read"):
        read_hpct(tmp_path / "a.hpct.xz")


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        write_hpct(tmp_path / "file" / "a.hpct", [])


def test_the_name_is_the_one_that_importers_look_for(tmp_path: Path) -> None:
    pings = read_lines(tmp_path, PING_2 + "\n")
    assert hpct_name(pings) == (
        "Ping-ICMP-#88888888-10.193.4.168-20231018T102656.811114-000000001.hpct.xz"
    )


def read_lines(folder: Path, text: str) -> list[HpctPing]:
    file = folder / "lines"
    file.write_text(text)
    return read_hpct(file)


NANOSECONDS = st.integers(-1, 2**62)


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            HpctPing,
            module=st.sampled_from(["ICMP", "UDP", "TCP"]),
            measurement=st.integers(0, 2**32 - 1),
            source=st.ip_addresses().map(str),
            destination=st.ip_addresses().map(str),
            sent_ns=st.integers(0, 2**63 - 1),
            burst_position=st.integers(0, 1023),
            traffic_class=st.integers(0, 255),
            packet_bytes=st.integers(0, 65535),
            response_bytes=st.integers(0, 65535),
            checksum=st.integers(0, 65535),
            source_port=st.integers(0, 65535),
            destination_port=st.integers(0, 65535),
            status=st.integers(0, 255),
            time_source=st.integers(0, 2**32 - 1),
            app_send_ns=NANOSECONDS,
            queueing_ns=NANOSECONDS,
            app_receive_ns=NANOSECONDS,
            application_ns=NANOSECONDS,
            software_ns=NANOSECONDS,
            hardware_ns=NANOSECONDS,
        )
    )
)
def test_what_is_written_is_read(pings: list[HpctPing]) -> None:
    import tempfile  # noqa: PLC0415 - a folder of its own for each example

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "a.hpct")
        write_hpct(place, pings)
        assert read_hpct(place) == pings
