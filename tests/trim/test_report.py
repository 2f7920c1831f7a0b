"""What a search found, for people: figures, tables, costs, JSON."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_search import WATTS, WORLD, searched
from synthetic import run_of
from typer.testing import CliRunner

from tailtrim.cli import application
from tailtrim.errors import RunDirectoryError
from tailtrim.trim.power import with_power
from tailtrim.trim.recorded import RecordedSearch, is_search, recorded
from tailtrim.trim.report import findings, page
from tailtrim.trim.report.cost_words import lines
from tailtrim.trim.report.costs import costs_of
from tailtrim.trim.report.curves import curve_of
from tailtrim.trim.report.figures import figures
from tailtrim.trim.report.spread import Spread
from tailtrim.trim.report.tradeoff import Tried, best_of
from tailtrim.trim.search import Search
from tailtrim.trim.simulation import World
from tailtrim.trim.tree import tree
from tailtrim.trim.trial import Observation, Seen, Settings, Trial
from tailtrim.trim.verdict import Found, Verdict

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pydoe", reason="needs tailtrim[trim]")


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a search with a meter, in which two changes are kept: for reading."""
    return searched(tmp_path_factory.mktemp("searched"), watts=WATTS, takes={"neighbour": "2-3"})


def test_the_path_has_a_curve_for_each_kept_change(search: Path) -> None:
    found = findings(recorded(search))

    assert [one.name for one in found.path] == ["baseline", "+ neighbour", "+ polling"]
    assert [one.changes for one in found.path] == [
        frozenset(),
        {"neighbour"},
        {"neighbour", "polling"},
    ]
    assert [one.phases for one in found.path] == [("confirm",), ("path",), ("confirm",)]
    shares = [later.tail.value / one.tail.value for one, later in pairwise(found.path)]
    effects = [math.exp(WORLD.alone[name]) for name in ("neighbour", "polling")]
    assert shares == pytest.approx(effects, rel=0.15)


def test_the_tail_of_a_step_is_what_the_tests_compare(search: Path) -> None:
    read = recorded(search)
    for step in findings(read).path:
        tails = [
            one.observation.tail_ns
            for one in read.seen
            if f"run-{one.trial.number:03d}" in step.runs and one.observation.tail_ns
        ]
        assert len(tails) == len(step.runs)
        assert step.tail.value == pytest.approx(math.exp(fmean(map(math.log, tails))))
        assert step.tail.low is not None
        assert step.tail.low < step.tail.value


@pytest.mark.parametrize("lost", [0, 3])
def test_a_curve_is_the_mean_of_the_runs_percentiles(tmp_path: Path, lost: int) -> None:
    rng = random.Random(lost)  # noqa: S311 - latencies, not secrets
    sent = 60
    drawn: list[list[int | None]] = [
        [None if n < lost else rng.randint(1_000, 90_000) for n in range(sent)] for _ in range(3)
    ]
    seen = []
    for number, latencies in enumerate(drawn):
        run_of(tmp_path, latencies, name=f"run-{number:03d}")
        seen.append(Seen(Trial(number, frozenset(), "confirm", 0), Observation(1.0)))
    curve = curve_of(RecordedSearch(tmp_path, "0.9", Settings(), (), (), None), seen, "x")

    # Naively: the value of the rank, the lost packets last.
    ordered = [sorted(math.inf if one is None else one for one in of) for of in drawn]
    assert curve.x.size > 0
    for x, value in zip(curve.x, curve.value_ns, strict=True):
        rank = min(max(sent - math.floor(sent / x), 1), sent)
        values = [of[rank - 1] for of in ordered]
        assert value == pytest.approx(math.exp(fmean(map(math.log, values))))
    assert curve.x[-1] == pytest.approx(sent / max(lost, 1), rel=0.1)
    assert bool((curve.low_ns <= curve.value_ns).all())


