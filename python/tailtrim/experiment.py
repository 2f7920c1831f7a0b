"""An experiment: the runs of a plan, one after the other, and what they leave behind.

::

    experiment.json      name, plan, order, seeds, host, versions, and what became of each run
    plan.yml             the plan as it was given
    run-000/             a run directory (see :mod:`.rundir`) and beside its files
        loop.json        the values of the loop variables, device and traffic, repetition
        generator.json   what was intended, sent and refused, departure lateness
        capture.json     what the taps saw and dropped
        device.json      what the reference forwarder counted
        ingress.pcap.zst, egress.pcap.zst   where the plan keeps captures

A run appears when it is complete. One that is not to be trusted is marked as invalid, with reasons.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.agent import Agent
from tailtrim.analysis import analyze
from tailtrim.errors import HostError, OutputError, RunError
from tailtrim.rundir import RunDirectory
from tailtrim.testbed import Testbed
from tailtrim.testbed.local import SEND, TAP_IN, TAP_OUT
from tailtrim.testbed.presets import Device, destination_mac

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tailtrim.plan import Plan, Run

SCHEMA = "tailtrim.experiment/1"

#: After the last departure the device may hold packets for so long without one leaving.
_SETTLE_S = 0.3
#: What a generator that cannot keep its schedule may take beyond its time.
_GRACE = 3.0
#: How often the device is looked at: on few cores every look takes time from it.
_LOOK_S = 0.2
#: CLOCK_REALTIME may drift against CLOCK_MONOTONIC by this much in a run; beyond it, it stepped.
_STEP_S = 0.0005
_DRIFT = 500e-6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run: why it is not to be trusted (``invalid``), or broke (``failed``)."""

    run: str
    label: str
    floor: bool
    invalid: tuple[str, ...] = ()
    failed: str | None = None


class Experiment:
    """The directory of an experiment.

    Args:
        path: where it is.
        plan: what is to be run.
        runs: its runs in order.

    Raises:
        OutputError: the directory belongs to something else, or to another plan.

    """

    def __init__(self, path: Path, plan: Plan, runs: Sequence[Run], *, resume: bool) -> None:
        """Make the directory, or take up the one that is there."""
        self.path, self.plan, self.runs = path, plan, list(runs)
        record = path / "experiment.json"
        wanted = plan.model_dump(mode="json")
        if record.exists():
            if not resume:
                error = OutputError(f"{path}: holds an experiment already")
                error.add_note("go on with it by --resume, or choose another --out")
                raise error
            known = json.loads(record.read_text("utf-8"))
            if known["plan"] != wanted:
                raise OutputError(f"{path}: holds an experiment with another plan")
            self.outcomes = {o["run"]: _outcome(o) for o in known["outcomes"]}
        else:
            if path.exists() and any(path.iterdir()):
                raise OutputError(f"{path}: exists and is no experiment, so nothing is put there")
            self.outcomes = {}
        for half in path.glob(".run-*"):
            shutil.rmtree(half, ignore_errors=True)

    def missing(self) -> list[Run]:
        """Return the runs that are not complete, in order."""
        return [
            run
            for run in self.runs
            if not (self.path / run.folder / "summary.json").exists()
            or self.outcomes.get(run.folder) is None
        ]

    def complete(self) -> list[tuple[Run, Outcome, RunDirectory]]:
        """Return the complete runs in order."""
        return [
            (run, self.outcomes[run.folder], RunDirectory(self.path / run.folder))
            for run in self.runs
            if run.folder in self.outcomes and (self.path / run.folder / "summary.json").exists()
        ]

    def add(self, outcome: Outcome) -> None:
        """Record what became of a run."""
        self.outcomes[outcome.run] = outcome
        self.save()

    def save(self) -> None:
        """Write the record; it is whole at any time."""
        record = {
            "schema": SCHEMA,
            "plan": self.plan.model_dump(mode="json"),
            "order": [run.label for run in self.runs],
            "versions": {"tailtrim": VERSION, "python": platform.python_version()},
            "host": {
                "kernel": platform.release(),
                "machine": platform.machine(),
                "cpus": len(os.sched_getaffinity(0)),
                "root": "TAILTRIM_USER_NAMESPACE" not in os.environ,
            },
            "command": sys.argv,
            "outcomes": [asdict(self.outcomes[name]) for name in sorted(self.outcomes)],
        }
        self.path.mkdir(parents=True, exist_ok=True)
        _write_json(self.path / "experiment.json", record)


def _outcome(raw: dict[str, Any]) -> Outcome:
    return Outcome(**(raw | {"invalid": tuple(raw["invalid"])}))


def conduct(
    experiment: Experiment, told: Callable[[Run, str], None], ended: Callable[[Run, Outcome], None]
) -> None:
    """Do the runs that are missing.

    A run that breaks is recorded and the next one begins; what the host cannot do at all ends the
    experiment.

    Args:
        experiment: whose runs.
        told: is called with a run and what it is doing.
        ended: is called with a run and what became of it.

    Raises:
        HostError: this host cannot do it.
        OutputError: results cannot be written.

    """
    experiment.save()
    for run in experiment.missing():
        try:
            invalid = _conduct(experiment, run, partial(told, run))
        except RunError as error:
            outcome = Outcome(run.folder, run.label, run.floor, failed=str(error))
        else:
            outcome = Outcome(run.folder, run.label, run.floor, tuple(invalid))
        experiment.add(outcome)
        ended(run, outcome)


