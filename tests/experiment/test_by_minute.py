"""A run by minute whose nodes are elsewhere: fetched files, and messages to users."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from unwired import GENERATED, Far, Nothing, conducted, played_testbed, write_pcap

from tailtrim.laboratory.experiment.measure import Measurement
from tailtrim.laboratory.experiment.tap_clocks import TapClocks
from tailtrim.laboratory.nodes import agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.experiment.context import InlineRunContext

PLAN = "dut: {preset: bridge}\nfloor: false\nby_minute: true\n"
STILL = GENERATED["stalls"]
QUIET = STILL | {"sending": {"count": 0, "total_ns": 0, "longest_ns": 0}}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, Any]], None]:
    """Return what has runs measured by a generator that stood still so often."""
    there = tmp_path / "far"

    def measuring(stalls: dict[str, Any]) -> None:
        def measure(context: InlineRunContext) -> Measurement:
            assert context.by_minute is not None
            there.mkdir(exist_ok=True)
            frames = [(10**9 + number * 100_000, number) for number in range(100)]
            left = [(stamp + 5_000, number) for stamp, number in frames]
            captures = [
                write_pcap(there / "ingress.pcap", frames),
                write_pcap(there / "egress.pcap", left),
            ]
            matched = there / f"matched-{context.by_minute.run}"
            words = ["analyze", *captures, "--out", matched, "--by-minute", "--skip", "0s"]
            subprocess.run([agent.program(), *map(str, words)], check=True, capture_output=True)
            (matched / "around").mkdir()
            for tap in ("ingress", "egress"):
                (matched / "around" / f"7-{tap}.pcap.zst").touch()
            (there / "counter.jsonl").touch()
            told = {"dropped": 0, "unstamped": 0, "stamps": "kernel", "file": None}
            capture: dict[str, Any] = {"around": [{"ingress_ns": 7}], "analysis": {}}
            capture["taps"] = {"ingress": {**told}, "egress": {**told}}
            generated = GENERATED | {"stalls": stalls}
            return Measurement(
                generated,
                capture,
                None,
                None,
                shares_cpu=False,
                doubts=(),
                clocks=TapClocks(context.at),
            )

        # The package has a function of the module's name.
        monkeypatch.setattr(
            sys.modules["tailtrim.laboratory.experiment.running"], "measure", measure
        )

    def forwarding(_: Any, folder: Path, __: int) -> Any:
        node = Far(folder, there)
        return nullcontext(played_testbed(node, node, node))

    monkeypatch.setattr(Nothing, "forwarding", forwarding)
    return measuring


def test_the_result_is_fetched_and_nothing_of_it_stays_there(
    experiment: Callable[..., Experiment],
    measured: Callable[[dict[str, Any]], None],
    tmp_path: Path,
) -> None:
    measured(QUIET)
    made = experiment(PLAN)
    ((_, outcome, _),) = conducted(made)
    assert (outcome.failed, outcome.invalid) == (None, ())
    run = made.path / "run-000"
    assert json.loads((run / "minute.jsonl").read_text())["samples"] == 100
    there = {str(path.relative_to(run)) for path in run.rglob("*")}
    expected = {"minute.hlog", "counter.jsonl", "quantile.parquet", "around/7-egress.pcap.zst"}
    assert expected < there
    assert {path.name for path in (tmp_path / "far").iterdir()} == {"ingress.pcap", "egress.pcap"}
    assert not list(made.path.glob(".run-*"))
    assert made.notices == []


def test_stalls_of_the_generator_are_told_since_they_are_not_set_aside(
    experiment: Callable[..., Experiment], measured: Callable[[dict[str, Any]], None]
) -> None:
    """More of them than are kept, as in hours, do not make the run invalid."""
    measured(STILL | {"not_kept": 7})
    made = experiment(PLAN)
    ((_, outcome, _),) = conducted(made)
    assert (outcome.failed, outcome.invalid) == (None, ())
    (told,) = made.notices
    for fact in ("run-000: the generator", "once in the middle", "90.0 µs at most", "by_minute"):
        assert fact in told
