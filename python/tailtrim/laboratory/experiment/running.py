"""The runs of an experiment, one after the other."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
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
from tailtrim.laboratory.experiment import failed_runs, logs, packages, tap_clocks
from tailtrim.laboratory.experiment.booted import Booted, Way
from tailtrim.laboratory.experiment.by_minute import by_minute_of, stalled
from tailtrim.laboratory.experiment.generator_log import departures
from tailtrim.laboratory.experiment.guests import Guests
from tailtrim.laboratory.experiment.matching import TAPS, Matching, corrected, got
from tailtrim.laboratory.experiment.measure import measure
from tailtrim.laboratory.experiment.nodes_record import Where
from tailtrim.laboratory.experiment.persistent_devices import Devices
from tailtrim.laboratory.experiment.rebooted import RebootedHosts
from tailtrim.laboratory.experiment.record import Experiment, write_json
from tailtrim.laboratory.experiment.reflector_run import reflect
from tailtrim.laboratory.experiment.retry import attempted
from tailtrim.laboratory.experiment.unsupported_runs import lacking
from tailtrim.laboratory.experiment.validity import load_doubts, tap_doubts
from tailtrim.laboratory.nodes.ssh_testbed import HostsTestbed
from tailtrim.laboratory.plan import COUNTED, TRACED
from tailtrim.results import DEPARTURES, DISTURBED, EVENTS, INTERRUPTS, RunDirectory
from tailtrim.results.drafts import settle
from tailtrim.results.experiments import Outcome
from tailtrim.results.layout import WORST_EXPLAINED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tailtrim.laboratory.nodes.vm.image import Image
    from tailtrim.laboratory.plan import Boot, Run

#: The source of a trace without events.
_COUNTERS = "counters"
#: Files that the client of round trips writes.
_LOG = ("ping.json", "0.roundtrips")


def conduct(  # noqa: PLR0913 - each is named
    experiment: Experiment,
    told: Callable[[Run, str], None],
    ended: Callable[[Run, Outcome], None],
    images: dict[Boot, Image] | None = None,
    following: Callable[[], Run | None] = lambda: None,
    *,
    runs: Sequence[Run] | None = None,
    within: Booted | None = None,
) -> None:
    """Do the runs that are missing, and those that follow from them.

    A run that breaks is recorded and the next one begins. Runs with one of several devices, or
    values of a factor, that this host cannot have are skipped, before anything runs where that is
    clear beforehand. Other runs that the host cannot do end the experiment.

    Args:
        experiment: whose runs.
        told: is called with a run and what it is doing.
        ended: is called with a run and its outcome.
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
        booted = within or stack.enter_context(nodes_of(experiment, images or {}))
        devices = stack.enter_context(Devices(experiment, booted))
        _conduct_all(experiment, devices, (told, ended), following, runs)


@contextmanager
def nodes_of(experiment: Experiment, images: dict[Boot, Image]) -> Iterator[Booted]:
    """Have the nodes of an experiment, and its boots, for as long as the context lasts.

    Args:
        experiment: whose nodes.
        images: the images of the runs' boots; more may be added before a run needs them.

    Raises:
        HostError: this host cannot have them.

    """
    with experiment.testbed, Booted(experiment, _way(experiment, images)) as booted:
        yield booted


def _way(experiment: Experiment, images: dict[Boot, Image]) -> Way:
    """Return what boots where a plan has boots."""
    if isinstance(experiment.testbed, HostsTestbed):
        return RebootedHosts(experiment, experiment.testbed)
    return Guests(experiment, images)