def _conduct(experiment: Experiment, run: Run, told: Callable[[str], None]) -> list[str]:
    plan = experiment.plan
    place = experiment.path / run.folder
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{run.folder}-", dir=experiment.path))
    except OSError as error:
        raise OutputError(f"{experiment.path}: cannot be written: {error.strerror}") from error
    try:
        told("setting up")
        generator, taps, device, stepped = _measure(plan, run, draft, told)
        told("analysing")
        captures = [Path(taps["taps"][name]["file"]) for name in ("ingress", "egress")]
        analyze(*captures, trim_s=plan.trim_s, out=draft / "run")
        result = draft / "run"
        loop = run.model_dump(mode="json")
        for name, value in (
            ("loop", loop),
            ("generator", generator),
            ("capture", taps),
            ("device", device),
        ):
            if value is not None:
                _write_json(result / f"{name}.json", value)
        for extra in ("dut.log", "truth.bin"):
            if (draft / extra).exists():
                shutil.move(draft / extra, result / extra)
        if plan.keep_captures:
            for capture in captures:
                shutil.move(capture, result / capture.name)
        if place.exists():
            shutil.rmtree(place)
        result.rename(place)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    reasons = _doubts(plan, generator, taps, RunDirectory(place))
    return reasons + ([stepped] if stepped else [])


def _measure(
    plan: Plan, run: Run, draft: Path, told: Callable[[str], None]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None, str]:
    """Generate and capture; return what the generator, the taps and the forwarder counted."""
    generating, polling = _cpus()
    with ExitStack() as stack:
        testbed = stack.enter_context(Testbed())
        device = stack.enter_context(Device(testbed, run.dut, draft, polling))
        capture = stack.enter_context(
            Agent(
                *("capture", "--tap", f"ingress={TAP_IN}", "--tap", f"egress={TAP_OUT}"),
                *("--out", str(draft), "--snap", str(plan.snap_bytes), "--zstd"),
                prefix=testbed.timestamper.prefix,
            )
        )
        capture.ready()
        told("measuring")
        before = _clocks()
        generator = stack.enter_context(
            Agent(
                "generate",
                *_load(run, generating),
                prefix=testbed.loadgen.prefix,
            )
        )
        generator.ready()
        # The device and the taps are looked at while the generator runs: who dies is told at once.
        until_s = time.monotonic() + run.traffic.duration_s * _GRACE + 10
        while generator.poll() and time.monotonic() < until_s:
            device.check()
            if not capture.poll():
                capture.result(1)
            time.sleep(_LOOK_S)
        sent = generator.result(5)
        device.check()
        time.sleep(_SETTLE_S)
        stepped = _stepped(before, _clocks())
        taps = capture.stop()
        return sent, taps, device.stop(), stepped


def _cpus() -> tuple[int | None, int | None]:
    """Choose CPUs for the generator and for a device that polls: the last two, if there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    return (cpus[-2], cpus[-1]) if len(cpus) > 1 else (None, None)


def _load(run: Run, cpu: int | None) -> list[str]:
    traffic = run.traffic
    arguments = ["--port", SEND, "--dst-mac", destination_mac(run.dut)]
    arguments += ["--frame-bytes", str(traffic.frame_bytes), "--schedule", traffic.pattern]
    rate = traffic.rate if traffic.rate is not None else traffic.rate_pps
    arguments += ["--rate", str(rate)] if rate is not None else []
    arguments += ["--flows", str(traffic.flows), "--dscp", str(traffic.dscp)]
    # Repetitions are not the same again: each has a seed of its own, which the result tells.
    arguments += ["--seed", str(traffic.seed + run.repetition)]
    arguments += ["--stop-after", f"{traffic.duration_s:.9f}s"]
    arguments += ["--cpu", str(cpu)] if cpu is not None else []
    return arguments


def _clocks() -> tuple[float, float]:
    return time.clock_gettime(time.CLOCK_REALTIME), time.clock_gettime(time.CLOCK_MONOTONIC)


def _stepped(before: tuple[float, float], after: tuple[float, float]) -> str:
    passed = after[1] - before[1]
    apart = (after[0] - before[0]) - passed
    if abs(apart) > _STEP_S + _DRIFT * passed:
        return f"the clock stepped by {apart * 1e3:.1f} ms"
    return ""


def _doubts(
    plan: Plan, generator: dict[str, Any], taps: dict[str, Any], result: RunDirectory
) -> list[str]:
    """Return what speaks against a run."""
    doubts = []
    late = {q["p"]: q["value"] for q in generator["lateness_ns"]["quantiles"]}["0.99"]
    if late is not None and late > plan.limits.lateness_p99_us * 1e3:
        doubts.append(f"the generator was late: p99 {late / 1e3:,.0f} µs")
    if generator["sent"] < plan.limits.sent_share * generator["due"]:
        doubts.append(f"the generator's port refused {generator['refused']:,} packets")
    slow = generator["achieved_pps"] < plan.limits.sent_share * generator["intended_pps"]
    if slow and generator["sent"] > 1:
        doubts.append(
            f"the generator sent {generator['achieved_pps']:,.0f} packets/s, not"
            f" {generator['intended_pps']:,.0f}"
        )
    for name, tap in taps["taps"].items():
        if tap["dropped"]:
            doubts.append(f"the {name} tap dropped {tap['dropped']:,} frames")
        if tap["unstamped"]:
            doubts.append(f"the {name} tap left {tap['unstamped']:,} frames without a stamp")
    entered = result.summary.ingress.packets
    if entered != generator["sent"]:
        doubts.append(
            f"{generator['sent']:,} packets were sent, {entered:,} reached the ingress tap"
        )
    if result.summary.samples == 0:
        doubts.append("no packet passed the device under test")
    return doubts


def _write_json(path: Path, value: Any) -> None:
    """Write a file that is whole at any time."""
    try:
        draft = path.with_name(f".{path.name}.draft")
        draft.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        draft.rename(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


__all__ = ["Experiment", "HostError", "Outcome", "conduct"]
