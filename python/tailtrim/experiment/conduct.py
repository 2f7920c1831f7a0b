"""The runs of an experiment, one after the other."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.analysis import analyze
from tailtrim.devices import Reflector, Wire
from tailtrim.errors import CaptureError, HostError, OutputError, RunError
from tailtrim.experiment.measure import measure
from tailtrim.experiment.record import Experiment, Outcome, write_json
from tailtrim.experiment.reflect import reflect
from tailtrim.experiment.validity import load_doubts, tap_doubts
from tailtrim.explain import explain
from tailtrim.explain.explanation import SCHEMA as EXPLANATION
from tailtrim.roundtrip.log import leave_runs
from tailtrim.rundir import DISTURBED, EVENTS, INTERRUPTS, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tailtrim.devices import InlineDevice
    from tailtrim.nodes.node import Node
    from tailtrim.plan import Run

#: What a client of round trips leaves.
_LOG = ("ping.json", "0.roundtrips")


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
            if isinstance(run.dut, Wire) or not several:
                raise
            outcome = Outcome(run.folder, run.label, run.floor, failed=f"not possible: {error}")
        experiment.add(outcome)
        ended(run, outcome)


def _conduct(experiment: Experiment, run: Run, told: Callable[[str], None]) -> Outcome:
    place = experiment.path / run.folder
    with _draft(place) as draft:
        told("setting up")
        if isinstance(run.dut, Reflector):
            outcome = _round_trips(experiment, run, run.dut, draft, told)
        else:
            outcome = _passing(experiment, run, run.dut, draft, told)
        _put(draft / "run", place)
    return outcome


def _passing(
    experiment: Experiment, run: Run, dut: InlineDevice, draft: Path, told: Callable[[str], None]
) -> Outcome:
    """Measure packets that pass the device, and leave the run as ``run`` in the draft."""
    plan, result = experiment.plan, draft / "run"
    with experiment.testbed.forwarding(draft, run.traffic.largest_frame) as at:
        measured = measure(at, dut, plan, run, told)
        generator, taps = measured.generator, measured.capture
        files = [Path(taps["taps"][name]["file"]).name for name in ("ingress", "egress")]
        captures = [_got(at.timestamper, name) for name in files]
        names = {*dut.leaves, DISTURBED, EVENTS, INTERRUPTS}
        left = {node.get(name) for node in (at.dut, at.loadgen) for name in names}
    told("analysing")
    analyze(*captures, trim_s=plan.trim_s, quantiles=experiment.quantiles, out=result)
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
    for path in (*left, *(captures if plan.keep_captures else ())):
        if path is not None:
            shutil.move(path, result / path.name)
    if measured.trace is not None:
        told("explaining")
        write_json(result / "explanation.json", _explained(result))
    return outcome


def _round_trips(
    experiment: Experiment, run: Run, reflector: Reflector, draft: Path, told: Callable[[str], None]
) -> Outcome:
    """Measure round trips to the reflector, and leave the run as ``run`` in the draft."""
    with experiment.testbed.reflection(draft, between=reflector.joined) as at:
        measured = reflect(at, reflector, experiment, run, told)
        for name in _LOG:
            _got(at.client, name)
    told("analysing")
    leave_runs(draft, draft / "run")
    outcome = Outcome(run.folder, run.label, run.floor, measured.doubts, left_out=measured.left_out)
    records = {
        "loop": run.model_dump(mode="json"),
        "generator": measured.client,
        "device": measured.reflector,
        "outcome": asdict(outcome),
    }
    _write_records(draft / "run", records)
    return outcome


def _got(node: Node, name: str) -> Path:
    path = node.get(name)
    if path is None:
        raise RunError(f"{node.role}: {name} is missing")
    return path


def _write_records(result: Path, records: dict[str, Any]) -> None:
    for name, value in records.items():
        if value is not None:
            write_json(result / f"{name}.json", value)


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


@contextmanager
def _draft(place: Path) -> Iterator[Path]:
    """Make a folder beside the place of a run, for as long as the context lasts."""
    draft = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        yield draft
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