def _conduct_all(
    experiment: Experiment,
    devices: Devices,
    reported: tuple[Callable[[Run, str], None], Callable[[Run, Outcome], None]],
    following: Callable[[], Run | None],
    runs: Sequence[Run] | None,
) -> None:
    told, ended = reported
    experiment.save()
    experiment.audit()
    missing = experiment.missing() if runs is None else list(runs)
    impossible = _lacking(experiment, missing, told)
    devices.booted.prepare()
    for run, error in impossible:
        _skip(experiment, run, error, ended)
    skipped = {run.number for run, _ in impossible}
    for run in _each(experiment, missing, following):
        if run.number in skipped:
            continue
        if experiment.testbed.gone is not None:
            _skip(experiment, run, HostError(experiment.testbed.gone), ended)
            continue
        try:
            once = partial(_conduct, experiment, run, devices, partial(told, run))
            outcome = attempted(experiment, run, once, partial(told, run))
        except (RunError, CaptureError) as error:
            failed = "; ".join([str(error), *getattr(error, "__notes__", ())])
            outcome = Outcome(run.folder, run.label, run.floor, failed=failed)
        except HostError as error:
            if not experiment.testbed.gone and not _may_be_skipped(experiment, run):
                raise
            _skip(experiment, run, error, ended)
            continue
        experiment.add(outcome)
        ended(run, outcome)


def _each(
    experiment: Experiment, missing: list[Run], following: Callable[[], Run | None]
) -> Iterator[Run]:
    """Yield the runs that are missing, then those that follow."""
    yield from missing
    while (run := following()) is not None:
        experiment.runs.append(run)
        yield run


def _lacking(
    experiment: Experiment, runs: list[Run], told: Callable[[Run, str], None]
) -> list[tuple[Run, HostError]]:
    """Return the runs whose device this host does not have, or whose frames it does not handle.

    Raises:
        HostError: then nothing is left to be measured.

    """
    host = experiment.testbed.host()
    found = []
    for run in runs:
        error = lacking(experiment.plan, run, host, experiment.testbed.lacks, partial(told, run))
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


def _skip(
    experiment: Experiment, run: Run, error: HostError, ended: Callable[[Run, Outcome], None]
) -> None:
    outcome = Outcome(run.folder, run.label, run.floor, skipped=str(error))
    experiment.add(outcome)
    ended(run, outcome)


def _conduct(
    experiment: Experiment,
    run: Run,
    devices: Devices,
    told: Callable[[str], None],
) -> Outcome:
    place = experiment.path / run.folder
    with _draft(place) as draft:
        told("setting up")
        try:
            if isinstance(run.dut, Reflector):
                devices.end()
                outcome = _round_trips(experiment, run, run.dut, draft, told)
            else:
                outcome = _passing(experiment, run, devices, draft, told)
        except BaseException as error:
            # Hours are worth keeping whatever ends them: a signal, a full disk.
            if isinstance(error, RunError | CaptureError) or failed_runs.has_minutes(draft):
                failed_runs.keep(draft, experiment.path, run.folder)
            raise
        logs.move(draft, draft / "run")
        _put(draft / "run", place)
        failed_runs.forget(experiment.path, run.folder)
    return outcome


