"""Searches on a testbed that has nothing: runs are those of a world whose truth is known."""

from __future__ import annotations

import json
import random
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from simulated_worlds import World

from tailtrim.errors import HostError, OutputError, PlanError, RunError
from tailtrim.laboratory.trim import host, testbed_workload
from tailtrim.laboratory.trim.loop import Loop
from tailtrim.laboratory.trim.plan_request import PlanRequest
from tailtrim.laboratory.trim.trial import Settings, Trial, TrialListener
from tailtrim.results.experiments import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.plan import Boot, Run
    from tailtrim.laboratory.trim.verdict import Result

pytest.importorskip("pydoe", reason="needs tailtrim[trim]")

PLAN = """\
name: world
dut: {preset: forward, batch: $batch, work_ns: $work}
traffic: {frame_bytes: 64, rate_pps: 1000, duration_s: 2}
trim:
  candidates:
    batch: {baseline: 32, changed: 4}
    work: {baseline: 500, changed: 100}
"""
#: Where the stub keeps what is applied: the journal of the host.
JOURNAL = "journal.json"
#: A stand-in for the agent, whose host is a file; it refuses one change where it is the last one.
AGENT = """\
#!/bin/sh
journal='{journal}'
verb=$2
while [ $# -gt 0 ]; do
    case $1 in
        --only) names="$names $2";;
        --out) out=$2;;
    esac
    shift
done
case $verb in
    plan) echo '{plan}';;
    status) [ -e "$journal" ] && applied=true || applied=false; echo '{{"applied":'$applied'}}';;
    apply)
        [ ! -e "$journal" ] || exit 1
        echo $names >"$journal"
        case "$names" in *"{refused}") echo '{refused}: permission denied' >&2; exit 1;; esac;;
    revert) rm "$journal";;
    export) mkdir -p "$out" && echo $names >"$out/names";;
esac
"""


def _change(name: str, check: str, state: str = "needed", when: str = "now") -> dict[str, Any]:
    return {"id": name, "checks": [check], "when": when, "steps": [{"state": state}]}


CHANGES = [
    _change("vm.stat", "MEM-006"),
    _change("irq.default", "IRQ-001"),
    _change("cpu.smt", "ISO-021"),
    _change("mm.ksm", "MEM-003", state="already"),
    _change("boot.tsc", "CLK-003", when="next-boot"),
]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yml"
    path.write_text(PLAN)
    return path


class Booted:
    """Nodes that boot, except with one word on their boot line."""

    lines: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.untried: str | None = None
        self.lines.clear()

    def run(self, run: Run) -> None:
        if run.boot is None:
            return
        self.lines.append(run.boot.cmdline)
        self.untried = "no boot" if "panics" in run.boot.cmdline else None

    def leave(self, boot: Boot) -> str:
        self.lines.append(boot.cmdline)
        return "dut-1"


def _lab(
    monkeypatch: pytest.MonkeyPatch, effects: dict[str, float], end_at: int | None = None
) -> list[Trial]:
    """Have runs be those of a world; a run may be interrupted. Returns the trials."""
    world, rng, trials = World({}, effects, {}, sigma=0.03), random.Random(1), []  # noqa: S311

    def conduct(experiment: Experiment, *_: Any, runs: list[Any], within: Booted) -> None:
        (run,) = runs
        if run.number == end_at:
            raise KeyboardInterrupt
        within.run(run)
        experiment.add(Outcome(run.folder, run.label, floor=False, failed="no testbed"))
        trials.append(Trial(run.number, frozenset(run.loop), "", 0))

    @contextmanager
    def nodes_of(*_: Any) -> Iterator[Booted]:
        yield booted

    booted = Booted()
    monkeypatch.setattr(testbed_workload, "conduct", conduct)
    monkeypatch.setattr(testbed_workload, "nodes_of", nodes_of)
    monkeypatch.setattr(testbed_workload, "images_for", lambda *_: {})
    monkeypatch.setattr(testbed_workload, "observation", lambda *_: world.run(trials[-1], rng))
    return trials


def _settings() -> Settings:
    return Settings(trials=120)


def _search(request: PlanRequest, out: Path, settings: Settings | None) -> Result:
    with Loop(request, out, settings) as loop:
        return loop.go(TrialListener())


