"""An experiment as ``tailtrim run`` leaves one, made of captures whose latencies are given."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from synthetic import write_pcap

from tailtrim import RunDirectory, analyze
from tailtrim.laboratory.experiment import Experiment
from tailtrim.laboratory.experiment.matching import departures
from tailtrim.laboratory.experiment.packages import file_of
from tailtrim.laboratory.nodes.environment import sum_of
from tailtrim.laboratory.plan import load
from tailtrim.results.experiments import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from tailtrim.laboratory.plan import Run

PLAN = """\
name: small
dut: {preset: forward}
traffic: {frame_bytes: 64, rate_pps: $rate, flows: 4, duration_s: 1}
loop: {rate: [10000, 20000]}
skip_s: 0.01
floor: false
keep_captures: true
"""
CITATION = """\
cff-version: 1.2.0
message: Cite it as below.
title: Tail of a forwarder
type: dataset
date-released: 2026-11-20
authors:
  - {family-names: Doe, given-names: Jane, affiliation: Example University}
  - {name: Example Lab}
"""
SAMPLES = 1_000
PACKAGES = "adduser 3.134\nlocal 1.0\n"
PACKAGES_SUM = sum_of(PACKAGES)
_PORTS = {
    "tap_in": {"interface": "a0", "mac": "02:00:00:00:00:01"},
    "tap_out": {"interface": "b0", "mac": "02:00:00:00:01:03"},
}


def small_experiment(folder: Path, *, plan: str = PLAN, earlier_ns: int = 0) -> Path:
    """Lay out an experiment; its folder has a licence and a citation file.

    Packets leave ``earlier_ns`` earlier than they would: some before they entered.
    """
    place = folder / "small"
    place.mkdir(parents=True)
    (place / "plan.yml").write_text(plan, encoding="utf-8")
    loaded, runs = load(place / "plan.yml")
    plan_file = (place / "plan.yml").read_bytes()
    (place / "plan.yml").unlink()
    with Experiment(place, loaded, runs, resume=False) as experiment:
        _fill(experiment, earlier_ns)
    (place / "plan.yml").write_bytes(plan_file)
    (place / "audit.json").write_text('{"schema": null, "problem": "not audited"}\n')
    (place / "LICENSE").write_text("Anybody may use these data.\n")
    (place / "CITATION.cff").write_text(CITATION)
    return place


def _fill(experiment: Experiment, earlier_ns: int) -> None:
    place = experiment.path
    environment = {"local": {"kernel": "6.12.0", "boot_line": "quiet", "packages": PACKAGES_SUM}}
    listed = place / str(file_of(environment["local"]))
    listed.parent.mkdir()
    listed.write_text(PACKAGES, encoding="utf-8")
    experiment.environment = environment
    for run in experiment.runs:
        outcome = Outcome(run.folder, run.label, run.floor)
        _measured(place / run.folder, run, experiment.plan.skip_s, environment, earlier_ns)
        (place / run.folder / "outcome.json").write_text(json.dumps(asdict(outcome)))
        experiment.add(outcome)


def _measured(
    place: Path, run: Run, skip_s: float, environment: dict[str, dict[str, str]], earlier_ns: int
) -> None:
    start_ns = 1_700_000_000_000_000_000
    step_ns = 10**9 // int(run.traffic.rate_pps or 1)
    sent = [(start_ns + number * step_ns, number) for number in range(SAMPLES)]
    left = [
        (
            stamp - earlier_ns + 3_000 + 7 * (number % 90) + (40_000 if number % 200 == 9 else 0),
            number,
        )
        for stamp, number in sent
        if number % 333 != 5
    ]
    draft = place.with_name(f".{place.name}")
    draft.mkdir()
    captures = [
        write_pcap(draft / "ingress.pcap", sent),
        write_pcap(draft / "egress.pcap", sorted(left)),
    ]
    log = draft / "departures.csv"
    stalled_ns = sent[500][0]
    log.write_text(
        f"kind,from_ns,to_ns\nstalled,{stalled_ns},{stalled_ns + 3 * step_ns}\n", encoding="utf-8"
    )
    capture = _capture(len(sent), len(left))
    analyze(
        *captures,
        skip_s=skip_s,
        quantiles=["0.95"],
        departures=departures(log, capture, shares_cpu=False),
        out=place,
    )
    for path in (*captures, log):
        path.rename(place / path.name)
    draft.rmdir()
    summary = RunDirectory(place).summary
    assert summary.ingress.stalled > 0 or not summary.samples
    records: dict[str, Any] = {
        "loop": run.model_dump(mode="json"),
        "capture": capture,
        "generator": _generator(len(sent), run),
        "nodes": _nodes(environment),
    }
    for name, record in records.items():
        (place / f"{name}.json").write_text(json.dumps(record, indent=2), encoding="utf-8")


def _capture(entered: int, left: int) -> dict[str, Any]:
    counts = {"ingress": entered, "egress": left}
    return {
        "taps": {
            tap: {
                "packets": count,
                "dropped": 0,
                "unstamped": 0,
                "stamps": "kernel",
                "file": f"{tap}.pcap",
            }
            for tap, count in counts.items()
        }
    }


def _generator(sent: int, run: Run) -> dict[str, Any]:
    return {
        "sent": sent,
        "due": sent,
        "refused": 0,
        "stalls": {"not_kept": 0},
        "achieved_pps": run.traffic.rate_pps,
        "intended_pps": run.traffic.rate_pps,
        "lateness_ns": {"quantiles": [{"p": "0.99", "value": 2_000}]},
        "shares_cpu": False,
    }


def _nodes(environment: dict[str, dict[str, str]]) -> dict[str, Any]:
    clocks = {"ingress": "CLOCK_REALTIME", "egress": "CLOCK_REALTIME"}
    return {
        "schema": "tailtrim.nodes/1",
        "nodes": environment,
        "roles": {"loadgen": "local", "timestamper": "local", "dut": "local"},
        "ports": _PORTS,
        "numbers": {"summary": {"node": "local", "clocks": clocks}},
        "matching": {"matched_on": "here", "kept": ["ingress.pcap", "egress.pcap"]},
        "correction": {"ns": 0, "source": "none"},
    }
