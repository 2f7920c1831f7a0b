"""An experiment: the runs of a plan, one after the other, and what they leave behind.

::

    experiment.json      name, plan, order, seeds, host, versions, and what became of each run
    plan.yml             the plan as it was given
    audit.json           how the host was set up when the experiment began (tailtrim audit)
    run-000/             a run directory (see :mod:`.rundir`) and beside its files
        loop.json        the values of the loop variables, device and traffic, repetition
        generator.json   what was intended, sent and refused, departure lateness
        capture.json     what the taps saw and dropped
        device.json      what the reference forwarder counted
        dut.log          what any other device printed
        disturbed.csv    when the reference forwarder disturbed itself
        stalls.csv       when its work stood still
        events.jsonl.zst, interrupts.csv, trace.json    with ``trace: true``, who had the CPU
        explanation.json    and what that says of the late packets
        outcome.json     why the run is not to be trusted, if it is not
        ingress.pcap.zst, egress.pcap.zst   where the plan keeps captures

With a reflector (preset ``reflector``) a run directory is that of ``tailtrim ping``; generator.json
is what the client counted, device.json what the reflector did.

A run appears when it is complete. One that is not to be trusted is marked as invalid, with reasons.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import shutil
import sys
import tempfile
import weakref
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.agent import audit
from tailtrim.analysis import analyze
from tailtrim.errors import CaptureError, HostError, OutputError, RunError
from tailtrim.explain import explain
from tailtrim.explain.explanation import SCHEMA as EXPLANATION
from tailtrim.measurement import measure
from tailtrim.reflection import reflect
from tailtrim.rundir import DISTURBED, EVENTS, INTERRUPTS, STALLS, RunDirectory
from tailtrim.testbed.unprivileged import unprivileged
from tailtrim.validity import load_doubts, tap_doubts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tailtrim.plan import Plan, Run

SCHEMA = "tailtrim.experiment/1"
AUDIT = "audit.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run: why it is not to be trusted (``invalid``), or broke (``failed``).

    ``skipped`` says why this host cannot have the factor that the run is about, ``left_out`` what
    of several factors it cannot.
    """

    run: str
    label: str
    floor: bool
    invalid: tuple[str, ...] = ()
    failed: str | None = None
    skipped: str | None = None
    left_out: tuple[str, ...] = ()


