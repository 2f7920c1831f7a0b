"""Captures as people have them: the line that the command says about them."""

from __future__ import annotations

import json
import random
import struct
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import tailtrim
from tailtrim.cli.application import app
from tailtrim.errors import ExitCode, TwoDirectionsError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PACKETS = 800
START_NS = 1_900_000_000_000_000_000
CLIENT, SERVER = b"\x0a\x01\x02\x03", b"\x0a\x04\x05\x06"


def frame(
    number: int,
    ends: tuple[bytes, bytes] = (CLIENT, SERVER),
    tos: int = 0,
    tag: bytes = b"",
    ttl: int = 60,
) -> bytes:
    datagram = struct.pack(">HHHHQ", 7_000, 8_000, 24, 0, number) + bytes(8)
    header = struct.pack(">BBHHHBBH", 0x45, tos, 44, 3, 0, ttl, 17, 0)
    return bytes(range(12)) + tag + b"\x08\x00" + header + ends[0] + ends[1] + datagram


def write(path: Path, packets: Iterable[tuple[int, bytes]], *, in_order: bool = True) -> Path:
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
        for stamp_ns, content in sorted(packets) if in_order else packets:
            seconds, rest = divmod(stamp_ns, 10**9)
            file.write(struct.pack("<IIII", seconds, rest, len(content), len(content)) + content)
    return path


def latency_ns(number: int) -> int:
    return 3_000 + random.Random(number).randrange(2_000)  # noqa: S311 - not secret


def entered_ns(number: int) -> int:
    return START_NS + number * 70_000


@pytest.fixture
def marked(tmp_path: Path) -> tuple[str, str]:
    """Return captures of a device that marks and delays every eighth packet."""
    is_marked = [number % 8 == 5 for number in range(PACKETS)]
    left = [
        (entered_ns(number) + latency_ns(number) + 400_000 * mark, frame(number, tos=3 * mark))
        for number, mark in enumerate(is_marked)
    ]
    entered = [(entered_ns(number), frame(number)) for number in range(PACKETS)]
    return str(write(tmp_path / "in.pcap", entered)), str(write(tmp_path / "out.pcap", left))


def write_both_ways(folder: Path, ahead_ns: int = 0) -> tuple[str, str]:
    """Write captures of both sides of a firewall, the outer one by a clock that is ahead."""
    inside, outside = [], []
    for number in range(PACKETS):
        request, reply = frame(number), frame(10**6 + number, (SERVER, CLIENT))
        inside.append((entered_ns(number), request))
        outside.append((entered_ns(number) + latency_ns(number), request))
        outside.append((entered_ns(number) + 33_000, reply))
        inside.append((entered_ns(number) + 33_000 + latency_ns(number), reply))
    outside = [(stamp_ns + ahead_ns, content) for stamp_ns, content in outside]
    return str(write(folder / "in.pcap", inside)), str(write(folder / "out.pcap", outside))


@pytest.fixture
def both_ways(tmp_path: Path) -> tuple[str, str]:
    return write_both_ways(tmp_path)


def analyze(*arguments: str) -> tuple[int, str]:
    """Return the exit code and the output, in one line."""
    result = CliRunner(env={"NO_COLOR": "1"}).invoke(app, ["analyze", "--skip", "0", *arguments])
    return result.exit_code, " ".join(result.output.split())


def test_the_verdict_says_which_option_matches_marked_packets(marked: tuple[str, str]) -> None:
    code, told = analyze(*marked)
    assert code == ExitCode.NEGATIVE
    assert "Not the latency of the device: 100 lost and 100 unmatched packets" in told
    assert "--mask tos matches them" in told
    code, told = analyze(*marked, "--mask", "tos")
    assert (code, "800 = 800 matched + 0 lost" in told) == (ExitCode.SUCCESS, True)


