"""The report of a search: table, figure, costs, JSON."""

from __future__ import annotations

import io
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
from recorded_search import WATTS, WORLD, searched
from rich.console import Console
from simulated_worlds import World
from typer.testing import CliRunner

from tailtrim import units
from tailtrim.cli import application
from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.trim.observation import with_power
from tailtrim.laboratory.trim.recorded import recorded
from tailtrim.laboratory.trim.search import Search
from tailtrim.laboratory.trim.tree import tree
from tailtrim.laboratory.trim.trial import Observation, Settings
from tailtrim.laboratory.trim.verdict import Found
from tailtrim.publishing.trim_report import findings, page
from tailtrim.publishing.trim_report.costs import Processors, costs_of
from tailtrim.publishing.trim_report.table import changes, notes, render
from tailtrim.results.experiments import is_search

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
    phases = {one.trial.folder: one.trial.phase for one in found.search.seen}
    told = [{phases[run] for run in one.runs} for one in found.path]
    assert told == [{"confirm"}, {"path"}, {"confirm"}]
    shares = [later.tail_ns.value / one.tail_ns.value for one, later in pairwise(found.path)]
    effects = [math.exp(WORLD.alone[name]) for name in ("neighbour", "polling")]
    assert shares == pytest.approx(effects, rel=0.15)


def test_the_tail_of_a_step_is_what_the_tests_compare(search: Path) -> None:
    read = recorded(search)
    for step in findings(read).path:
        tails = [
            one.observation.tail_ns
            for one in read.seen
            if one.trial.folder in step.runs and one.observation.tail_ns
        ]
        assert len(tails) == len(step.runs)
        assert step.tail_ns.value == pytest.approx(math.exp(fmean(map(math.log, tails))))
        assert step.tail_ns.low is not None
        assert step.tail_ns.low < step.tail_ns.value


def test_the_figure_has_a_lane_for_each_step_the_baseline_at_the_top(search: Path) -> None:
    found = findings(recorded(search))
    (figure,) = page.figures(found)
    (panel,) = figure.panels

    assert panel.y.names == ("+ polling", "+ neighbour", "baseline")
    (means,) = panel.lines
    assert list(means.x) == sorted(means.x)
    for lane, mean in zip(means.y, means.x, strict=True):
        step = found.path[::-1][int(lane)]
        assert mean * panel.x.unit_ns == pytest.approx(step.tail_ns.value)
        (bar,) = (one for one in panel.bars if one.lane == lane)
        assert bar.start[0] * panel.x.unit_ns == pytest.approx(step.tail_ns.low)
        assert bar.end[0] * panel.x.unit_ns == pytest.approx(step.tail_ns.high)


def test_a_step_of_one_run_has_no_interval(search: Path) -> None:
    found = findings(recorded(search))
    baseline, *others = found.path
    single = replace(baseline, tail_ns=replace(baseline.tail_ns, low=None, high=None, runs=1))
    (figure,) = page.figures(replace(found, path=[single, *others]))
    (panel,) = figure.panels

    assert {one.lane for one in panel.bars} == {0, 1}
    assert sorted(panel.lines[0].y) == [0, 1, 2]


def test_the_table_has_each_change_with_its_effect_and_its_price(search: Path) -> None:
    found = findings(recorded(search))
    table = changes(found)
    heads = [column.head for column in table.columns]
    assert heads == ["Change", "Verdict", "p99", "Throughput", "Power", "CPUs taken", "Why"]
    told = {row.title: [cell for _, cell in table.cells(row)] for row in table.rows}

    assert list(told) == ["polling", "neighbour", "batches", "all that is kept"]
    verdicts, effects, _, powers, cpus, reasons = zip(*told.values(), strict=True)
    assert [cell.text for cell in verdicts] == ["better", "better", told["batches"][0].text, ""]
    assert re.fullmatch(r"no difference beyond \S+ %", verdicts[2].text)
    assert [cell.below for cell in verdicts] == ["kept", "kept", "", ""]
    assert all(re.fullmatch(r"-.* to .* %", cell.below) for cell in effects)
    assert all(re.search(r"with \S+ % confidence", cell.text) for cell in reasons)
    assert powers[0].text.endswith(" W")
    assert powers[2].text == units.NONE
    assert cpus[1].text == "2-3"
    assert cpus[3].text.startswith("2-3; the device polls: one CPU more")
    shown = io.StringIO()
    Console(file=shown, width=200).print(render(found))
    for name, (_, effect, _, power, *_) in told.items():
        for text in (name, effect.text, effect.below, power.below):
            assert text in shown.getvalue()


