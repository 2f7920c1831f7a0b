"""Promises by name: bad packets, their clusters, and the verdict over all runs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tailtrim
from tailtrim.analysis.slo import PROMISES, Decision, JudgedRun, objectives, promised
from tailtrim.cli.application import app
from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim import Summary
    from tailtrim.analysis.slo import Verdict

_GAP_NS = 100_000
_GOOD_NS, _LATE_NS = 20_000, 2_000_000


@dataclass
class _Run:
    """A run of 10,000 packets a second; some are late or lost."""

    summary: Summary
    tables: dict[str, pa.Table]

    def table(self, name: str) -> pa.Table:
        if name not in self.tables:
            raise RunDirectoryError(f"{name}.parquet: the table cannot be read")
        return self.tables[name]


@pytest.fixture(scope="module")
def summary(testpmd: tuple[Path, Path]) -> Summary:
    return tailtrim.analyze(*testpmd, skip_s=1).summary


def _run(
    summary: Summary,
    packets: int,
    *,
    late: Sequence[int] = (),
    lost: Sequence[int] = (),
    late_ns: int = _LATE_NS,
) -> _Run:
    sent_ns = np.arange(packets, dtype=np.int64) * _GAP_NS
    latency_ns = np.full(packets, _GOOD_NS, dtype=np.int64)
    latency_ns[list(late)] = late_ns
    lost_in = np.bincount(sent_ns[list(lost)] // 10**9, minlength=1) if lost else np.zeros(1)
    arrived = np.delete(np.arange(packets), list(lost))
    ingress = replace(
        summary.ingress,
        packets=packets,
        unstamped=0,
        matched=packets - len(lost),
        lost=len(lost),
        beyond_window=0,
    )
    tap = replace(summary.ingress_tap, first_ns=0, last_ns=int(sent_ns[-1]))
    tables = {
        "sample": pa.table({"ingress_ns": sent_ns[arrived], "latency_ns": latency_ns[arrived]}),
        "second": pa.table({"second": np.arange(lost_in.size), "lost": lost_in.astype(np.int64)}),
    }
    whole = replace(summary, ingress=ingress, ingress_tap=tap, samples=arrived.size)
    return _Run(whole, tables)


def _verdict(name: str, *runs: _Run, invalid: Sequence[int] = ()) -> Verdict:
    measured = [
        JudgedRun(f"run-{at}", run, "forwarder", at in invalid) for at, run in enumerate(runs)
    ]
    ((group, (verdict,)),) = promised(measured, objectives(name))
    assert group == "forwarder"
    return verdict


def test_a_promise_has_numbers_and_a_source() -> None:
    for name, promise in PROMISES.items():
        (objective,) = objectives(name)
        assert objective.promise is promise
        assert float(objective.limit) == promise.deadline_ns
        assert (
            "clause" in promise.source or "section" in promise.source or "annex" in promise.source
        )
    with pytest.raises(ValueError, match="urllc-2ms") as raised:
        objectives("urllc-2ms")
    assert all(name in str(raised.value) for name in PROMISES)


def test_packets_of_all_runs_decide_together(summary: Summary) -> None:
    # Without a bad packet, ln 0.05 / ln (1 - 10^-5) = 299,572 independent ones prove 10^-5.
    run = _run(summary, 150_000)
    one, two = _verdict("urllc-1ms", run), _verdict("urllc-1ms", run, run)
    assert (one.decision, one.word) == (Decision.UNDECIDED, "not decided")
    assert "0 of 150,000 packets" in one.why
    assert re.search(r"\b149,[5-9]\d\d more .*\b15\.0 s\b", one.why), one.why
    assert (two.decision, two.word) == (Decision.PASSED, "met")
    assert PROMISES["urllc-1ms"].source in two.why
    left = _verdict("urllc-1ms", run, run, invalid=[1])
    assert left.decision is Decision.UNDECIDED
    assert "1 invalid" in left.why


def test_duplicates_may_be_good_or_bad(summary: Summary) -> None:
    run = _run(summary, 400_000)
    assert _verdict("urllc-1ms", run).decision is Decision.PASSED
    some = _run(replace(summary, ingress=replace(summary.ingress, duplicate=100)), 400_000)
    verdict = _verdict("urllc-1ms", some)
    assert verdict.decision is Decision.UNDECIDED
    assert "100 duplicates are in no latency" in verdict.why
    # Even if all duplicates were good, too many are late.
    late = replace(summary, ingress=replace(summary.ingress, duplicate=2))
    run = _run(late, 400_000, late=range(0, 400_000, 1_000))
    assert _verdict("urllc-1ms", run).decision is Decision.FAILED


def test_late_packets_that_come_together_decide_less(summary: Summary) -> None:
    scattered = _run(summary, 400_000, late=range(0, 400_000, 10_000))
    together = _run(summary, 400_000, late=range(200_000, 200_040))
    assert _verdict("urllc-1ms", scattered).word == "not met"
    clustered = _verdict("urllc-1ms", together)
    assert clustered.word == "not decided"
    assert re.search(r"\b40 successive .*\b4 ms\b", clustered.why), clustered.why
    # Within 5 ms, none is late.
    assert _verdict("ts22104-augmented-reality", scattered).word == "met"


def test_few_clusters_may_be_short_by_chance(summary: Summary) -> None:
    # One bad packet of 10,000 is 4.7 times less than the limit of a thousandth, with 95 %
    # confidence, if the next ones come alone, too: it does not tell that.
    name = "ts22104-augmented-reality"
    late = 20 * _LATE_NS
    assert _verdict(name, _run(summary, 10_000, late=[5_000], late_ns=late)).word == "not decided"
    assert _verdict(name, _run(summary, 30_000, late=[5_000], late_ns=late)).word == "met"
    # Of many that come alone, it is known.
    alone = range(0, 200_000, 2_000)
    assert _verdict(name, _run(summary, 200_000, late=alone, late_ns=late)).word == "met"


def test_good_packets_between_bad_ones_do_not_part_a_cluster(summary: Summary) -> None:
    # Nine bad packets alone exceed a hundred thousandth of 400,000; those of one episode do not.
    scattered = _run(summary, 400_000, late=range(0, 360_000, 40_000))
    together = _run(summary, 400_000, late=range(200_000, 200_018, 2))
    assert _verdict("urllc-1ms", scattered).word == "not met"
    assert _verdict("urllc-1ms", together).word == "not decided"


def test_without_a_bad_packet_the_clusters_that_it_holds_for_are_told(summary: Summary) -> None:
    # Two on average are met with 1 - exp(-8 / 2) = 98 % if eight bad packets are allowed.
    run = _run(summary, 400_000)
    assert "one by one" in _verdict("urllc-1ms", run).why
    assert "more than 2 bad packets" in _verdict("urllc-1ms", run, run).why


def test_lost_packets_are_put_where_packets_are_missing(summary: Summary) -> None:
    lossy = _run(summary, 400_000, lost=[5, 7_000, *range(123_456, 123_476)])
    why = _verdict("urllc-1ms", lossy).why
    assert re.search(r"\b22 of 400,000 .*\(22\).*\b1 ms \(0\)", why), why
    assert re.search(r"\b20 successive .*\b2 ms\b", why), why


def test_what_a_survival_time_bridges_does_not_count(summary: Summary) -> None:
    # 16 ms are 160 packets: of an outage of 30 ms, 140 packets come after them.
    name = "ts22104-emergency-stop"
    short = _verdict(name, _run(summary, 200_000, lost=range(50_000, 50_100)))
    assert re.search(r"\b100 of 200,000 .*\b0 beyond .*\b16 ms\b.*\b100 %", short.why), short.why
    long = _verdict(name, _run(summary, 200_000, lost=range(50_000, 50_300)))
    assert re.search(r"\b140 beyond .*\b16 ms\b.*\b99\.93 %", long.why), long.why


def test_runs_that_differ_decide_less_than_their_packets(summary: Summary) -> None:
    good = _run(summary, 400_000)
    bad = _run(summary, 400_000, late=range(0, 400_000, 10_000))
    assert _verdict("urllc-1ms", bad, bad).word == "not met"
    assert _verdict("urllc-1ms", good, good, bad).word == "not decided"


def test_without_the_order_of_packets_nothing_is_decided(summary: Summary) -> None:
    run = _run(summary, 400_000)
    del run.tables["sample"]
    verdict = _verdict("urllc-1ms", run)
    assert verdict.decision is Decision.UNDECIDED
    assert "sent" in verdict.why


def test_promises_on_the_command_line(testpmd: tuple[Path, Path], tmp_path: Path) -> None:
    captures = [str(path) for path in testpmd]
    place = tmp_path / "slo.xml"
    asked = ["analyze", *captures, "--assert", "urllc-1ms, p50 < 1s", "--junit", str(place)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 5
    assert "not decided: urllc-1ms" in result.stderr
    assert "more packets" in result.stderr
    assert "not decided: p50 < 1s" in result.stderr
    assert 'name="urllc-1ms"' in place.read_text(encoding="utf-8")
    listed = CliRunner().invoke(app, ["analyze", *captures, "--assert", "list"])
    assert listed.exit_code == 0
    assert len(listed.stdout.splitlines()) == len(PROMISES)
    assert "ts22104-emergency-stop" in listed.stdout