def test_what_is_kept_is_told_with_its_price(search: Path) -> None:
    costs = findings(recorded(search)).costs

    assert costs.together is not None
    watts, rate = costs.together.watts, costs.together.delivered_pps
    assert watts is not None
    assert watts.low is not None
    assert watts.high is not None
    assert watts.low < WATTS["polling"] < watts.high
    assert rate is not None
    assert rate.change == pytest.approx(0, abs=0.01)
    alone = costs.each["polling"].watts
    assert alone is not None
    assert alone.change == pytest.approx(WATTS["polling"], abs=0.5)
    told = "\n".join(lines(costs))
    assert "neighbour takes CPUs 2-3" in told
    for fact in ("the device polls", "one CPU more"):
        assert fact in told


@pytest.mark.parametrize(
    ("baseline", "changed", "told"),
    [
        ("", "isolcpus=1 nohz_full=1", "neighbour takes CPUs 1 from"),
        ("quiet", "quiet isolcpus=managed_irq,domain,2-3,5", "neighbour takes CPUs 2-3,5 from"),
        ("isolcpus=1", "isolcpus=1 nohz_full=1", None),
        ("32", "8", None),
    ],
)
def test_cpus_that_a_boot_line_isolates_are_given_away(
    search: Path, baseline: str, changed: str, told: str | None
) -> None:
    read = recorded(search)
    assert read.experiment is not None
    values = {"neighbour": {"baseline": baseline, "changed": changed}}
    read.experiment.plan["trim"] = {"candidates": values}
    without = tuple(replace(one, takes="") for one in read.candidates)
    text = "\n".join(lines(costs_of(replace(read, candidates=without))))

    if told is None:
        assert "takes CPUs" not in text
    else:
        assert told in text


def test_without_a_meter_the_price_is_told_to_be_unknown(search: Path, tmp_path: Path) -> None:
    shutil.copytree(search, tmp_path / "search", ignore=shutil.ignore_patterns("energy.json"))
    found = findings(recorded(tmp_path / "search"))

    assert "Power: not known" in "\n".join(lines(found.costs))
    assert not found.tradeoff
    assert [one.key for one in figures(found)] == ["path"]


def test_the_power_is_that_of_the_devices_node(search: Path, tmp_path: Path) -> None:
    state = {"watts": 7.0, "type_b_w": 0.1, "duration_s": 3.0, "problem": None}
    device = {"meter": "outlet", "accuracy_percent": None, "states": {"loaded": state}}
    other = device | {"states": {"loaded": state | {"watts": 90.0}}}
    told = {"schema": "tailtrim.energy/1", "packets_per_s": 1.0, "nodes": {"a": other, "b": device}}
    (tmp_path / "energy.json").write_text(json.dumps(told))

    assert with_power(Observation(1.0), tmp_path, "b").watts == 7.0
    assert with_power(Observation(1.0), tmp_path, "c").watts is None
    assert with_power(Observation(1.0), search, None).watts is None


def test_tail_against_watts_has_each_set_once(search: Path) -> None:
    found = findings(recorded(search))
    sets = {tuple(sorted(one.trial.changes)) for one in found.search.seen}

    assert sorted(one.changes for one in found.tradeoff) == sorted(sets)
    named = {one.changes for one in found.tradeoff if one.best}
    assert {("neighbour",), ("neighbour", "polling")} <= named
    assert () not in named or found.tradeoff[0].changes == ()
    (drawn,) = (one for one in figures(found) if one.key == "tradeoff")
    assert any(": kept: " in name for name in drawn.names)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12))
def test_best_is_what_no_other_one_beats(drawn: list[tuple[int, int]]) -> None:
    points = [
        Tried((str(place),), Spread(tail, None, None, 1), Spread(watts, None, None, 1))
        for place, (tail, watts) in enumerate(drawn)
    ]
    told = {one.changes: one.best for one in best_of(points)}

    for place, (tail, watts) in enumerate(drawn):
        beaten = any(
            (other < tail and power <= watts) or (other <= tail and power < watts)
            for other, power in drawn
        )
        assert told[str(place),] == (not beaten)


