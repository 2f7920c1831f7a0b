"""Effects of factors on round trips, from run directories with known effects."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tailtrim.analysis.roundtrip import Series, write_run
from tailtrim.cli.application import app
from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.plan import load
from tailtrim.publishing import factors
from tailtrim.publishing.factors.slope import RulePosition, slopes
from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.plan import Plan

    Integers = np.ndarray[Any, np.dtype[np.int64]]

PLAN = """\
name: known
dut: {preset: reflector, firewall: $firewall, rules: 2001, pinned: $pinned, tuned: $tuned}
traffic: {frame_bytes: 70, schedule: "burst:$burst", rate: 50bursts/s, duration_s: 0.4}
loop: {burst: [1, 10]}
factors:
  firewall: [none, "nftables:1", "nftables:1001", "nftables:2001"]
  pinned: [false, true]
  tuned: [as-is, balanced]
together: {pinned: true, tuned: balanced}
repeat: 3
"""
#: Time of a round trip, and the times that a rule and a wandering reflector add to it.
USUAL_NS, RULE_NS, WANDERING_NS = 50_000, 20, 30_000


def took_ns(run: Any) -> int:
    _, _, rule = run.dut.firewall.partition(":")
    return USUAL_NS + RULE_NS * int(rule or 0) + (0 if run.dut.pinned else WANDERING_NS)


def record(path: Path, plan: Plan, outcomes: list[dict[str, Any]]) -> None:
    told = {
        "schema": "tailtrim.experiment/1",
        "plan": plan.model_dump(mode="json"),
        "outcomes": outcomes,
        "host": {},
        "versions": {},
        "command": [],
    }
    (path / "experiment.json").write_text(json.dumps(told))


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("known")
    (path / "plan.yml").write_text(PLAN)
    plan, runs = load(path / "plan.yml")
    random = np.random.default_rng(1)
    outcomes = []
    for run in runs:
        alone = run.varied == "tuned"
        together = run.varied == "together"
        invalid = ["the client was late: p99 2,000 µs"] if run.number == 1 else []
        outcomes.append(
            {
                "run": run.folder,
                "label": run.label,
                "floor": False,
                "invalid": invalid,
                "failed": None,
                "skipped": "tuned-adm: there is no daemon" if alone else None,
                "left_out": ["tuned-adm: there is no daemon"] if together else [],
            }
        )
        if not alone:
            sent_ns = 1_700_000_000 * 10**9 + np.arange(400) * 1_000_000
            trips_ns = took_ns(run) + random.integers(0, 2_000, sent_ns.size)
            write_run(
                path / run.folder,
                Series("known", sent_ns, np.ones(sent_ns.size, bool), trips_ns, 66),
            )
    record(path, plan, outcomes)
    return path


def test_known_effects_are_found(experiment: Path) -> None:
    effects = factors.effects_of(experiment)
    assert effects.loops == ["burst=1", "burst=10"]
    assert [case.name for case in effects.of("burst=10")] == [
        "baseline", "firewall nftables:1", "firewall nftables:1001", "firewall nftables:2001",
        "pinned true", "tuned balanced", "together",
    ]  # fmt: skip
    cases = {case.name: case for case in effects.of("burst=10")}
    assert cases["baseline"].runs == 3
    for name, verdict, change_ns in (
        ("firewall nftables:2001", "worse", 2_001 * RULE_NS),
        ("pinned true", "better", -WANDERING_NS),
        ("together", "better", -WANDERING_NS),
    ):
        effect = cases[name].median
        assert effect is not None
        found, low, high = effect.change_ns
        assert (effect.verdict, low is None, high is None) == (verdict, False, False)
        assert abs(found - change_ns) < 500
        assert low is not None
        assert high is not None
        assert low - 200 <= change_ns <= high + 200
    nothing = cases["firewall nftables:1"].verdict
    assert nothing.verdict == "not_decided", "three runs against three show no equality"
    assert (nothing.needed or 0) >= 4


def test_panels_share_an_axis_that_clips_nothing(experiment: Path, tmp_path: Path) -> None:
    files = factors.write(factors.effects_of(experiment), recorded(experiment), tmp_path)
    assert {file.suffix for file in files if file.stem == "factors"} == {
        ".md", ".json", ".svg", ".csv",
    }  # fmt: skip
    svg = (tmp_path / "figures" / "factors.svg").read_text("utf-8")
    frames = re.findall(
        r'<clipPath id="(panel-\d)"><rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg
    )
    assert len(frames) == 2
    assert frames[0][1:] == frames[1][1:], "both panels are as wide"
    left, right = float(frames[0][1]), float(frames[0][1]) + float(frames[0][2])
    markers = re.findall(r'<path d="((?:M[\d.]+ [\d.]+h0)+)"|<path d="(M[^"]+z)"', svg)
    places = [float(x) for x in re.findall(r"M(-?[\d.]+) ", "".join(map("".join, markers)))]
    # Six cases of seven were measured, each with three points, in two panels; and the legend.
    assert len([x for x in places if x >= left]) >= 2 * 6 * 3
    bars = re.findall(r'<path d="M([\d.]+) [\d.]+h([\d.]*[1-9])', svg)
    inside = [(float(x), float(x) + float(wide)) for x, wide in bars if float(x) >= left]
    assert len(inside) == 2 * 6
    assert all(end <= right for _, end in inside)
    rows = (tmp_path / "figures" / "factors.csv").read_text("utf-8").splitlines()
    assert rows[0].startswith("loop,case,runs,samples,p25_ns,p50_ns")
    assert any(row.startswith("burst=10,pinned true,3,") for row in rows)


class Page(HTMLParser):
    """The cells of the tables of a page, row by row, and the targets of its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        self._cell = tag in {"td", "th"}
        if self._cell:
            self.rows[-1].append("")
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.rows[-1][-1] += data


