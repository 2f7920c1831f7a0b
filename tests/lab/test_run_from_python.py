"""``tailtrim.run``: an experiment in a process of its own, as a notebook starts it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from laboratory import MARK, passed

import tailtrim
from tailtrim.errors import HostError, OutputError

if TYPE_CHECKING:
    from laboratory import Lab


@pytest.fixture
def here(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Return the laboratory; it also finds programs that this process starts."""
    monkeypatch.setenv(MARK, lab.mark)
    monkeypatch.chdir(lab.folder)
    return lab


def test_an_experiment_is_run_and_returned_as_a_table(here: Lab) -> None:
    traffic = {"rate_pps": "$rate", "flows": 4, "duration_s": 0.5}
    plan = here.plan(traffic=traffic, loop={"rate": [2_000, 4_000]}, floor=True)
    lines: list[str] = []
    experiment = tailtrim.run(plan, progress=lines.append)
    assert experiment.path.name == "lab"
    table = experiment.to_pandas()
    assert sorted(table["loop_rate"]) == [2_000, 2_000, 4_000, 4_000]
    assert table["floor"].sum() == 2
    for run in table["run"]:
        summary = json.loads((experiment.path / run / "summary.json").read_text("utf-8"))
        assert passed(summary) > 900
    assert sum(line.startswith("run-00") for line in lines) == 4
    assert (experiment.path / "report" / "report.html").is_file()
    assert here.left() == []
    with pytest.raises(OutputError, match="holds an experiment already"):
        tailtrim.run(plan)
    again = tailtrim.run(plan, resume=True)
    assert again.to_arrow() == experiment.to_arrow()


def test_an_interrupt_ends_the_experiment_in_order(here: Lab) -> None:
    plan = here.plan(repeat=3)

    def interrupt(line: str) -> None:
        if line.startswith("run-000"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tailtrim.run(plan, out="out", progress=interrupt)
    assert here.left() == []
    begun = tailtrim.Experiment("out")
    assert 1 <= len(begun.runs) < 3
    assert len(tailtrim.run(plan, out="out", resume=True).complete) == 3


def test_what_this_host_cannot_do_is_an_error_of_the_host(
    here: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", here.path_without("dpdk-testpmd"))
    with pytest.raises(HostError, match="dpdk-testpmd is not installed"):
        tailtrim.run(here.plan(dut={"preset": "testpmd"}), out="out")