def test_copies_of_a_mirror_port_are_told_and_add_up(tmp_path: Path) -> None:
    entered = [
        (entered_ns(number) + late_ns, frame(number, tag=tag))
        for number in range(PACKETS)
        for late_ns, tag in ((0, b""), (900, b"\x81\x00\x00\x05"))
    ]
    left = [(entered_ns(number) + latency_ns(number), frame(number)) for number in range(PACKETS)]
    paths = str(write(tmp_path / "in.pcap", entered)), str(write(tmp_path / "out.pcap", left))
    code, told = analyze(*paths)
    assert code == ExitCode.SUCCESS
    assert "1,600 = 800 matched + 0 lost + 800 copies of a mirror port" in told
    summary = tailtrim.analyze(*paths, skip_s=0).summary
    assert summary.ingress.copy == PACKETS
    assert summary.rate_pps == pytest.approx(10**9 / 70_000, rel=0.01)


@pytest.mark.parametrize("ttl", [59, 60])
def test_both_sides_of_the_device_at_egress_are_told(tmp_path: Path, ttl: int) -> None:
    """The copy that was forwarded counts; where nothing tells which it is, no percentile does."""
    entered = [(entered_ns(number), frame(number)) for number in range(PACKETS)]
    left = [(stamp_ns + 500, content) for stamp_ns, content in entered]
    left += [
        (entered_ns(number) + latency_ns(number), frame(number, ttl=ttl))
        for number in range(PACKETS)
    ]
    paths = str(write(tmp_path / "in.pcap", entered)), str(write(tmp_path / "out.pcap", left))
    code, told = analyze(*paths)
    if ttl < 60:
        assert code == ExitCode.SUCCESS
        assert "800 egress packets are copies from before the device" in told
        analysis = tailtrim.analyze(*paths, skip_s=0, by="dscp")
        for summary in (analysis.summary, analysis.groups[0].summary):
            assert (summary.latency_ns.min or 0) >= 3_000
    else:
        assert code == ExitCode.NEGATIVE
        assert told.startswith("in.pcap: Not the latency of the device: the egress capture has")


def test_samples_are_taken_once_where_copies_begin_later(tmp_path: Path) -> None:
    """Captures are matched again if a mirror port begins later to write packets down twice."""
    packets, begun = 6_000, 4_500
    entered = [(entered_ns(number), frame(number)) for number in range(packets)]
    entered += [
        (entered_ns(number) + 900, frame(number, tag=b"\x81\x00\x00\x05"))
        for number in range(begun, packets)
    ]
    left = [(entered_ns(number) + latency_ns(number), frame(number)) for number in range(packets)]
    paths = str(write(tmp_path / "in.pcap", entered)), str(write(tmp_path / "out.pcap", left))
    out = tmp_path / "run"
    analysis = tailtrim.analyze(*paths, skip_s=0, keep_samples=True, by="dscp", out=out)
    assert analysis.summary.ingress.copy == packets - begun
    assert sum(group.summary.ingress.copy for group in analysis.groups) == packets - begun
    assert len(analysis.latencies_ns()) == analysis.summary.samples == packets
    assert pq.read_metadata(out / "sample.parquet").num_rows == packets


def test_packets_that_are_sent_again_while_late_decide_nothing(tmp_path: Path) -> None:
    """A sender that sends again what is late for so long makes duplicates of the late packets."""
    entered, left = [], []
    for number in range(2 * PACKETS):
        entered.append((entered_ns(number), frame(number)))
        late_ns = 300_000_000 if number % 50 == 7 else 0
        left.append((entered_ns(number) + latency_ns(number) + late_ns, frame(number)))
        if late_ns:
            entered.append((entered_ns(number) + 250_000_000, frame(number)))
            left.append((entered_ns(number) + 300_050_000, frame(number)))
    paths = str(write(tmp_path / "in.pcap", entered)), str(write(tmp_path / "out.pcap", left))
    code, told = analyze(*paths, "--assert", "p99 < 50us")
    assert code == ExitCode.UNDECIDED
    assert told.startswith(
        "in.pcap: 64 of 1,632 packets are in no percentile, because they cannot be told apart:"
        " whether they were late or lost is unknown. 90 % of packets within"
    )
    assert "not decided: p99 < 50us" in told
    assert " 0\N{EN DASH}3.9 " in told
    assert "64 duplicates are in no latency" in told
    code, told = analyze(*paths, "--assert", "p50 < 50us", "--assert", "p50 < 1us")
    assert code == ExitCode.NEGATIVE
    assert "passed: p50 < 50us" in told
    assert "failed: p50 < 1us" in told