class Experiment:
    """The directory of an experiment.

    Args:
        path: where it is.
        plan: what is to be run.
        runs: its runs in order.

    Raises:
        OutputError: the directory belongs to something else, to another plan, or to another
            process that works in it.

    """

    def __init__(self, path: Path, plan: Plan, runs: Sequence[Run], *, resume: bool) -> None:
        """Make the directory, or take up the one that is there."""
        self.path, self.plan, self.runs = path, plan, list(runs)
        record = path / "experiment.json"
        if path.exists() and not record.exists() and (not path.is_dir() or any(path.iterdir())):
            raise OutputError(f"{path}: exists and is no experiment, so nothing is put there")
        self._lock()
        self.outcomes: dict[str, Outcome] = {}
        if record.exists():
            if not resume:
                error = OutputError(f"{path}: holds an experiment already")
                error.add_note("go on with it by --resume, or choose another --out")
                raise error
            self._take_up(record)
        for half in path.glob(".run-*"):
            shutil.rmtree(half, ignore_errors=True)

    def _lock(self) -> None:
        """Keep others out, for as long as this object or this process lives."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error.strerror}") from error
        weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Some network file systems lock no directories; there, users have to know.
            if error.errno == errno.EWOULDBLOCK:
                raise OutputError(f"{self.path}: another process is running it") from error

    def _take_up(self, record: Path) -> None:
        """Go on where the record and the runs that are there end."""
        try:
            known = json.loads(record.read_text("utf-8"))
            schema, plan, order = known["schema"], known["plan"], known["order"]
            self.outcomes = {o["run"]: _outcome(o) for o in known["outcomes"]}
            for run in self.runs:
                outcome = self.path / run.folder / "outcome.json"
                if outcome.exists():
                    self.outcomes[run.folder] = _outcome(json.loads(outcome.read_text("utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{record}: this is no record of an experiment ({error})") from error
        if schema != SCHEMA:
            raise OutputError(f"{record}: the schema is {schema!r}, expected {SCHEMA!r}")
        wanted = self.plan.model_dump(mode="json")
        other = [key for key in {**wanted, **plan} if wanted.get(key) != plan.get(key)]
        if other or order != [run.label for run in self.runs]:
            told = ", ".join(other) or "order of the runs"
            raise OutputError(f"{self.path}: holds an experiment with another plan: {told}")

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

    def audit(self) -> None:
        """Record how the host is set up, once: comparisons tell what was different."""
        place = self.path / AUDIT
        if place.exists():
            return
        try:
            found = audit()
        except HostError as error:
            # An experiment is worth having without: the file says why there is none.
            found = {"schema": None, "problem": str(error)}
        _write_json(place, found)

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
                "root": not unprivileged(),
            },
            "command": sys.argv,
            "outcomes": [asdict(self.outcomes[name]) for name in sorted(self.outcomes)],
        }
        _write_json(self.path / "experiment.json", record)


def _outcome(raw: dict[str, Any]) -> Outcome:
    lists = {name: tuple(raw.get(name, ())) for name in ("invalid", "left_out")}
    return Outcome(**(raw | lists))


def conduct(
    experiment: Experiment, told: Callable[[Run, str], None], ended: Callable[[Run, Outcome], None]
) -> None:
    """Do the runs that are missing.

    A run that breaks is recorded and the next one begins. So is one of several devices, or values
    of a factor, that this host cannot have; otherwise what the host cannot do ends the experiment.

    Args:
        experiment: whose runs.
        told: is called with a run and what it is doing.
        ended: is called with a run and what became of it.

    Raises:
        HostError: this host cannot do it.
        OutputError: results cannot be written.

    """
    experiment.save()
    experiment.audit()
    several = len({run.dut.preset for run in experiment.runs if not run.floor}) > 1
    for run in experiment.missing():
        try:
            outcome = _conduct(experiment, run, partial(told, run))
        except (RunError, CaptureError) as error:
            failed = "; ".join([str(error), *getattr(error, "__notes__", ())])
            outcome = Outcome(run.folder, run.label, run.floor, failed=failed)
        except HostError as error:
            if run.varied is not None:
                outcome = Outcome(run.folder, run.label, run.floor, skipped=str(error))
                experiment.add(outcome)
                ended(run, outcome)
                continue
            # What the wire cannot do, no device can; otherwise the other devices are measured.
            if run.dut.preset == "wire" or not several:
                raise
            outcome = Outcome(run.folder, run.label, run.floor, failed=f"not possible: {error}")
        experiment.add(outcome)
        ended(run, outcome)


def _conduct(experiment: Experiment, run: Run, told: Callable[[str], None]) -> Outcome:
    if run.dut.preset == "reflector":
        return _conduct_round_trips(experiment, run, told)
    plan = experiment.plan
    place = experiment.path / run.folder
    draft = _draft(place)
    try:
        told("setting up")
        measured = measure(plan, run, draft, told)
        generator, taps = measured.generator, measured.capture
        told("analysing")
        captures = [Path(taps["taps"][name]["file"]) for name in ("ingress", "egress")]
        analyze(*captures, trim_s=plan.trim_s, out=draft / "run")
        result = draft / "run"
        doubts = load_doubts(plan.limits, generator)
        doubts += tap_doubts(taps, generator, RunDirectory(result).summary)
        outcome = Outcome(run.folder, run.label, run.floor, (*doubts, *measured.doubts))
        for tap in taps["taps"].values():
            tap["file"] = Path(tap["file"]).name if plan.keep_captures else None
        records = {
            "loop": run.model_dump(mode="json"),
            "generator": generator,
            "capture": taps,
            "device": measured.device,
            "trace": measured.trace,
            "outcome": asdict(outcome),
        }
        _write_records(result, records)
        kept = [*captures] if plan.keep_captures else []
        beside = ("dut.log", "truth.bin", DISTURBED, STALLS, EVENTS, INTERRUPTS)
        for path in (*(draft / name for name in beside), *kept):
            if path.exists():
                shutil.move(path, result / path.name)
        if measured.trace is not None:
            told("explaining")
            _write_json(result / "explanation.json", _explained(result))
        _put(result, place)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return outcome


def _conduct_round_trips(experiment: Experiment, run: Run, told: Callable[[str], None]) -> Outcome:
    place = experiment.path / run.folder
    draft = _draft(place)
    try:
        told("setting up")
        measured = reflect(experiment.plan, run, draft, told)
        outcome = Outcome(
            run.folder, run.label, run.floor, measured.doubts, left_out=measured.left_out
        )
        records = {
            "loop": run.model_dump(mode="json"),
            "generator": measured.client,
            "device": measured.reflector,
            "outcome": asdict(outcome),
        }
        _write_records(draft / "run", records)
        _put(draft / "run", place)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return outcome


def _write_records(result: Path, records: dict[str, Any]) -> None:
    for name, value in records.items():
        if value is not None:
            _write_json(result / f"{name}.json", value)


def _put(result: Path, place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)
    result.rename(place)


def _explained(result: Path) -> dict[str, Any]:
    try:
        return explain(result).as_json()
    except ValueError as error:
        # Which CPU serves packets may be known to the user alone: tailtrim explain --cpu.
        return {"schema": EXPLANATION, "host": None, "problem": str(error)}


def _draft(place: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error


def _write_json(path: Path, value: Any) -> None:
    """Write a file that is whole at any time."""
    try:
        draft = path.with_name(f".{path.name}.draft")
        draft.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        draft.rename(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


__all__ = ["Experiment", "HostError", "Outcome", "conduct"]
