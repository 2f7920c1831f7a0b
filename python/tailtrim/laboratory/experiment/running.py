"""The runs of an experiment, one after the other."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.analysis.explain import explain, worst_packets
from tailtrim.analysis.explain.explanation import SCHEMA as EXPLANATION
from tailtrim.analysis.explain.worst import SCHEMA as WORST_PACKETS
from tailtrim.analysis.roundtrip.log import leave_runs
from tailtrim.errors import CaptureError, HostError, OutputError, RunError, TailtrimError
from tailtrim.laboratory.devices import InlineDevice
from tailtrim.laboratory.devices.program import LOG
from tailtrim.laboratory.devices.reflector import Reflector
from tailtrim.laboratory.devices.wire import Wire
from tailtrim.laboratory.experiment import failed_runs, packages, tap_clocks
from tailtrim.laboratory.experiment.boots import Boots
from tailtrim.laboratory.experiment.by_minute import rescue_minutes, stalled
from tailtrim.laboratory.experiment.context import RunContext
from tailtrim.laboratory.experiment.guests import Guests
from tailtrim.laboratory.experiment.matching import TAPS, corrected, got, matching_of
from tailtrim.laboratory.experiment.measure import measure
from tailtrim.laboratory.experiment.nodes_record import NodesRecord
from tailtrim.laboratory.experiment.persistent_devices import PersistentDevices
from tailtrim.laboratory.experiment.plan_check import lacking
from tailtrim.laboratory.experiment.rebooted import RebootedHosts
from tailtrim.laboratory.experiment.record import Experiment, write_json
from tailtrim.laboratory.experiment.reflector_run import reflect
from tailtrim.laboratory.experiment.validity import load_doubts, tap_doubts
from tailtrim.laboratory.nodes.ssh_testbed import HostsTestbed
from tailtrim.laboratory.plan import COUNTED, TRACED
from tailtrim.results import DEPARTURES, DISTURBED, EVENTS, INTERRUPTS, RunDirectory
from tailtrim.results.drafts import settle
from tailtrim.results.experiments import Outcome
from tailtrim.results.layout import WORST_EXPLAINED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tailtrim.laboratory.experiment.context import InlineRunContext, Listener
    from tailtrim.laboratory.nodes.vm.image import Image
    from tailtrim.laboratory.plan import Boot, Run

#: The source of a trace without events.
_COUNTERS = "counters"
#: Files that the client of round trips writes.
_LOG = ("ping.json", "0.roundtrips")


def conduct(  # noqa: PLR0913 - each is named
    experiment: Experiment,
    listener: Listener,
    images: dict[Boot, Image] | None = None,
    following: Callable[[], Run | None] = lambda: None,
    *,
    runs: Sequence[Run] | None = None,
    within: Boots | None = None,
) -> None:
    """Do the runs that are missing, and those that follow from them.

    A run that breaks is recorded and the next one begins. Runs with one of several devices, or
    values of a factor, that this host cannot have are skipped, before anything runs where that is
    clear beforehand. Other runs that the host cannot do end the experiment.

    Args:
        experiment: whose runs.
        listener: hears what each run is doing, and its outcome.
        images: the images of the runs' boots, as :func:`.guests.images_for` makes them.
        following: returns one more run after the last, which nothing boots for; ``None`` at the
            end.
        runs: these runs of the experiment instead, whether they are there or not.
        within: nodes that stay afterwards, of :func:`nodes_of`; by default they end with the runs.

    Raises:
        HostError: this host cannot do it.
        OutputError: results cannot be written.

    """
    with ExitStack() as stack:
        boots = within or stack.enter_context(nodes_of(experiment, images or {}))
        devices = stack.enter_context(PersistentDevices(experiment, boots))
        experiment.save()
        experiment.audit()
        missing = experiment.missing() if runs is None else list(runs)
        impossible = _impossible_runs(experiment, missing, listener)
        boots.prepare()
        for run, error in impossible:
            _end(experiment, run, _outcome(run, skipped=str(error)), listener)
        skipped = {run.number for run, _ in impossible}
        for run in _each(experiment, missing, following):
            if run.number in skipped:
                continue
            if experiment.testbed.gone is not None:
                outcome = _outcome(run, skipped=experiment.testbed.gone)
                _end(experiment, run, outcome, listener)
                continue
            try:
                outcome = _attempt(experiment, run, devices, listener)
            except (RunError, CaptureError) as error:
                failed = "; ".join([str(error), *getattr(error, "__notes__", ())])
                outcome = _outcome(run, failed=failed)
            except HostError as error:
                if not experiment.testbed.gone and not _may_be_skipped(experiment, run):
                    raise
                outcome = _outcome(run, skipped=str(error))
            _end(experiment, run, outcome, listener)


@contextmanager
def nodes_of(experiment: Experiment, images: dict[Boot, Image]) -> Iterator[Boots]:
    """Have the nodes of an experiment, and its boots, for as long as the context lasts.

    Args:
        experiment: whose nodes.
        images: the images of the runs' boots; more may be added before a run needs them.

    Raises:
        HostError: this host cannot have them.

    """
    testbed = experiment.testbed
    with testbed:
        method = (
            RebootedHosts(experiment, testbed)
            if isinstance(testbed, HostsTestbed)
            else Guests(experiment, images)
        )
        with Boots(experiment, method) as boots:
            yield boots


def _end(experiment: Experiment, run: Run, outcome: Outcome, listener: Listener) -> None:
    experiment.add(outcome)
    listener.run_ended(run, outcome)


def _outcome(run: Run, **more: Any) -> Outcome:
    return Outcome(run=run.folder, label=run.label, floor=run.floor, **more)


def _each(
    experiment: Experiment, missing: list[Run], following: Callable[[], Run | None]
) -> Iterator[Run]:
    """Yield the runs that are missing, then those that follow."""
    yield from missing
    while (run := following()) is not None:
        experiment.runs.append(run)
        yield run


def _impossible_runs(
    experiment: Experiment, runs: list[Run], listener: Listener
) -> list[tuple[Run, HostError]]:
    """Return the runs whose device this host does not have, or whose frames it does not handle.

    Raises:
        HostError: then nothing is left to be measured.

    """
    testbed = experiment.testbed
    host = testbed.host()
    for by in {run.traffic.departures for run in runs} - {"software"}:
        testbed.require_departures(by)
    found = []
    for run in runs:
        error = lacking(experiment.plan, run, host, testbed.lacks, listener)
        if error is None:
            continue
        of_host = run.dut.too_large(run.traffic.largest_frame) is None
        if of_host and not _may_be_skipped(experiment, run):
            raise error
        found.append((run, error))
    without = {run.number for run, _ in found}
    if found and all(run.floor or run.number in without for run in experiment.runs):
        raise found[0][1]
    return found


def _may_be_skipped(experiment: Experiment, run: Run) -> bool:
    """Whether there are others that make sense without this run."""
    placed = {(other.dut.preset, node_of(other)) for other in experiment.runs if not other.floor}
    several = len(placed) > 1
    # If the wire cannot do it, no device can.
    floor = isinstance(run.dut, Wire) and node_of(run) == "bare"
    return run.varied is not None or (several and not floor)


def node_of(run: Run) -> str:
    """Return where the device of a run is."""
    return run.dut.node if isinstance(run.dut, InlineDevice) else "bare"


def _attempt(
    experiment: Experiment, run: Run, devices: PersistentDevices, listener: Listener
) -> Outcome:
    """Do a run, and again after each node that died and came back; its outcome has why.

    Raises:
        CaptureError, HostError, RunError: it broke, and no node came back.

    """
    repeated: list[str] = []
    while True:
        try:
            with _run_folder(experiment, run) as folder:
                context = RunContext(
                    experiment=experiment, run=run, folder=folder, listener=listener
                )
                context.progress("setting up")
                if isinstance(run.dut, Reflector):
                    devices.end()
                    outcome = _round_trips(context, run.dut)
                else:
                    outcome = _inline(context, devices)
        except (RunError, CaptureError, HostError) as error:
            revived = experiment.testbed.revive(lambda what: listener.progress(run, what))
            if revived is None:
                for before in repeated:
                    error.add_note(f"repeated before: {before}")
                raise
            repeated.append(f"{error}; {revived}")
        else:
            break
    if repeated:
        outcome = replace(outcome, repeated=tuple(repeated))
        write_json(experiment.path / run.folder / "outcome.json", asdict(outcome))
    return outcome


@contextmanager
def _run_folder(experiment: Experiment, run: Run) -> Iterator[Path]:
    """Make a temporary folder for a run; ``run`` in it takes the place of the run when it is done.

    Of a run that does not end, logs and minutes are kept.
    """
    place, draft = experiment.path / run.folder, None
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            yield draft
        except BaseException as error:
            # Hours are worth keeping whatever ends them: a signal, a full disk.
            if isinstance(error, RunError | CaptureError) or failed_runs.has_minutes(draft):
                failed_runs.keep(draft, experiment.path, run.folder)
            raise
        failed_runs.move_logs(draft, draft / "run")
        if place.exists():
            shutil.rmtree(place)
        settle(draft / "run", place)
        failed_runs.forget(experiment.path, run.folder)
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        # Minutes that could not be kept stay there, and --resume keeps them.
        if draft is not None and not failed_runs.has_minutes(draft):
            shutil.rmtree(draft, ignore_errors=True)


def _inline(context: RunContext, devices: PersistentDevices) -> Outcome:
    """Measure packets that pass the device, and leave the run as ``run`` in the folder."""
    experiment, run, result = context.experiment, context.run, context.folder / "run"
    with devices.wired(context) as wired, rescue_minutes(wired.by_minute):
        nodes = devices.boots.nodes(wired)
        changed = experiment.changes(nodes.environment)
        packages.keep(experiment.path, nodes.told)
        kept = devices.kept
        of_device = kept.of_run() if kept is not None else None
        measured = measure(wired)
        generator, taps = measured.generator, measured.capture
        left = _left_files(wired)
        if wired.by_minute is not None:
            matched = wired.by_minute.fetch(taps, result)
            experiment.notices += stalled(run.folder, generator)
            # It is the summary.
            del taps["analysis"]
        else:
            departed = got(wired.at.loadgen, DEPARTURES)
            left.add(departed)
            matching = matching_of(wired, measured, departed)
            context.progress("matching")
            matched = matching.match(result)
    if kept is not None and (context.folder / LOG).exists():
        left.add(context.folder / LOG)
    doubts = changed + load_doubts(
        context.plan.limits, generator, logged=not context.plan.by_minute
    )
    summary = RunDirectory(result).summary
    doubts += tap_doubts(taps, generator, summary) + measured.clocks.doubts(summary)
    doubts += [*measured.doubts, *devices.boots.doubts(run, nodes)]
    doubts += kept.doubts if kept is not None else ()
    untraced = _untraced(measured.trace)
    label = run.label if untraced is None else run.label.removesuffix(TRACED) + COUNTED
    outcome = replace(_outcome(run, invalid=tuple(doubts), untraced=untraced), label=label)
    for number, tap in enumerate(TAPS):
        taps["taps"][tap]["file"] = matched["kept"][number] if matched["kept"] else None
    records = {
        "loop": run.model_dump(mode="json"),
        "generator": generator | {"shares_cpu": measured.shares_cpu},
        "capture": taps,
        "device": of_device or measured.device,
        "nodes": nodes.record(taps)
        | {"matching": matched, "correction": corrected(wired.at)}
        | {"taps": tap_clocks.taps(wired.at, nodes.ports, taps, result) | measured.clocks.record()}
        | wired.container(measured.counted),
        "trace": measured.trace,
        "outcome": asdict(outcome),
    }
    _write_records(result, records)
    if measured.meters is not None:
        measured.meters.leave(result, generator)
    for path in left:
        shutil.move(path, result / path.name)
    if measured.trace is not None:
        context.progress("explaining")
        write_json(result / "explanation.json", explained(result) | {"run": run.folder})
    if run.traced and wired.by_minute is not None:
        context.progress("explaining")
        write_json(result / WORST_EXPLAINED, _worst(result) | {"run": run.folder})
    return outcome


def _left_files(wired: InlineRunContext) -> set[Path]:
    """Fetch the files that device and trace have left on their nodes."""
    names = {
        *(wired.dut.leaves if wired.device is None else ()),
        *((EVENTS, INTERRUPTS) if wired.run.traced and wired.by_minute is None else ()),
    }
    names |= {DISTURBED} if wired.dut.disturbance is not None else set()
    left = {node.get(name) for node in (wired.at.dut, wired.at.loadgen) for name in names}
    return {path for path in left if path is not None}


def _round_trips(context: RunContext, reflector: Reflector) -> Outcome:
    """Measure round trips to the reflector, and leave the run as ``run`` in the folder."""
    experiment, run, folder = context.experiment, context.run, context.folder
    with experiment.testbed.reflection(folder, between=reflector.joined) as at:
        nodes = NodesRecord(at)
        changed = experiment.changes(nodes.environment)
        packages.keep(experiment.path, nodes.told)
        measured = reflect(context, at, reflector)
        for name in _LOG:
            got(at.client, name)
    context.progress("analysing")
    leave_runs(folder, folder / "run")
    outcome = _outcome(run, invalid=(*changed, *measured.doubts), left_out=measured.left_out)
    records = {
        "loop": run.model_dump(mode="json"),
        "generator": measured.client,
        "device": measured.reflector,
        "nodes": nodes.record(None),
        "outcome": asdict(outcome),
    }
    _write_records(folder / "run", records)
    return outcome


def _write_records(result: Path, records: dict[str, Any]) -> None:
    for name, value in records.items():
        if value is not None:
            write_json(result / f"{name}.json", value)


def _untraced(trace: dict[str, Any] | None) -> str | None:
    """Return why a trace has only counters of interrupts, if so."""
    if trace is None or trace["trace"]["source"] != _COUNTERS:
        return None
    return "; ".join(trace["sources_refused"]) or "no source of events"


def explained(result: Path) -> dict[str, Any]:
    """Return why the late packets of a run with a trace were late, or why that is not known."""
    try:
        return explain(result).as_json()
    except ValueError as error:
        # Which CPU serves packets may be known to the user alone: tailtrim explain --cpu.
        return {"schema": EXPLANATION, "host": None, "problem": str(error)}


def _worst(result: Path) -> dict[str, Any]:
    """Return why the worst packets of a run of hours were late, or why that is not known."""
    try:
        return worst_packets(RunDirectory(result)).as_json()
    except (TailtrimError, ValueError) as error:
        # As above. Measurements of hours are kept whatever is wrong with this.
        return {"schema": WORST_PACKETS, "packets": [], "problem": str(error)}