def test_the_price_of_what_is_kept_is_that_of_the_world(search: Path) -> None:
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
    assert costs.processors == Processors({"neighbour": "2-3"}, False, True)  # noqa: FBT003


@pytest.mark.parametrize(
    ("baseline", "changed", "taken"),
    [
        ("", "isolcpus=1 nohz_full=1", {"neighbour": "1"}),
        ("quiet", "quiet isolcpus=managed_irq,domain,2-3,5", {"neighbour": "2-3,5"}),
        ("isolcpus=1", "isolcpus=1 nohz_full=1", {}),
        ("32", "8", {}),
    ],
)
def test_cpus_that_a_boot_line_isolates_are_given_away(
    search: Path, baseline: str, changed: str, taken: dict[str, str]
) -> None:
    read = recorded(search)
    assert read.experiment is not None
    values = {"neighbour": {"baseline": baseline, "changed": changed}}
    read.experiment.plan["trim"] = {"candidates": values}
    without = tuple(replace(one, takes="") for one in read.candidates)
    found = costs_of(replace(read, candidates=without)).processors

    assert found is not None
    assert found.taken == taken


def test_without_a_meter_the_price_is_told_to_be_unknown(search: Path, tmp_path: Path) -> None:
    shutil.copytree(search, tmp_path / "search", ignore=shutil.ignore_patterns("energy.json"))
    found = findings(recorded(tmp_path / "search"))

    assert any("Power: not known" in note for note in notes(found))
    assert b"<th>Power</th>" not in page.render(found, (), ("svg",))


def test_the_power_is_that_of_the_devices_node(search: Path, tmp_path: Path) -> None:
    state = {"watts": 7.0, "type_b_w": 0.1, "duration_s": 3.0, "problem": None}
    device = {"meter": "outlet", "accuracy_percent": None, "states": {"loaded": state}}
    other = device | {"states": {"loaded": state | {"watts": 90.0}}}
    told = {"schema": "tailtrim.energy/1", "packets_per_s": 1.0, "nodes": {"a": other, "b": device}}
    (tmp_path / "energy.json").write_text(json.dumps(told))

    assert with_power(Observation(1.0), tmp_path, "b").watts == 7.0
    assert with_power(Observation(1.0), tmp_path, "c").watts is None
    assert with_power(Observation(1.0), search, None).watts is None


def test_the_report_is_made_from_the_directory(search: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    done = CliRunner().invoke(application.app, ["report", str(search), "--out", str(out)])

    assert done.exit_code == 0, done.output
    text = (out / "report.html").read_text()
    for word in ("+ neighbour", "nothing", "<th>Power</th>", "one CPU more"):
        assert word in text
    assert text.count("<table") == text.count("<figure") == 1
    told = json.loads((out / "findings.json").read_text())
    assert told["kept"] == ["polling", "neighbour"]
    assert len(told["path"]) == 3
    assert {one["name"] for one in told["found"]} == {"polling", "neighbour", "batches"}
    for name in ("path.svg", "path.csv"):
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
    (tmp_path / "trim.json").write_text('{"schema": "tailtrim.trim/2"}')

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
    impossible = [Found("f", "cpu", "is set already", tried=False)]
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
