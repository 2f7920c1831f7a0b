"""The forwarding folder: output of its scripts, files of its results, and measurements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tailtrim.results.experiments import recorded

if TYPE_CHECKING:
    from pos_runs import PosRun

GRID = [(size, rate) for size in (64, 128) for rate in (1000, 2000, 3000)]


def test_it_runs_to_its_end(forwarding: PosRun) -> None:
    assert forwarding.ended is not None
    assert forwarding.ended.returncode == 0, forwarding.ended.stderr
    output = forwarding.ended.stdout
    assert "Allocation ID: 1\n" in output
    assert f"Results in {forwarding.results}\n" in output
    assert "from tartu\nafter\nafter\n" not in output
    # The cached value, and after it the present one.
    assert "from tartu\nbefore\nafter\n" in output
    assert "run 5 (pkt_sz=128, pkt_rate=3000): finished" in forwarding.ended.stderr
    assert "6 of 6 runs done" in forwarding.ended.stderr


@pytest.mark.parametrize(
    "told",
    [
        "hostname=tartu",
        "generator={'path': '/root/tools/generator.sh', 'options': ['one', 'two']}",
        "option=two",
        "late=variable late unknown\nexit 1",
        "late --remote=7",
        "note=before after",
        "400 Bad Request: Node does not provide energy measurements",
    ],
)
def test_tools_say_what_pos_says(forwarding: PosRun, told: str) -> None:
    (place,) = (forwarding.results / "scripts" / "tartu").glob("*_setup.stdout")
    assert f"{told}\n" in place.read_text("utf-8")


def test_ending_what_does_not_run_is_a_warning_only(forwarding: PosRun) -> None:
    (place,) = (forwarding.results / "scripts" / "tartu").glob("*_setup.stderr")
    assert "WARNING  No running process found\n" in place.read_text("utf-8")
    assert "pos_timesync: nothing done" in place.read_text("utf-8")


def test_results_lie_as_pos_lays_them_in_2026(forwarding: PosRun) -> None:
    folder = forwarding.results
    assert (folder / "config" / "tartu" / "topology.json").is_file()
    assert list((folder / "config").glob("*_variables.json"))
    allocation = json.loads((folder / "config" / "allocation.json").read_text("utf-8"))
    assert allocation["variables"]["global"] == {"note": "after"}
    assert allocation["variables"]["tartu"]["ready"] == "yes"
    assert allocation["nodes"] == ["tartu", "vilnius", "riga"]
    for number, (size, rate) in enumerate(GRID):
        (loop,) = (folder / "scripts" / "tartu").glob(f"*_measurement_run{number}.loop")
        values = json.loads(loop.read_text("utf-8"))
        assert list(values.items()) == [("pkt_sz", size), ("pkt_rate", rate)]
        assert loop.with_suffix(".status").read_text("utf-8") == "finished"
        (command,) = (folder / "scripts" / "vilnius").glob(f"*_sniffer_run{number}.command")
        assert command.read_text("utf-8").startswith("['tailtrim-agent', 'capture', ")
        files = folder / "files" / "tartu"
        assert (files / f"logs_run{number}" / "number").read_text("utf-8") == f"{number}\n"
        assert (files / f"generator_run{number}.log").is_file()


def test_each_run_has_a_run_directory_with_its_loop_variables(forwarding: PosRun) -> None:
    experiment = recorded(forwarding.out)
    assert [run.loop for run in experiment.runs] == [
        {"pkt_sz": size, "pkt_rate": rate} for size, rate in GRID
    ]
    for (run, result), (size, rate) in zip(experiment.complete, GRID, strict=True):
        assert run.problem is None
        # Both ends saw all packets that the generator sent in its second.
        assert result.summary.ingress.packets == rate
        assert result.summary.samples == rate, (size, rate)
    assert (forwarding.out / "report" / "report.html").is_file()


def test_who_waited_for_whom_is_recorded(forwarding: PosRun) -> None:
    lines = (forwarding.results / "config" / "barriers.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    assert sum(event["tag"] == "end" for event in events) == len(GRID)
    assert {*events[0]["waited_s"]} == {"tartu", "vilnius"}
    assert all(min(event["waited_s"].values()) == 0 for event in events)


def test_nothing_on_this_host_is_changed_or_left(forwarding: PosRun) -> None:
    assert forwarding.left() == []
    with open("/etc/hostname", encoding="utf-8") as file:  # noqa: PTH123 - the host's
        assert file.read() != "broken\n"