def test_the_report_is_made_from_the_directory(search: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    done = CliRunner().invoke(application.app, ["report", str(search), "--out", str(out)])

    assert done.exit_code == 0, done.output
    text = (out / "report.html").read_text()
    for word in ("+ neighbour", "nothing", "What it costs", "Tail against watts"):
        assert word in text
    told = json.loads((out / "findings.json").read_text())
    assert told["kept"] == ["polling", "neighbour"]
    assert len(told["path"]) == 3
    assert {one["name"] for one in told["found"]} == {"polling", "neighbour", "batches"}
    for name in ("path.svg", "path.csv", "tradeoff.svg", "tradeoff.csv"):
        assert (out / "figures" / name).stat().st_size > 0


def test_what_others_wrote_is_escaped(search: Path) -> None:
    read = recorded(search)
    assert read.result is not None
    result = replace(read.result, notices=("<script>alert(1)</script>",))
    text = page.render(findings(replace(read, result=result)), (), ("svg",)).decode()

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_a_search_that_has_not_ended_is_told_so(search: Path) -> None:
    found = findings(replace(recorded(search), result=None))

    assert b"has not ended" in page.render(found, (), ("svg",))
    assert [one.name for one in found.path] == ["baseline"]


def test_a_damaged_record_is_told(tmp_path: Path) -> None:
    assert not is_search(tmp_path)
    (tmp_path / "trim.json").write_text('{"schema": "tailtrim.trim/1"}')

    with pytest.raises(RunDirectoryError, match=r"trim\.json: not .*search"):
        recorded(tmp_path)


def test_a_record_with_what_is_no_number_is_refused(search: Path, tmp_path: Path) -> None:
    told = json.loads((search / "trim.json").read_text())
    told["trials"][3]["observation"]["tail_ns"] = "<script>"
    (tmp_path / "trim.json").write_text(json.dumps(told))

    with pytest.raises(RunDirectoryError, match=r"trim\.json: not .*search"):
        recorded(tmp_path)


def test_each_step_between_is_measured_if_there_is_time() -> None:
    names = ("a", "b", "c")
    world = World({"g": names}, dict.fromkeys(names, -0.6), {}, sigma=0.05)

    def phases(trials: int) -> list[tuple[str, frozenset[str]]]:
        rng = random.Random(2)  # noqa: S311 - noise, not a secret
        search = Search(world.candidates, Settings(trials=trials))
        while search.trial is not None:
            search.tell(world.run(search.trial, rng))
        assert search.result is not None
        assert set(search.result.kept) == set(names)
        return [(one.trial.phase, one.trial.changes) for one in search.seen]

    told = phases(200)
    between = [changes for phase, changes in told if phase == "path"]
    assert sorted(map(len, between)) == [1] * 4 + [2] * 4
    without = len(told) - len(between)
    assert not [phase for phase, _ in phases(without + 1) if phase == "path"]


def test_a_dry_run_shows_each_set_that_may_be_tried() -> None:
    world = World({"cpu": ("a", "b"), "nic": ("c",), "mem": ("d", "e")}, {}, {})
    impossible = [Found("f", "cpu", Verdict.UNTRIED, "is set already")]
    told = list(tree(world.candidates, impossible, Settings(trials=240, seconds=1_200), 5.0))
    text = "\n".join(told)

    for one in "abcde":
        assert f"all but {one}" in text
    assert "f: is set already" in text
    assert re.search("1. Screening.* 10 to 80 trials, 50 s to 7 min", text)
    assert "2. Backward elimination: 28 to " in text
    assert re.search("3. Confirmation.* 16 to 32 trials, 2 min to 3 min", text)
    assert "20 min" in told[-1]


def test_a_dry_run_tells_what_the_budget_is_too_small_for() -> None:
    world = World({"g": tuple("abcdefgh")}, {}, {})
    told = "\n".join(tree(world.candidates, [], Settings(trials=40), 5.0))

    assert "e: the budget is too" in told
    assert "all but e" not in told