def test_an_experiment_with_factors_has_a_page(experiment: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(experiment), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert f"Page:    {tmp_path}/report.html" in result.stdout
    page = Page((tmp_path / "report.html").read_text("utf-8"))
    shown = [row[0] for row in page.rows]
    for name in ("baseline", "firewall nftables:2001", "pinned true", "together"):
        assert shown.count(name) == 2, "once for each value of the loop variable"
    assert {row[9].strip() for row in page.rows if row[0] == "pinned true"} == {"better"}
    assert all("needs" in row[9] for row in page.rows if row[0] == "firewall nftables:1")
    for link in page.links:
        assert (tmp_path / link).exists(), link
    data = re.search(r'id="data">(.*?)</script>', (tmp_path / "report.html").read_text("utf-8"))
    assert data
    assert [one["key"] for one in json.loads(data[1])["figures"]] == ["factors", "rules"]


def test_objectives_hold_for_an_experiment_with_factors(experiment: Path, tmp_path: Path) -> None:
    arguments = ["report", str(experiment), "--out", str(tmp_path), "--assert", "p50 < 70us"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    assert "failed: p50 < 70us" in result.stderr
    assert "passed: p50 < 70us" in result.stderr
    assert (tmp_path / "factors.md").exists()


def test_what_was_not_measured_says_why(experiment: Path) -> None:
    effects = factors.effects_of(experiment)
    skipped = [case for case in effects.cases if case.skipped]
    assert {(case.name, case.skipped) for case in skipped} == {
        ("tuned balanced", "tuned-adm: there is no daemon")
    }
    text = factors.markdown(effects)
    assert "* tuned balanced: skipped: tuned-adm: there is no daemon" in text
    assert "* together: without tuned-adm: there is no daemon" in text
    (late,) = [case for case in effects.cases if any("late" in one for one in case.left_out)]
    assert (late.name, late.runs) == ("firewall nftables:1", 2)
    told = "1 run does not count: firewall nftables:1, burst=1: run-001: the client was late"
    assert told in text


def test_the_slope_is_that_of_the_rules(experiment: Path) -> None:
    found = factors.effects_of(experiment).slopes
    assert [(one.firewall, one.loop, one.runs) for one in found] == [
        ("nftables", "burst=1", 8), ("nftables", "burst=10", 9),
    ]  # fmt: skip
    for one in found:
        assert one.low <= one.ns_per_rule <= one.high
        assert abs(one.ns_per_rule - RULE_NS) < 0.5
        assert one.straight > 0.99


@pytest.mark.simulations
def test_the_interval_of_a_slope_covers_it_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    rules = np.tile(np.arange(1, 10_002, 1_000), 5)
    covered = 0
    for _ in range(100):
        medians = 50_000 + 15 * rules + random.normal(0, 20_000, rules.size)
        points = [
            RulePosition("n", "", int(r), int(m)) for r, m in zip(rules, medians, strict=True)
        ]
        (one,) = slopes(points)
        covered += one.low <= 15 <= one.high
    assert covered >= 88


def test_two_positions_make_no_slope() -> None:
    assert list(slopes([RulePosition("n", "", at, 100) for at in (1, 10_001)])) == []


def test_the_same_experiment_gives_the_same_files(experiment: Path, tmp_path: Path) -> None:
    effects = factors.effects_of(experiment)
    written = [
        factors.write(effects, recorded(experiment), tmp_path / name, pdf=True)
        for name in ("one", "two")
    ]
    for one, two in zip(*written, strict=True):
        assert one.read_bytes() == two.read_bytes(), one.name
    assert {path.name for path in written[0]} == {
        "report.html", "factors.md", "factors.json", "factors.svg", "factors.pdf", "factors.csv",
        "rules.svg", "rules.pdf", "rules.csv",
    }  # fmt: skip
    drawn = (tmp_path / "one" / "figures" / "factors.svg").read_text()
    assert "firewall nftables:2001" in drawn
    assert "skipped" in drawn


def test_an_experiment_without_factors_is_none(tmp_path: Path) -> None:
    assert not factors.has_factors(tmp_path)
    (tmp_path / "experiment.json").write_text('{"plan": {}, "outcomes": []}')
    assert not factors.has_factors(tmp_path)
    with pytest.raises(RunDirectoryError):
        factors.effects_of(tmp_path / "nowhere")


def batch_of(run: Any) -> int:
    return int(run.dut.batch)


def forwarded(path: Path, repeat: int, took_ns: Callable[[Any], Integers]) -> factors.Effects:
    """Return the effects of runs of a forwarder, each with so many latencies of its own."""
    (path / "plan.yml").write_text(
        "name: passed\ndut: {preset: forward, batch: $batch}\nfactors: {batch: [1, 32]}\n"
        "traffic: {frame_bytes: 70, rate_pps: 1000, duration_s: 0.4}\n"
        f"floor: false\nskip_s: 0\nrepeat: {repeat}\norder: random\nseed: 2\n"
    )
    plan, runs = load(path / "plan.yml")
    outcomes = []
    for run in runs:
        took = took_ns(run)
        sent_ns = 1_700_000_000 * 10**9 + np.arange(took.size) * 1_000_000
        write_run(path / run.folder, Series("known", sent_ns, np.ones(took.size, bool), took, 66))
        told = {"run": run.folder, "label": run.label, "floor": False}
        outcomes.append(told | {"invalid": [], "failed": None, "skipped": None})
    record(path, plan, outcomes)
    return factors.effects_of(path)


def test_devices_that_packets_pass_have_factors_too(tmp_path: Path) -> None:
    """An experiment of them ended with a traceback: no rule of a firewall accepts their packets."""
    random = np.random.default_rng(1)
    effects = forwarded(
        tmp_path, 3, lambda run: 1_000 * batch_of(run) + random.integers(0, 100, 400)
    )
    # The line of figures is that of the first case.
    baseline, changed = effects.of("")
    assert (baseline.name, changed.name) == ("baseline", "batch 32")
    assert changed.median is not None
    assert changed.median.verdict == "worse"
    assert effects.slopes == ()


@pytest.mark.parametrize(("throttled", "verdict"), [(1, "not_decided"), (3, "worse")])
def test_a_row_is_about_the_percentile_that_changed_most(
    tmp_path: Path, throttled: int, verdict: str
) -> None:
    """A quota of CPU time had a p99 of 19 ms beside 65 µs, and its row said "none" of its p50."""
    random = np.random.default_rng(1)

    def took_ns(run: Any) -> Integers:
        usual = 60_000 + random.integers(0, 6_000, 4_000)
        late = np.arange(4_000) % 50 == 0
        if batch_of(run) == 32 and run.repetition < throttled:
            usual[late] = 19_000_000 + random.integers(0, 500_000, late.sum())
        return usual

    _, changed = forwarded(tmp_path, 3, took_ns).of("")
    assert changed.most is not None
    assert changed.most.p in {"0.99", "0.999"}
    assert changed.most.b_ns > 19_000_000
    assert changed.verdict.verdict == verdict
    assert (verdict == "worse") == (changed.verdict.needed is None)
    assert changed.median is not None
    assert abs(changed.median.ratio - 1) < 0.01
