"""Experiments of round trips on the live testbed: factors measured, or skipped with the reason."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tailtrim.laboratory.plan import load

if TYPE_CHECKING:
    from laboratory import Lab

pytestmark = pytest.mark.reflectors
ROOT = Path(__file__).parents[2]


def plan(lab: Lab, **changes: Any) -> Path:
    path = lab.folder / "plan.yml"
    whole = {
        "name": "lab",
        "dut": {"preset": "reflector"},
        "traffic": {
            "frame_bytes": 70, "schedule": "burst:5", "rate": "50bursts/s", "duration_s": 0.1,
        },
        # The machine that tests is not the one that measures.
        "limits": {"lateness_p99_us": 1e6, "sent_share": 0.5},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(whole | changes), encoding="utf-8")
    return path


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def test_each_factor_is_measured_or_skipped_with_its_reason(lab: Lab) -> None:
    needs("nft")
    ended = lab.run(
        "run",
        str(
            plan(
                lab,
                dut={
                    "preset": "reflector", "path": "$path", "firewall": "$firewall", "rules": 30,
                    "protocol": "$protocol", "coalesce_us": "$coalesce_us",
                },
                factors={
                    "path": ["direct", "bridge", "router", "firewall:30"],
                    "firewall": ["none", "nftables:1", "nftables:15", "nftables:30"],
                    "protocol": ["udp", "icmp"],
                    # No veth gathers packets.
                    "coalesce_us": ["as-is", 0],
                },
                together={"path": "bridge", "coalesce_us": 0},
            )
        ),
        *("--out", "out"),
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    record = json.loads((lab.folder / "out" / "experiment.json").read_text())
    outcomes = {outcome["label"]: outcome for outcome in record["outcomes"]}
    assert len(outcomes) == 10
    skipped = [label for label, outcome in outcomes.items() if outcome["skipped"]]
    assert skipped == ["reflector coalesce_us=0"]
    assert "not supported" in outcomes[skipped[0]]["skipped"]
    (left_out,) = outcomes["reflector together"]["left_out"]
    assert "not supported" in left_out
    for outcome in outcomes.values():
        if outcome["skipped"]:
            assert not (lab.folder / "out" / outcome["run"]).exists()
            continue
        summary = lab.result(outcome["run"], "summary")
        assert summary["samples"] == 25
        (stream,) = lab.result(outcome["run"], "generator")["streams"]
        assert stream["probes"]["answered"] == stream["probes"]["due"] == 25
        if "icmp" not in outcome["label"]:
            # The probes that asked whether it is ready came before.
            assert lab.result(outcome["run"], "device")["reflected"] >= 30
    effects = json.loads((lab.folder / "out" / "report" / "factors.json").read_text())
    assert len(effects["cases"]) == 10
    (slope,) = effects["slopes"]
    assert (slope["firewall"], slope["runs"]) == ("nftables", 3)
    assert "coalesce_us 0: skipped" in " ".join(ended.stdout.split())
    assert (lab.folder / "out" / "report" / "figures" / "factors.svg").exists()
    again = lab.run("report", "out", "--out", "again")
    assert again.returncode == 0, again.stderr
    table = (lab.folder / "again" / "factors.md").read_bytes()
    assert table == (lab.folder / "out" / "report" / "factors.md").read_bytes()
    assert lab.left() == []


@pytest.mark.parametrize("mode", ["af-xdp", "xdp", "nat"])
def test_reflectors_within_the_kernel(lab: Lab, mode: str) -> None:
    needs("nft")
    path = plan(lab, dut={"preset": "reflector", "reflect": mode})
    ended = lab.run("run", str(path), "--out", "out", "--json")
    if ended.returncode == 3:
        pytest.skip(f"this host cannot: {ended.stderr}")
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads(ended.stdout)["runs"]
    assert run["summary"]["samples"] == 25
    assert lab.left() == []


def test_rules_by_iptables_are_those_of_nftables(lab: Lab) -> None:
    needs("iptables-nft-restore")
    path = plan(lab, dut={"preset": "reflector", "firewall": "iptables:20", "rules": 20})
    ended = lab.run("run", str(path), "--out", "out", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["runs"][0]["summary"]["samples"] == 25


def test_a_killed_experiment_of_round_trips_leaves_nothing(lab: Lab) -> None:
    path = plan(lab, repeat=50)
    with subprocess.Popen(
        lab.command("run", str(path), "--out", "out"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=lab.environment,
        cwd=lab.folder,
    ) as process:
        until_s = time.monotonic() + 60
        while not (lab.folder / "out" / "run-000").exists() or lab.find("reflect") is None:
            assert time.monotonic() < until_s
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    lab.until_ended()


def test_a_change_of_the_host_is_taken_back_also_after_kill_9(lab: Lab) -> None:
    # A tuned that remembers what it was told stands for the real one, which few test hosts run.
    programs = lab.folder / "bin"
    programs.mkdir()
    state = lab.folder / "profile"
    state.write_text("balanced")
    tuned = programs / "tuned-adm"
    tuned.write_text(
        "#!/bin/sh\n"
        f'case "$1" in active) echo "Current active profile: $(cat {state})" ;;'
        f' profile) echo "$2" > {state} ;; off) echo off > {state} ;; esac\n'
    )
    tuned.chmod(0o755)
    lab.environment["PATH"] = f"{programs}:{lab.environment['PATH']}"
    dut = {"preset": "reflector", "tuned": "network-latency"}
    done = lab.run("run", str(plan(lab, dut=dut)), "--out", "out")
    assert done.returncode == 0, done.stderr
    assert state.read_text().strip() == "balanced"
    with subprocess.Popen(
        lab.command("run", str(plan(lab, dut=dut, repeat=50)), "--out", "killed"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=lab.environment,
        cwd=lab.folder,
    ) as process:
        until_s = time.monotonic() + 60
        while state.read_text().strip() != "network-latency" or lab.find("ping") is None:
            assert time.monotonic() < until_s
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    until_s = time.monotonic() + 10
    while state.read_text().strip() != "balanced" or lab.left():
        assert time.monotonic() < until_s, (state.read_text(), lab.left())
        time.sleep(0.02)


def test_the_example_is_what_it_says(lab: Lab) -> None:
    del lab
    whole, runs = load(ROOT / "examples" / "reflector-tests.yml")
    assert whole.factors["firewall"][1:12] == [f"nftables:{at}" for at in range(1, 10_002, 1_000)]
    assert whole.factors["firewall"][12:] == [f"iptables:{at}" for at in range(1, 10_002, 1_000)]
    first = [run for run in runs if run.repetition == 0 and run.varied is None]
    assert [str(run.traffic.schedule) for run in first] == ["cbr", "burst:10", "burst:50"]