def _passing(
    experiment: Experiment,
    run: Run,
    devices: Devices,
    draft: Path,
    told: Callable[[str], None],
) -> Outcome:
    """Measure packets that pass the device, and leave the run as ``run`` in the draft."""
    plan, dut, result = experiment.plan, run.dut, draft / "run"
    assert isinstance(dut, InlineDevice)  # noqa: S101 - of the others, see _conduct
    with (
        devices.wired(run, draft, told) as (at, kept, container),
        by_minute_of(plan, run, at, experiment.quantiles) as by_minute,
    ):
        where = devices.booted.where(run, at)
        changed = experiment.changes(where.environment)
        packages.keep(experiment.path, where.told)
        of_device = kept.of_run() if kept is not None else None
        measured = measure(at, dut, plan, run, told, running=kept, by_minute=by_minute)
        generator, taps = measured.generator, measured.capture
        names = {
            *(dut.leaves if kept is None else ()),
            *((EVENTS, INTERRUPTS) if run.traced and by_minute is None else ()),
        }
        names |= {DISTURBED} if dut.disturbance is not None else set()
        left = {node.get(name) for node in (at.dut, at.loadgen) for name in names}
        if by_minute is not None:
            matched = by_minute.fetch(taps, result)
            experiment.notices += stalled(run.folder, generator)
            # It is the summary.
            del taps["analysis"]
        else:
            departed = got(at.loadgen, DEPARTURES)
            left.add(departed)
            files = [Path(taps["taps"][tap]["file"]).name for tap in TAPS]
            ends = list(zip((at.tap_in.node, at.tap_out.node), files, strict=True))
            matching = Matching(
                *(at, ends, plan.skip_s, experiment.quantiles),
                departures(departed, taps, shares_cpu=measured.shares_cpu),
                keep=plan.keep_captures,
            )
            told("matching")
            matched = matching.match(result)
    left.add(draft / LOG if kept is not None and (draft / LOG).exists() else None)
    doubts = changed + load_doubts(plan.limits, generator, logged=not plan.by_minute)
    summary = RunDirectory(result).summary
    doubts += tap_doubts(taps, generator, summary) + measured.clocks.doubts(summary)
    untraced = _untraced(measured.trace)
    label = run.label if untraced is None else run.label.removesuffix(TRACED) + COUNTED
    doubts += [*measured.doubts, *devices.booted.doubts(run, where)]
    doubts += kept.doubts if kept is not None else ()
    outcome = Outcome(run.folder, label, run.floor, tuple(doubts), untraced=untraced)
    for number, tap in enumerate(TAPS):
        taps["taps"][tap]["file"] = matched["kept"][number] if matched["kept"] else None
    records = {
        "loop": run.model_dump(mode="json"),
        "generator": generator | {"shares_cpu": measured.shares_cpu},
        "capture": taps,
        "device": of_device or measured.device,
        "nodes": where.record(taps)
        | {"matching": matched, "correction": corrected(at)}
        | {"taps": tap_clocks.taps(at, where.ports, taps, result) | measured.clocks.record()}
        | container(measured.counted),
        "trace": measured.trace,
        "outcome": asdict(outcome),
    }
    _write_records(result, records)
    if measured.metered is not None:
        measured.metered.leave(result, generator)
    for path in left:
        if path is not None:
            shutil.move(path, result / path.name)
    if measured.trace is not None:
        told("explaining")
        write_json(result / "explanation.json", explained(result) | {"run": run.folder})
    if run.traced and by_minute is not None:
        told("explaining")
        write_json(result / WORST_EXPLAINED, _worst(result) | {"run": run.folder})
    return outcome


def _round_trips(
    experiment: Experiment, run: Run, reflector: Reflector, draft: Path, told: Callable[[str], None]
) -> Outcome:
    """Measure round trips to the reflector, and leave the run as ``run`` in the draft."""
    with experiment.testbed.reflection(draft, between=reflector.joined) as at:
        where = Where(at)
        changed = experiment.changes(where.environment)
        packages.keep(experiment.path, where.told)
        measured = reflect(at, reflector, experiment, run, told)
        for name in _LOG:
            got(at.client, name)
    told("analysing")
    leave_runs(draft, draft / "run")
    outcome = Outcome(
        *(run.folder, run.label, run.floor),
        invalid=(*changed, *measured.doubts),
        left_out=measured.left_out,
    )
    records = {
        "loop": run.model_dump(mode="json"),
        "generator": measured.client,
        "device": measured.reflector,
        "nodes": where.record(None),
        "outcome": asdict(outcome),
    }
    _write_records(draft / "run", records)
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


def _put(result: Path, place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)
    settle(result, place)


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


@contextmanager
def _draft(place: Path) -> Iterator[Path]:
    """Make a temporary folder next to that of a run, for as long as the context lasts."""
    draft = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        yield draft
    except OSError as error:
        raise OutputError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        # Minutes that could not be kept stay there, and --resume keeps them.
        if draft is not None and not failed_runs.has_minutes(draft):
            shutil.rmtree(draft, ignore_errors=True)