def test_the_record_tells_all_trials_and_the_result(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lab(monkeypatch, {"batch": -0.5})
    out = tmp_path / "out"
    result = _search(PlanRequest(plan), out, _settings())

    assert result.kept == ("batch",)
    record = json.loads((out / "trim.json").read_text())
    assert len(record["trials"]) == result.trials
    assert record["result"]["kept"] == ["batch"]
    order = json.loads((out / "experiment.json").read_text())["order"]
    assert len(order) == result.trials
    assert (out / "plan.yml").read_text() == PLAN


@pytest.mark.parametrize("end_at", [0, 1, 7])
def test_an_interrupted_search_is_taken_up_with_the_trial_that_was_lost(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_at: int
) -> None:
    out = tmp_path / "out"
    before = _lab(monkeypatch, {"batch": -0.5}, end_at)
    with Loop(PlanRequest(plan), out, _settings()) as interrupted:
        with pytest.raises(KeyboardInterrupt):
            interrupted.go(TrialListener())
        lost = interrupted.search.trial
    after = _lab(monkeypatch, {"batch": -0.5})
    result = _search(PlanRequest(plan), out, None)

    assert len(before) == end_at
    assert lost is not None
    assert (after[0].number, after[0].changes) == (lost.number, lost.changes)
    assert result.kept == ("batch",)


def test_a_search_is_not_taken_up_with_other_candidates(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    _lab(monkeypatch, {})
    _search(PlanRequest(plan), out, _settings())
    plan.write_text(PLAN.replace("work: {b", "work2: {b").replace("$work", "$work2"))

    with pytest.raises(OutputError, match="different plan: work, work2"):
        Loop(PlanRequest(plan), out, None)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("    batch: {baseline: 32, changed: 4}", "    batch: [32, 4]", "expected changes"),
        ("changed: 4}", "changed: 400}", "batch"),
        ("work_ns: $work", "work_ns: 1", r"\$work is not used"),
        ("trim:\n", "repeat: 2\ntrim:\n", "one combination"),
        ("trim:\n", "by_minute: true\ntrim:\n", "by_minute: .*tailtrim trim"),
        ("trim:\n", "trim:\n  quantile: p101\n", "quantile"),
        ("dut: {", "dut: {node: vm, ", "needs boot"),
    ],
)
def test_a_wrong_plan_is_told(plan: Path, old: str, new: str, told: str) -> None:
    plan.write_text(PLAN.replace(old, new))

    with pytest.raises(PlanError, match=told):
        PlanRequest(plan)


BOOTING = """\
name: booting
dut: {preset: router, node: vm}
boot: {kernel: bookworm/cloud, cmdline: "quiet $line $more"}
traffic: {frame_bytes: 64, rate_pps: 1000, duration_s: 2}
trim:
  candidates:
    line: {baseline: "", changed: isolcpus=1}
    more: {baseline: "", changed: panics}
"""


