"""Minutes of a run of hours are kept, however the run ends."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from unwired import Far, Nothing, conducted, played_testbed

from tailtrim.errors import HostError, OutputError, RunError
from tailtrim.laboratory.experiment import Experiment, failed_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tailtrim.laboratory.experiment.context import InlineRunContext

PLAN = "dut: {preset: bridge}\nfloor: false\nby_minute: true\n"
LINE = '{"begin_ns": 0}\n'
#: Files that the agents leave of a run with minutes and with one of the worst packets.
LEFT = ("minute.jsonl", "minute.hlog", "around/7-egress.pcap.zst", "around/7-ingress.pcap.zst")
KEPT = {*LEFT, "counter.jsonl"}


def left_by_agents(place: Path, run: str, text: str = LINE, *, matched: Path | None = None) -> None:
    """Leave what the agents of a run leave on a node until they end."""
    folder = (matched or place) / f"matched-{run}"
    for name in LEFT:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "histogram.parquet").write_text("half")
    place.mkdir(parents=True, exist_ok=True)
    (place / "counter.jsonl").write_text(text)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


class Broken:
    """Runs that break by what is raised in each while minutes are there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, there: Path) -> None:
        self.errors: list[BaseException] = []
        self._there = there
        monkeypatch.setattr(Nothing, "forwarding", self._forwarding)
        # The package has a function of the module's name.
        monkeypatch.setattr(
            sys.modules["tailtrim.laboratory.experiment.running"], "measure", self._measure
        )

    @contextmanager
    def _forwarding(self, folder: Path, _: int) -> Iterator[Any]:
        node = Far(folder, self._there)
        try:
            yield played_testbed(node, node, node)
        finally:
            shutil.rmtree(self._there, ignore_errors=True)

    def _measure(self, context: InlineRunContext) -> Any:
        left_by_agents(self._there, context.run.folder)
        raise self.errors.pop(0)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Broken:
    return Broken(monkeypatch, tmp_path / "far")


@pytest.mark.parametrize(
    ("raised", "ends"),
    [
        (RunError("the device died"), None),
        (HostError("a port is gone"), HostError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(143), SystemExit),
        (OSError(28, "No space left on device"), OutputError),
    ],
)
def test_minutes_are_kept_whatever_ends_the_run_and_wherever_they_are(
    experiment: Callable[..., Experiment],
    broken: Broken,
    raised: BaseException,
    ends: type[BaseException] | None,
) -> None:
    made = experiment(PLAN)
    broken.errors = [raised]
    if ends is None:
        ((_, outcome, _),) = conducted(made)
        assert outcome.failed == "the device died"
    else:
        with pytest.raises(ends):
            conducted(made)
    assert files(made.path / "failed" / "run-000") == KEPT
    assert not list(made.path.glob(".run-*"))


def test_minutes_are_not_replaced_by_those_of_later_attempts(
    experiment: Callable[..., Experiment], broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = experiment(PLAN)
    broken.errors = [RunError("first"), RunError("second")]
    conducted(made)
    first = made.path / "failed" / "run-000" / "minute.jsonl"
    first.write_text(LINE * 2_400)
    conducted(made)
    assert files(made.path / "failed" / "run-000.2") == KEPT
    # Of those that fail before they measure, the last one is kept.
    monkeypatch.setattr(Nothing, "forwarding", _no_fibres)
    for _ in range(2):
        conducted(made)
    assert first.read_text() == LINE * 2_400
    failed = first.parents[1]
    assert {path.name for path in failed.iterdir()} == {"run-000", "run-000.2", "run-000.3"}
    assert files(failed / "run-000.3") == {"dut.log"}
    failed_runs.forget(made.path, "run-000")
    assert not failed.exists()


def _no_fibres(_: Any, folder: Path, __: int) -> Any:
    (folder / "dut.log").write_text("no fibres")
    raise RunError("no fibres")


def test_what_cannot_be_moved_stays_until_it_can(
    experiment: Callable[..., Experiment], broken: Broken
) -> None:
    broken.errors = [RunError("the device died")]
    with experiment(PLAN) as made:
        path = made.path
        (path / "failed").write_text("in the way")
        with pytest.raises(OutputError):
            conducted(made)
        (path / "failed").unlink()
    with Experiment(path, made.plan, made.runs, resume=True):
        pass
    assert files(path / "failed" / "run-000") == KEPT


def test_minutes_stay_where_the_result_cannot_be_fetched(
    experiment: Callable[..., Experiment], broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last table is missing: files fetched before it were in a draft that was removed."""
    made = experiment(PLAN)

    def measure(context: InlineRunContext) -> Any:
        left_by_agents(made.path.parent / "far", context.run.folder)
        capture = {"around": [{"ingress_ns": 7}], "analysis": {}}
        return SimpleNamespace(generator={}, capture=capture)

    monkeypatch.setattr(sys.modules["tailtrim.laboratory.experiment.running"], "measure", measure)
    ((_, outcome, _),) = conducted(made)
    assert outcome.failed == "node: matched-run-000/quantile.parquet is missing"
    assert files(made.path / "failed" / "run-000") == KEPT
    assert broken.errors == []


@pytest.mark.parametrize("folder", [".run-001-abc_12", ".run-device-abc_12"])
def test_minutes_of_a_run_that_was_killed_are_kept(
    experiment: Callable[..., Experiment], folder: str
) -> None:
    """A device that is kept up has a folder of its own, in which all its runs are matched."""
    with experiment(PLAN) as first:
        first.save()
    path, plan, runs = first.path, first.plan, first.runs
    left_by_agents(path / ".run-000-abc_12", "run-000", "")
    left_by_agents(path / folder, "run-001", LINE * 2)
    with Experiment(path, plan, runs, resume=True):
        pass
    assert not list(path.glob(".run-*"))
    assert files(path / "failed") == {f"run-001/{name}" for name in KEPT}
    # Killed again, in its first minutes.
    left_by_agents(path / folder, "run-001")
    with Experiment(path, plan, runs, resume=True):
        pass
    assert (path / "failed" / "run-001" / "minute.jsonl").read_text() == LINE * 2
    assert files(path / "failed" / "run-001.2") == KEPT


def test_a_draft_of_a_result_has_minutes_too(tmp_path: Path) -> None:
    """Killed between the result and its place."""
    result = tmp_path / ".run-002-abc_12" / "run"
    result.mkdir(parents=True)
    (result / "minute.jsonl").write_text(LINE)
    assert failed_runs.run_of(tmp_path / ".run-002-abc_12") == "run-002"