def test_packets_before_a_late_start_of_the_egress_tap_are_not_lost(tmp_path: Path) -> None:
    gap_ns = 10_000_000
    entered = [(START_NS + number * gap_ns, frame(number)) for number in range(PACKETS)]
    left = [(stamp_ns + 5_500, content) for stamp_ns, content in entered[PACKETS // 2 :]]
    paths = str(write(tmp_path / "in.pcap", entered)), str(write(tmp_path / "out.pcap", left))
    code, told = analyze(*paths)
    assert code == ExitCode.SUCCESS
    assert "800 = 400 matched + 0 lost + 400 cut at the captures' ends" in told
    assert "the first egress packet left 4.0 s after the first ingress packet entered" in told


def test_a_clock_that_is_set_forward_and_back_is_told(tmp_path: Path) -> None:
    gap_ns = 10_000_000
    stamps = [START_NS + number * gap_ns for number in range(PACKETS)]
    entered = [(stamp_ns, frame(number)) for number, stamp_ns in enumerate(stamps)]
    left = [
        (stamp_ns + latency_ns(number) + (400_000_000 if 300 <= number < 330 else 0), content)
        for number, (stamp_ns, content) in enumerate(entered)
    ]
    ingress, egress = str(write(tmp_path / "in.pcap", entered)), tmp_path / "out.pcap"
    # As the tap writes them: not in the order of their stamps.
    write(egress, left, in_order=False)
    code, told = analyze(ingress, str(egress))
    assert code == ExitCode.NEGATIVE
    assert "Not the latency of the device: even the fastest packets take 400 ms longer from" in told
    code, told = analyze(ingress, str(egress), "--clock-fit")
    assert (code, "90 % of packets within 4.8" in told) == (ExitCode.SUCCESS, True)


def test_options_of_engines_are_refused_by_the_native_matcher(marked: tuple[str, str]) -> None:
    for option, value in (("--memory", "foo"), ("--server", "x"), ("--scratch", ".")):
        code, told = analyze(*marked, option, value)
        assert code == ExitCode.INVALID
        assert f"error: {option} is for engines (--engine), the native matcher has none" in told


def test_one_sample_is_one_sample(tmp_path: Path) -> None:
    paths = (
        str(write(tmp_path / name, [(entered_ns(0) + late_ns, frame(0))]))
        for name, late_ns in (("in.pcap", 0), ("out.pcap", 5_000))
    )
    code, told = analyze(*paths)
    assert code == ExitCode.SUCCESS
    assert "1 sample supports no percentile" in told
    assert "1 samples" not in told
    assert "the 1 worst packet (5.00 µs and more) forms 1 cluster" in told


def test_standard_input_is_one_capture() -> None:
    code, told = analyze("-", "-")
    assert code == ExitCode.INVALID
    assert "standard input (-) is one capture, expected a file" in told


def test_latencies_below_the_resolution_are_not_negative(tmp_path: Path) -> None:
    """Stamps of 1 µs make most latencies of 400 ns 0."""
    stamps = [entered_ns(number) + 10 * latency_ns(number) for number in range(PACKETS)]
    taps = (
        [(stamp_ns // 1_000 * 1_000, frame(number)) for number, stamp_ns in enumerate(taken)]
        for taken in (stamps, [stamp_ns + 400 for stamp_ns in stamps])
    )
    paths = (
        str(write(tmp_path / name, tap)) for name, tap in zip(("in", "out"), taps, strict=True)
    )
    code, told = analyze(*paths)
    assert code == ExitCode.SUCCESS
    assert "ingress stamps have steps of 1 µs, egress stamps of 1 µs" in told
    assert "negative" not in told


def test_both_directions_are_printed(both_ways: tuple[str, str]) -> None:
    code, told = analyze(*both_ways)
    assert code == ExitCode.SUCCESS
    assert told.startswith("forward: 90 % of packets within")
    assert told.count("800 = 800 matched + 0 lost") == 2
    assert "clocks" not in told.replace("some clocks", "")


def test_clocks_that_are_apart_are_told_and_corrected_in_both_directions(tmp_path: Path) -> None:
    pair = write_both_ways(tmp_path, ahead_ns=1_000_000)
    code, told = analyze(*pair)
    assert code == ExitCode.NEGATIVE
    assert "the egress clock is 1.00 ms ahead of the ingress clock" in told
    assert "the egress clock is 1.00 ms behind the ingress clock" in told
    code, told = analyze(*pair, "--clock-fit")
    assert (code, told.count("800 = 800 matched + 0 lost")) == (ExitCode.SUCCESS, 2)
    for direction in ("forward", "reverse"):
        summary = tailtrim.analyze(*pair, direction=direction, clock_fit=True).summary
        assert summary.clock_fit is not None
        assert summary.clock_fit.fastest_ns == pytest.approx(3_000, abs=100)
        assert summary.latency_ns.min == pytest.approx(3_000, abs=200)


def test_one_result_takes_a_direction(both_ways: tuple[str, str], tmp_path: Path) -> None:
    for arguments in (["--json"], ["--out", str(tmp_path / "run")]):
        code, told = analyze(*both_ways, *arguments)
        assert code == ExitCode.INVALID
        assert "packets of two directions" in told
        assert told.endswith("hint: use --direction forward or --direction reverse")
    assert not (tmp_path / "run").exists()
    with pytest.raises(TwoDirectionsError, match="packets of two directions"):
        tailtrim.analyze(*both_ways, skip_s=0)
    for direction in ("forward", "reverse"):
        _, told = analyze(*both_ways, "--direction", direction, "--json")
        latency = json.loads(told)["latency_ns"]
        assert 3_000 <= latency["min"] < latency["max"] < 5_000
        summary = tailtrim.analyze(*both_ways, direction=direction, skip_s=0).summary
        assert summary.samples == PACKETS
    with pytest.raises(ValueError, match="expected forward or reverse"):
        tailtrim.analyze(*both_ways, direction="sideways")


def test_packets_without_a_stamp_at_egress_are_part_of_the_rate(tmp_path: Path) -> None:
    ingress = [(entered_ns(number), frame(number)) for number in range(PACKETS)]
    egress = [
        (0 if number % 2 else entered_ns(number) + latency_ns(number), frame(number))
        for number in range(PACKETS)
    ]
    paths = (
        write(tmp_path / "in.pcap", ingress),
        write(tmp_path / "out.pcap", egress, in_order=False),
    )
    summary = tailtrim.analyze(*paths, skip_s=0).summary
    # The last one was in flight when the egress capture ended, as far as stamps tell.
    assert (summary.ingress.unstamped, summary.ingress.cut) == (PACKETS // 2 - 1, 1)
    assert summary.rate_pps == pytest.approx(1e9 / 70_000)


def test_identical_frames_are_matched_in_order(tmp_path: Path) -> None:
    entered = [(entered_ns(number), frame(0)) for number in range(PACKETS)]
    left = [(stamp_ns + 200_000, content) for stamp_ns, content in entered]
    paths = str(write(tmp_path / "in.pcap", entered)), str(write(tmp_path / "out.pcap", left))
    code, told = analyze(*paths)
    assert (code, "no bytes can identify them; --in-order" in told) == (ExitCode.NEGATIVE, True)
    code, told = analyze(*paths, "--in-order")
    assert (code, "800 = 800 matched" in told) == (ExitCode.SUCCESS, True)
    assert tailtrim.analyze(*paths, in_order=True, skip_s=0).summary.signature.in_order
    code, told = analyze(*paths, "--in-order", "--engine", "duckdb")
    assert code == ExitCode.INVALID
    assert "--in-order is for the native matcher, engine duckdb has none" in told