def test_boot_lines_are_tried_and_what_is_kept_is_left(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.write_text(BOOTING)
    trials = _lab(monkeypatch, {"line": -0.5})
    result = _search(PlanRequest(plan), tmp_path / "out", _settings())

    assert result.kept == ("line",)
    more = next(one for one in result.found if one.name == "more")
    assert not more.tried
    assert more.reason.endswith(": no boot")
    *lines, last = [" ".join(line.split()) for line in Booted.lines]
    assert lines[:3].count("quiet panics") == 1
    assert set(lines[3:]) == {"quiet", "quiet isolcpus=1"}
    assert len(lines) == len(trials)
    assert last == "quiet isolcpus=1"
    assert any("dut-1 is in what" in one for one in result.notices)


def test_a_node_that_boots_without_changes_only_is_put_back(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.write_text(BOOTING.replace("isolcpus=1", "panics"))
    _lab(monkeypatch, {})
    result = _search(PlanRequest(plan), tmp_path / "out", _settings())

    assert result.kept == ()
    assert len(Booted.lines) == 4
    assert Booted.lines[-1].split() == ["quiet"]


def test_a_node_that_does_not_boot_without_changes_ends_the_search(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.write_text(BOOTING.replace("quiet", "panics"))
    _lab(monkeypatch, {})

    with pytest.raises(RunError, match="without changes: no boot"):
        _search(PlanRequest(plan), tmp_path / "out", _settings())


@pytest.mark.parametrize("words", ["mitigations=off", "quiet nosmt=force"])
def test_a_risk_is_taken_only_if_it_is_named(plan: Path, words: str) -> None:
    plan.write_text(BOOTING.replace("isolcpus=1", words))
    with pytest.raises(PlanError, match="away CPUs or protection"):
        PlanRequest(plan)

    named = words.rsplit(maxsplit=1)[-1].partition("=")[0]
    plan.write_text(BOOTING.replace("isolcpus=1", f"{words}, risk: [{named}]"))
    assert len(PlanRequest(plan).boots()) == 4


@pytest.fixture
def tuned(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return what makes a stand-in for the agent; its journal is at the path returned."""

    def make(refused: str = "-", only: str = "[]") -> Path:
        journal, agent = tmp_path / JOURNAL, tmp_path / "agent"
        agent.write_text(
            AGENT.format(journal=journal, plan=json.dumps({"changes": CHANGES}), refused=refused)
        )
        agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(host, "program", lambda: str(agent))
        monkeypatch.setattr("socket.gethostname", lambda: "dut-1")
        named = f"host: {{name: dut-1, profile: latency-kernel, only: {only}}}"
        plan.write_text(PLAN.replace("trim:\n", f"trim:\n  {named}\n"))
        return journal

    return make


def test_a_host_that_the_plan_does_not_name_is_not_touched(
    plan: Path, tuned: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tuned()
    monkeypatch.setattr("socket.gethostname", lambda: "another")

    with pytest.raises(HostError, match=r"'dut-1', .*host is 'another'"):
        PlanRequest(plan)
    assert not journal.exists()


def test_changes_that_a_user_applied_are_left_alone(
    plan: Path, tmp_path: Path, tuned: Callable[..., Path]
) -> None:
    journal = tuned()
    journal.write_text("mine")

    with pytest.raises(HostError, match="applied on this host"):
        Loop(PlanRequest(plan), tmp_path / "out", _settings())
    assert journal.read_text() == "mine"


def test_what_is_kept_is_applied_and_exported_and_the_rest_is_not(
    plan: Path, tmp_path: Path, tuned: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tuned()
    _lab(monkeypatch, {"vm.stat": -0.6})
    result = _search(PlanRequest(plan), tmp_path / "out", _settings())

    assert result.kept == ("vm.stat",)
    assert journal.read_text() == "vm.stat\n"
    assert (tmp_path / "out/export/tuned/names").read_text() == "vm.stat\n"
    untried = {one.name: one.reason for one in result.found if not one.tried}
    assert untried.keys() == {"cpu.smt", "mm.ksm", "boot.tsc"}
    assert "takes away CPUs" in untried["cpu.smt"]


def test_a_risky_change_is_tried_only_if_it_is_named(
    plan: Path, tuned: Callable[..., Path]
) -> None:
    tuned(only="[ISO-021]")

    assert "cpu.smt" in {one.name for one in PlanRequest(plan).candidates}


def test_an_interruption_leaves_the_host_as_before(
    plan: Path, tmp_path: Path, tuned: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tuned()
    for end_at in range(8):
        _lab(monkeypatch, {}, end_at)
        with pytest.raises(KeyboardInterrupt):
            _search(PlanRequest(plan), tmp_path / f"out-{end_at}", _settings())
        assert not journal.exists()


def test_a_killed_search_takes_back_what_was_applied_when_it_is_resumed(
    plan: Path, tmp_path: Path, tuned: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, out = tuned(), tmp_path / "out"
    _lab(monkeypatch, {}, 5)
    with pytest.raises(KeyboardInterrupt):
        _search(PlanRequest(plan), out, _settings())
    # As kill -9 leaves it: the journal and the record say what is applied.
    record = json.loads((out / "trim.json").read_text())
    (out / "trim.json").write_text(json.dumps(record | {"applied": ["vm.stat"]}))
    journal.write_text("vm.stat")
    _lab(monkeypatch, {})
    with Loop(PlanRequest(plan), out, None) as resumed:
        assert not journal.exists()
        assert not resumed.go(TrialListener()).kept


def test_a_change_that_the_host_refuses_is_taken_back_and_told(
    plan: Path, tmp_path: Path, tuned: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tuned(refused="vm.stat")
    _lab(monkeypatch, {"irq.default": -0.6})
    result = _search(PlanRequest(plan), tmp_path / "out", _settings())

    verdicts = {one.name: (one.verdict, one.reason) for one in result.found}
    assert verdicts["vm.stat"][0] == "worse"
    assert "permission denied" in verdicts["vm.stat"][1]
    assert result.kept == ("irq.default",)
    assert journal.read_text() == "irq.default\n"
