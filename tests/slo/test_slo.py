"""Objectives: their syntax, and their verdicts by an interval."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

import tailtrim
from tailtrim.analysis.slo import Decision, JudgedRun, junit, objectives, of_run, verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim import Summary
    from tailtrim.results.summary import Quantile


@pytest.mark.parametrize(
    ("text", "what", "p", "limit"),
    [
        ("p99.9 < 50us", "quantile", "0.999", 50_000),
        ("99.99% <= 1.5 ms", "quantile", "0.9999", 1_500_000),
        ("0.5<3µs", "quantile", "0.5", 3_000),
        ("median < 7ns", "quantile", "0.5", 7),
        # As --quantile reads it: a half of a percent, not the median.
        ("p0.5 < 7ns", "quantile", "0.005", 7),
        ("mean < 1s", "mean", None, 10**9),
        ("max < 2ms", "max", None, 2 * 10**6),
        ("loss < 1e-4", "loss", None, 1e-4),
        ("loss < 0.01%", "loss", None, 1e-4),
    ],
)
def test_an_objective_is_read(text: str, what: str, p: str | None, limit: float) -> None:
    (objective,) = objectives(text)
    assert (objective.what, objective.p, str(objective)) == (what, p, text)
    assert float(objective.limit) == limit


@pytest.mark.parametrize(
    "text",
    [
        *("", "p99.9", "p99.9 > 5us", "p99.9 < 5", "p100 < 5us", "p0 < 5us", "p9.9.9 < 5us"),
        *("x < 5us", "loss < 2", "loss < 5us", "adjusted max < 1s", "p99 < 5us,", "p99 < 1/0s"),
        *("loss < 1/0", "p99 < 1e400s", "p99 < -3us", "p99 < 0us", "p1 < 300y"),
    ],
)
def test_what_is_not_an_objective_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="'"):
        objectives(text)


@pytest.fixture(scope="module")
def summary(testpmd: tuple[Path, Path]) -> Summary:
    return tailtrim.analyze(*testpmd, skip_s=1).summary


def _decided(summary: Summary, text: str) -> list[Decision]:
    return [verdict.decision for verdict in verdicts(summary, objectives(text))]


def _interval(summary: Summary, p: str) -> tuple[int, int]:
    quantile = _quantile(summary, p)
    assert quantile.low is not None
    assert quantile.high is not None
    return quantile.low, quantile.high


def _quantile(summary: Summary, p: str) -> Quantile:
    return next(q for q in summary.latency_ns.quantiles if q.p == p)


def _as_if_supported(summary: Summary) -> Summary:
    """Return the summary of a run in which more episodes led to the same intervals."""
    latency = summary.latency_ns
    quantiles = tuple(
        replace(quantile, supported=True, high=quantile.high or latency.max)
        for quantile in latency.quantiles
    )
    return replace(summary, latency_ns=replace(latency, quantiles=quantiles))


def test_the_interval_decides(summary: Summary) -> None:
    summary = _as_if_supported(summary)
    low, high = _interval(summary, "0.99")
    text = f"p99 < {high + 1}ns, p99 < {high}ns, p99 < {low + 1}ns, p99 < {low}ns"
    assert _decided(summary, text) == [
        Decision.PASSED,
        Decision.UNDECIDED,
        Decision.UNDECIDED,
        Decision.FAILED,
    ]


def test_what_the_samples_do_not_support_is_not_passed(summary: Summary) -> None:
    assert not _quantile(summary, "0.99999").supported
    assert _decided(summary, "p99.999 < 1s, p99.95 < 1s") == [Decision.UNDECIDED] * 2


def test_mean_maximum_and_loss(summary: Summary) -> None:
    latency = summary.latency_ns
    assert latency.max is not None
    assert latency.mean is not None
    assert latency.mean.high is not None
    text = f"max < {latency.max}ns, max < {latency.max + 1}ns, mean < {latency.mean.high + 1}ns"
    assert _decided(summary, text) == [Decision.FAILED, Decision.PASSED, Decision.PASSED]
    # None of 30,717 was lost: at most 3.84 of them, by Wilson's interval of 95 %.
    assert _decided(summary, "loss < 1.2e-4, loss < 1.3e-4") == [
        Decision.UNDECIDED,
        Decision.PASSED,
    ]


def test_the_maximum_of_packets_beyond_the_window_is_at_least_the_window(summary: Summary) -> None:
    late = replace(summary, ingress=replace(summary.ingress, beyond_window=1))
    window_s = late.window_ns // 10**9
    assert _decided(late, f"max < {window_s}s, max < {window_s + 1}s") == [
        Decision.FAILED,
        Decision.UNDECIDED,
    ]


def test_an_invalid_run_decides_nothing(summary: Summary) -> None:
    class Run:
        def __init__(self) -> None:
            self.summary = summary

        def table(self, name: str) -> Any:
            raise KeyError(name)

    found = of_run(JudgedRun("run", Run(), invalid=True), objectives("max < 1s, loss < 1e-9"))
    assert [(one.decision, one.why) for one in found] == [
        (Decision.UNDECIDED, "the run is invalid")
    ] * 2


def test_a_quantile_among_lost_packets_is_infinite(summary: Summary) -> None:
    adjusted = [
        replace(q, value=None, low=None, high=None, supported=True)
        for q in summary.delivery_adjusted_ns
    ]
    lossy = replace(summary, delivery_adjusted_ns=tuple(adjusted))
    (verdict,) = verdicts(lossy, objectives("adjusted p99 < 1s"))
    assert (verdict.decision, verdict.value) == (Decision.FAILED, math.inf)


def test_a_total_outage_fails_what_counts_lost_packets(
    testpmd: tuple[Path, Path], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.pcap"
    # A file header of pcap, stamps in ns, link type Ethernet.
    empty.write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1))
    outage = tailtrim.analyze(testpmd[0], empty).summary
    assert outage.samples == 0
    asked = "adjusted p99 < 1s, p99 < 1s, loss < 1%"
    assert _decided(outage, asked) == [Decision.FAILED, Decision.UNDECIDED, Decision.FAILED]


def test_the_interval_of_the_loss_contains_it(summary: Summary) -> None:
    (verdict,) = verdicts(summary, objectives("loss < 1%"))
    assert verdict.value == verdict.low == 0


def test_duplicates_may_have_any_latency_or_be_lost(summary: Summary) -> None:
    some = replace(summary, ingress=replace(summary.ingress, duplicate=300))
    # 0 to 300 of 31,017.
    asked = "loss < 0.5%, loss < 2%, max < 10s, max < 1ns, mean < 10s"
    assert _decided(some, asked) == [
        Decision.UNDECIDED,
        Decision.PASSED,
        Decision.UNDECIDED,
        Decision.FAILED,
        Decision.UNDECIDED,
    ]
    loss, _, largest, _, _ = verdicts(some, objectives(asked))
    assert loss.why.startswith("0 to 300 of 31,017 packets")
    assert largest.why == "300 duplicates are in no latency"


def test_junit_counts_what_is_not_decided_as_an_error(summary: Summary) -> None:
    found = verdicts(summary, objectives("max < 10s, max < 1ns, p99.999 < 1s"))
    suite = ET.fromstring(junit({"a\x1bb": found}))[0]  # noqa: S314 - made here
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors")}
    assert counts == {"tests": "3", "failures": "1", "errors": "1"}
    assert [[child.tag for child in case] for case in suite] == [[], ["failure"], ["error"]]
    assert json.dumps(suite.attrib["name"]) == '"a\\ufffdb"'
