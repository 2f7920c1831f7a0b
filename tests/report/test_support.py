"""One rule of support: every output calls the same percentiles supported."""

from __future__ import annotations

import html
import math
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tailtrim import units
from tailtrim.analysis.compare import compare
from tailtrim.analysis.slo import Decision, objectives, verdicts
from tailtrim.publishing.export import papers
from tailtrim.publishing.report import wording, write
from tailtrim.publishing.report.figures import percentiles
from tailtrim.publishing.report.inputs.run_tables import ReportedRun
from tailtrim.publishing.report.terminal.run_text import render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import tailtrim


def stalled() -> list[int]:
    """Return 30,000 latencies: a body in which nothing depends, and four long stalls."""
    latencies = [5_000 + (7_919 * n * n) % 1_009 for n in range(30_000)]
    for start in (3_000, 11_000, 17_000, 26_000):
        for n in range(20):
            latencies[start + n] += 400_000 - 20_000 * n
    return latencies


@pytest.fixture
def run(make_run: Callable[..., tailtrim.RunDirectory]) -> tailtrim.RunDirectory:
    return make_run(stalled())


def test_every_output_has_the_same_rule(run: tailtrim.RunDirectory, tmp_path: Path) -> None:
    quantiles = run.summary.latency_ns.quantiles
    supported = [quantile.p for quantile in quantiles if quantile.supported]
    refused = [quantile.p for quantile in quantiles if not quantile.supported]
    # Four stalls may bound p99.9 from above, but they are four. At the median they do not matter.
    assert "0.5" in supported
    assert "0.999" in refused
    headline = f"{units.percent(supported[-1])} % of packets within"
    assert wording.verdict(run.summary).startswith(headline)
    console = Console(width=200, record=True)
    console.print(render([run.summary], ["run"]))
    text = console.export_text()
    assert headline in text
    for p in refused:
        assert f"{units.percent(p)} %" in text.split("ingress")[1]
    assert "10 are needed: measure" in text
    write([run], tmp_path / "page")
    page = html.unescape((tmp_path / "page" / "report.html").read_text("utf-8"))
    assert headline in " ".join(page.split())
    limits = ", ".join(f"p{units.percent(quantile.p)} < 1s" for quantile in quantiles)
    decided = [
        verdict.decision is not Decision.UNDECIDED
        for verdict in verdicts(run.summary, objectives(limits))
    ]
    assert decided == [quantile.supported for quantile in quantiles]
    (found,) = compare(run.path, run.path)
    assert [row.p for row in found.quantiles if not row.supported] == refused
    written = papers.write(run, tmp_path / "papers", bucket_ns=10_000)
    (weak,) = [notice for notice in written.notices if notice.code == "unsupported"]
    assert weak.count == len(set(refused) & {p for *_, p in papers.PERCENTILES})
    figure = percentiles.percentiles([ReportedRun(0, "run", run)])
    assert figure is not None
    solid = figure.panels[0].lines[0]
    assert solid.x[-1] == pytest.approx(1 / (1 - float(supported[-1])))


def test_what_supports_nothing_says_why_in_its_headline_and_in_one_line(
    make_run: Callable[..., tailtrim.RunDirectory],
) -> None:
    body = [(7_919 * n * n) % 1_009 for n in range(30_000)]
    run = make_run([5_000 + ns + 2_000 * (n // 7_500 % 2) for n, ns in enumerate(body)])
    quantiles = run.summary.latency_ns.quantiles
    assert not any(quantile.supported for quantile in quantiles)
    why = "no independent episode, 10 are needed: measure more than 10 times as long"
    headline = f"30,000 samples support no percentile (p50: {why}). The largest latency was"
    assert wording.verdict(run.summary).startswith(headline)
    told = wording.unsupported(run.summary)
    listed = [p for percents, _ in told for p in percents.split(", ")]
    assert sorted(listed) == sorted(units.percent(quantile.p) for quantile in quantiles)
    assert told[0] == ("50, 90, 99, 99.9", f"not supported by 30,000 samples: {why}")


@pytest.mark.published
@pytest.mark.parametrize(
    "name",
    [
        "dpdk-l2fwd/hw",
        "dpdk-l2fwd/vm",
        "snort-fwd/hw",
        "motivation",
        "burst-4batch/vm",
        "burst-32batch/vm",
    ],
)
def test_bounds_of_published_captures_never_step_back(
    published: Callable[[str], tailtrim.RunDirectory], name: str
) -> None:
    run = published(name)
    table = run.table("quantile")
    curve = zip(*(table[end].to_pylist() for end in ("low_ns", "high_ns")), strict=True)
    listed = ((q.low, q.high) for q in run.summary.latency_ns.quantiles)
    for bounds in (curve, listed):
        known = [
            (-math.inf if low is None else low, math.inf if high is None else high)
            for low, high in bounds
        ]
        for nearer, farther in pairwise(known):
            assert nearer[0] <= farther[0]
            assert nearer[1] <= farther[1]
