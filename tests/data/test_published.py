"""The published captures give the integers of an independent calculation and the printed tables."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

import tailtrim
from tailtrim.publishing.report.terminal.run_text import render

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.published

PAIRS = (
    "burst-32batch/vm/04-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
    "burst-32batch/vm/32-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
    "burst-4batch/vm/04-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
    "burst-4batch/vm/32-burst-latencies-pre-rate10000-snort-filter.pcap.zst",
    "dpdk-l2fwd/hw/latencies-pre-rate10000-dpdk-l2fwd.pcap.zst",
    "dpdk-l2fwd/vm/latencies-pre-rate10000-dpdk-l2fwd.pcap.zst",
    "motivation/latencies-pre-rate10000-snort-norules.pcap.zst",
    "snort-fwd/hw/latencies-pre-rate10000-snort-fwd.pcap.zst",
)


@cache
def analyze(published: Path, pair: str, skip_s: int) -> tailtrim.Analysis:
    ingress = published / "low-latency" / pair
    egress = ingress.with_name(ingress.name.replace("-pre-", "-post-"))
    return tailtrim.analyze(ingress, egress, skip_s=skip_s)


def test_every_pair_that_is_expected_is_tested(published: Path) -> None:
    assert set(json.loads((published / "expected.json").read_text())) == set(PAIRS)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("skip_s", "samples", "latency"),
    [
        (0, "matched", "latency_ns_untrimmed"),
        (1, "samples_after_trim_1s", "latency_ns_trim_1s"),
    ],
)
def test_integers(published: Path, pair: str, skip_s: int, samples: str, latency: str) -> None:
    expected: dict[str, Any] = json.loads((published / "expected.json").read_text())[pair]
    summary = analyze(published, pair, skip_s).summary
    assert summary.ingress.packets == expected["ingress"]
    assert summary.egress.packets == expected["egress"]
    assert summary.ingress.lost == expected["lost"]
    assert summary.samples == expected[samples]
    found = {"min": summary.latency_ns.min, "max": summary.latency_ns.max}
    percent = {"0.5": "p50", "0.9": "p90", "0.99": "p99", "0.999": "p99.9", "0.9999": "p99.99"}
    percent |= {"0.99999": "p99.999", "0.999999": "p99.9999"}
    found |= {percent[quantile.p]: quantile.value for quantile in summary.latency_ns.quantiles}
    assert found == expected[latency]


@pytest.mark.parametrize(
    ("pair", "row"),
    [
        # Table I and the rows of Table II of "5G QoS: Impact of Security Functions on Latency" for
        # 10 kpkt/s, with what the table leaves out (p90) between.
        (PAIRS[6], "68.9 74.2 88.1 107 1,673 2,518* 2,655"),
        (PAIRS[4], "3.14 3.17 3.36 7.71 12.2* 13.4* 13.6"),
        (PAIRS[5], "3.34 3.56 3.98 14.7 17.6* 19.0* 19.2"),
        (PAIRS[7], "14.54 17.18 24.65 29.67 32.36 33.09* 33.14"),
    ],
)
def test_printed_rows(published: Path, pair: str, row: str) -> None:
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(render([analyze(published, pair, 1).summary], ["paper"]))
    (line,) = [line for line in capture.get().splitlines() if line.strip().startswith("10.0")]
    assert line.split()[1] == "0"
    assert " ".join(line.split()[2:]).replace("*", "") == row.replace("*", "")


def test_the_worst_packets_form_the_clusters_that_were_seen(published: Path) -> None:
    # 300 packets above p99.9 in 54 runs without the trim: orchestration of the papers, recounted.
    summary = analyze(published, PAIRS[6], 0).summary
    quantile = next(q for q in summary.latency_ns.quantiles if q.p == "0.999")
    assert quantile.clusters is not None
    assert 40 <= quantile.clusters <= 60
