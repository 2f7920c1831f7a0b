"""Both sides from one capture, formats, and stamps that are none: what a user meets first."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import both_sides
import pytest
from random_captures import START_NS, write
from typer.testing import CliRunner

import tailtrim
from tailtrim.cli.application import app

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 400


def analyze(*words: str | Path) -> tuple[int, str, str]:
    """Return exit code, output and errors of ``tailtrim analyze``; hints are among the errors."""
    result = CliRunner().invoke(app, ["analyze", *map(str, words)])
    error = result.exception
    notes = [] if error is None else [str(error), *getattr(error, "__notes__", ())]
    return result.exit_code, result.stdout, "\n".join([result.stderr, *notes])


@pytest.mark.parametrize(
    ("build", "ingress", "egress"),
    [
        (both_sides.pcapng, "eth1", "eth2"),
        (both_sides.pcapng, "0", "1"),
        (both_sides.any_device, "2", "3"),
        (both_sides.any_device, "2:in", "3:out"),
        (both_sides.erf, "0", "1"),
    ],
)
def test_both_sides_of_one_capture(
    tmp_path: Path, build: object, ingress: str, egress: str
) -> None:
    assert callable(build)
    capture = build(tmp_path / "both", COUNT)
    code, out, told = analyze(capture, "--ingress", ingress, "--egress", egress, "--json")
    assert code == 0, told
    summary = json.loads(out)
    assert summary["samples"] == summary["ingress"]["packets"] == COUNT
    latency = summary["latency_ns"]
    assert (latency["min"], latency["max"]) == (both_sides.LATENCY_NS, both_sides.LATENCY_NS)


def test_a_capture_of_both_sides_lists_its_interfaces(tmp_path: Path) -> None:
    capture = both_sides.pcapng(tmp_path / "both.pcapng", COUNT)
    with pytest.raises(tailtrim.CaptureError) as raised:
        tailtrim.analyze(capture)
    for fact in ("one capture", "eth1 (interface 0 (eth1), 400 packets)", "eth2 (interface 1"):
        assert fact in str(raised.value)
    (note,) = raised.value.__notes__
    assert "ingress_interface and egress_interface, such as eth1 and eth2" in note
    with pytest.raises(tailtrim.CaptureError, match="no packets of interface eth7; it has eth1"):
        tailtrim.analyze(capture, ingress_interface="eth1", egress_interface="eth7")
    plain = write(tmp_path / "plain.pcap", [(START_NS, 1)])
    for chosen in (None, "eth1"):
        with pytest.raises(tailtrim.CaptureError, match="does not say of which interface"):
            tailtrim.analyze(plain, ingress_interface=chosen, egress_interface=chosen)


def test_interfaces_within_two_captures(tmp_path: Path) -> None:
    captures = [both_sides.pcapng(tmp_path / name, COUNT) for name in ("in", "out")]
    summary = tailtrim.analyze(
        *captures, ingress_interface="eth1", egress_interface="eth2", jobs=1
    ).summary
    assert summary.samples == COUNT
    again = tailtrim.analyze(*captures, ingress_interface="eth1", egress_interface="eth2", jobs=4)
    assert again.summary.text == summary.text


def test_standard_input_is_not_read_twice() -> None:
    code, _, told = analyze("-", "--ingress", "eth1", "--egress", "eth2")
    assert code != 0
    assert "standard input cannot be read twice" in told
    code, _, told = analyze("a", "--ingress", "1", "--egress", "2", "--engine", "duckdb")
    assert code != 0
    assert "for the native matcher" in told


def test_interfaces_that_are_not_read_are_a_warning(tmp_path: Path) -> None:
    capture = both_sides.pcapng(tmp_path / "both.pcapng", COUNT)
    for jobs in (1, 4):
        summary = tailtrim.analyze(capture, capture, allow_negative=True, jobs=jobs).summary
        (unread,) = summary.ingress_tap.unread
        assert (unread.interface, unread.packets) == (2, 1)
        texts = [warning.text for warning in summary.warnings if warning.code == "unread"]
        expected = "not read at ingress: 1 packet of interface 2 (link type 271, vsock)"
        assert texts[0] == expected


def test_odd_stamps_are_left_out_on_any_number_of_cores(tmp_path: Path) -> None:
    # Shorter captures are matched by one thread.
    entered = [(START_NS + n * 10_000, n) for n in range(450_000)]
    left = [(stamp_ns + 5_000, n) for stamp_ns, n in entered]
    for number in range(0, 400_000, 40_000):
        entered[number + 255] = (2_894_531_997_938_836_488, number + 255)
        left[number + 7] = (0, number + 7)
    captures = (write(tmp_path / "in.pcap", entered), write(tmp_path / "out.pcap", left))
    summary, *others = [tailtrim.analyze(*captures, jobs=jobs).summary for jobs in (1, 2, 4)]
    assert {other.text for other in others} == {summary.text}
    assert (summary.ingress.lost, summary.egress.unmatched) == (0, 0)
    assert (summary.ingress.unstamped, summary.egress.unstamped) == (20, 20)
    assert summary.samples == 450_000 - 20
    odd = (summary.ingress_tap.odd_stamp, summary.egress_tap.odd_stamp)
    assert [one.packet for one in odd if one] == [256, 8]
    assert summary.latency_ns.max == 5_000


def test_nanoseconds_under_another_magic_number(tmp_path: Path) -> None:
    packets = [(START_NS + 7_654_321 + n * 100_000, n) for n in range(COUNT)]
    sides = []
    for name, shift_ns in (("in", 0), ("out", 5_000)):
        path = write(tmp_path / f"{name}.pcap", [(at + shift_ns, n) for at, n in packets])
        content = bytearray(path.read_bytes())
        content[:4] = struct.pack("<I", 0xA1B2C3D4)
        path.write_bytes(content)
        sides.append(path)
    with pytest.raises(tailtrim.CaptureError, match="7654321 microseconds in a stamp") as raised:
        tailtrim.analyze(*sides)
    assert "nanoseconds=True" in raised.value.__notes__[0]
    code, out, told = analyze(*sides, "--stamps", "nanoseconds", "--json")
    assert code == 0, told
    assert json.loads(out)["latency_ns"]["max"] == 5_000


def test_a_short_capture_is_not_trimmed(tmp_path: Path) -> None:
    packets = [(START_NS + n * 300_000, n) for n in range(1_000)]
    left = [(stamp_ns + 5_000, n) for stamp_ns, n in packets]
    captures = (write(tmp_path / "in.pcap", packets), write(tmp_path / "out.pcap", left))
    code, out, _ = analyze(*captures)
    assert code == 0
    assert "Without the first" not in out
    assert "1,000 = 1,000 matched" in out
    code, out, _ = analyze(*captures, "--skip", "100ms")
    assert code == 0
    assert "Without the first 0.1 s (334 packets): " in " ".join(out.split())
