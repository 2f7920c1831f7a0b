"""Clocks of the taps that were set or run apart: what ``analyze`` says of them, and --clock-fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from random_captures import SECOND_NS, START_NS, write
from typer.testing import CliRunner

import tailtrim
from tailtrim.cli.application import app
from tailtrim.errors import CaptureError, ExitCode
from tailtrim.results import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKETS = 1_000
GAP_NS = 10_000_000
Captures = tuple["Path", "Path"]


def latency_ns(number: int) -> int:
    """Return 5 to 6 µs, and 205 µs of every 500th packet."""
    return 5_000 + number * 7919 % 1000 + (200_000 if number % 500 == 0 else 0)


def captures(
    folder: Path,
    left: Callable[[int], int],
    entered: Callable[[int], int] = lambda _: 0,
) -> Captures:
    """Write captures of clocks that are wrong by so much, by the time since the first packet."""
    times = [(number, number * GAP_NS) for number in range(PACKETS)]
    ingress = [(START_NS + at + entered(at), number) for number, at in times]
    egress = [(START_NS + at + latency_ns(number) + left(at), number) for number, at in times]
    return write(folder / "in.pcap", ingress), write(folder / "out.pcap", egress)


def drift(at_ns: int) -> int:
    return at_ns * 20 // 1_000_000


def step(by_ns: int) -> Callable[[int], int]:
    return lambda at_ns: by_ns if at_ns >= PACKETS // 2 * GAP_NS else 0


def analyze(pair: Captures, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["analyze", *map(str, pair), "--skip", "0", *options])
    return done.exit_code, " ".join((done.stdout + done.stderr).split())


def test_a_step_beyond_the_window_is_named_and_no_loss(tmp_path: Path) -> None:
    code, told = analyze(captures(tmp_path, step(37 * SECOND_NS)))
    assert code == ExitCode.NEGATIVE
    assert "Not the latency of the device: the egress clock is set forward by 37.0 s" in told
    assert "UTC) at 2023-11-14 22:13:25.000 UTC, 5.000 s after the first packet" in told
    assert "(its packet 501): 500 packets are not lost but 37.0 s apart" in told
    assert "--clock-fit" in told


def test_a_step_that_was_corrected_is_not_told_again(tmp_path: Path) -> None:
    """Regression: packets in no pair had their stamps compared as captured."""
    at_ns = [number * GAP_NS for number in range(PACKETS)]
    forward_ns = step(37 * SECOND_NS)
    ingress = [(START_NS + at, number) for number, at in enumerate(at_ns)]
    # 20 packets are lost, and 20 others come.
    egress = [
        (START_NS + at + 5_000 + forward_ns(at), number + PACKETS * (number % 50 == 25))
        for number, at in enumerate(at_ns)
    ]
    pair = write(tmp_path / "in.pcap", ingress), write(tmp_path / "out.pcap", egress)
    _, told = analyze(pair, "--clock-fit")
    assert "980" in told
    assert "not lost but" not in told
    assert "is set forward" not in told


def test_the_last_packets_of_a_run_may_be_late(tmp_path: Path) -> None:
    """Regression: a late packet at the end was taken for one of a clock that was set."""
    last_ns = (PACKETS - 1) * GAP_NS
    pair = captures(tmp_path, lambda at: 600_000_000 if at == last_ns else 0)
    analyze(pair, "--clock-fit", "--out", str(tmp_path / "run"))
    largest_ns = RunDirectory(tmp_path / "run").summary.latency_ns.max
    assert largest_ns is not None
    assert largest_ns > 600_000_000


def test_a_drift_is_named_with_what_it_does_to_percentiles(tmp_path: Path) -> None:
    code, told = analyze(captures(tmp_path, drift))
    assert code == ExitCode.NEGATIVE
    assert "Not the latency of the device" in told
    assert "run apart by 20.0 ppm, and each percentile is wrong by up to 199" in told


def test_captures_of_two_time_zones_are_named(tmp_path: Path) -> None:
    code, told = analyze(captures(tmp_path, lambda _: -3_600 * SECOND_NS))
    assert code == ExitCode.NEGATIVE
    assert "No packet was matched: the egress clock is 3,600 s behind the ingress clock" in told
    assert "(another time zone): 1,000 packets are not lost" in told
    assert "do not overlap" not in told


def test_stamps_that_were_converted_have_the_error_of_their_clocks(tmp_path: Path) -> None:
    pair = captures(tmp_path, lambda _: 0)
    # As the agent's capture writes it.
    told = {
        "schema": "tailtrim.clocks/1",
        "clock": "ptp1",
        "reference": "ptp0",
        "clock_error_ns": 370,
        "invalid": [],
    }
    beside = pair[1].with_name(f"{pair[1].name}.clocks.json")
    beside.write_text(json.dumps(told), encoding="utf-8")
    code, text = analyze(pair, "--out", str(tmp_path / "run"))
    assert code == ExitCode.SUCCESS, text
    assert "each latency is within 370 ns of the true one" in text
    assert RunDirectory(tmp_path / "run").summary.clock_error_ns == 370

    invalid = ["the clock ptp1 jumped"]
    beside.write_text(
        json.dumps(told | {"clock_error_ns": None, "invalid": invalid}), encoding="utf-8"
    )
    code, text = analyze(pair)
    assert code == ExitCode.NEGATIVE
    assert "how far each latency is off is not known: the clock ptp1 jumped" in text
    beside.write_text("{", encoding="utf-8")
    code, text = analyze(pair)
    assert code == ExitCode.INVALID
    assert "out.pcap.clocks.json: cannot be opened" in text


@pytest.mark.parametrize(
    ("left", "entered"),
    [
        (step(37 * SECOND_NS), None),
        (step(-37 * SECOND_NS), None),
        (step(400_000_000), None),
        (drift, None),
        (lambda at: drift(at) + step(37 * SECOND_NS)(at), None),
        (step(-10 * SECOND_NS), step(-10 * SECOND_NS)),
    ],
)
def test_corrected_clocks_give_the_true_percentiles(
    left: Callable[[int], int], entered: Callable[[int], int] | None, tmp_path: Path
) -> None:
    pair = captures(tmp_path, left, entered or (lambda _: 0))
    code, told = analyze(pair, "--clock-fit", "--out", str(tmp_path / "run"))
    assert code == ExitCode.SUCCESS, told
    assert "clock is corrected from packet" in told
    summary = RunDirectory(tmp_path / "run").summary
    assert summary.samples == PACKETS
    assert summary.clock_fit is not None
    truth = sorted(map(latency_ns, range(PACKETS)))
    for quantile in summary.latency_ns.quantiles[:3]:
        rank = -(-PACKETS * round(float(quantile.p) * 1000) // 1000)
        assert quantile.value is not None
        assert abs(quantile.value - truth[rank - 1]) <= summary.clock_fit.bound_ns + 1


def test_a_clock_that_was_set_back_is_one_error_that_says_what_helps(tmp_path: Path) -> None:
    pair = captures(tmp_path, step(-10 * SECOND_NS), step(-10 * SECOND_NS))
    with pytest.raises(
        CaptureError, match=r"packet 501: its stamp is .* before an earlier"
    ) as told:
        tailtrim.analyze(*pair, skip_s=0)
    assert "clock_fit=True" in "".join(told.value.__notes__)


def test_right_clocks_are_not_corrected(tmp_path: Path) -> None:
    pair = captures(tmp_path, lambda _: 0)
    plain = tailtrim.analyze(*pair, skip_s=0)
    assert tailtrim.analyze(*pair, skip_s=0, clock_fit=True).summary.text == plain.summary.text
    assert not plain.summary.invalid


def test_clocks_of_a_pipe_cannot_be_corrected(tmp_path: Path) -> None:
    ingress, _ = captures(tmp_path, drift)
    with pytest.raises(ValueError, match="is read twice, expected a file"):
        tailtrim.analyze(ingress, "-", clock_fit=True)


@pytest.mark.parametrize("left", [drift, step(400_000_000), step(-400_000_000)])
def test_an_engine_says_the_same_of_the_clocks(left: Callable[[int], int], tmp_path: Path) -> None:
    pytest.importorskip("ibis", reason="engines need ibis-framework")
    pair = captures(tmp_path, left)
    native = tailtrim.analyze(*pair, skip_s=0, allow_negative=True)
    code, _ = analyze(
        pair, "--engine", "duckdb", "--allow-negative", "--out", str(tmp_path / "run")
    )
    assert code == ExitCode.NEGATIVE
    summary = RunDirectory(tmp_path / "run").summary
    assert summary.invalid
    assert summary.warnings == native.summary.warnings
