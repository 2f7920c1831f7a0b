"""Real devices that rewrite frames: each frame that went in is found again at the egress."""

from __future__ import annotations

from pathlib import Path

import pytest

import tailtrim

DATA = Path(__file__).parent


@pytest.mark.parametrize("device", ["router", "mac-rewrite"])
def test_rewritten_frames_match(device: str) -> None:
    summary = tailtrim.analyze(
        DATA / device / "ingress.pcap.zst", DATA / device / "egress.pcap.zst", skip_s=0
    ).summary
    assert summary.ingress.packets == 400
    assert summary.samples == 400
    assert summary.egress.unmatched == 0
    assert summary.latency_ns.min is not None
    assert summary.latency_ns.min > 0


def test_the_example_adds_up(testpmd: tuple[Path, Path]) -> None:
    summary = tailtrim.analyze(*testpmd, skip_s=1).summary
    ingress, egress = summary.ingress, summary.egress
    assert ingress.packets == egress.packets == 40_000
    assert ingress.matched + ingress.trimmed == 40_000
    assert summary.samples == 30_717
    by_percent = {quantile.p: quantile.value for quantile in summary.latency_ns.quantiles}
    # Counted independently when the captures were recorded.
    assert by_percent["0.5"] == 5_578
    assert by_percent["0.99"] == 24_497
    assert by_percent["0.999"] == 85_978
    assert summary.latency_ns.max == 338_231
