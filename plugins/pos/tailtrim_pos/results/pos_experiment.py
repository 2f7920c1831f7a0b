"""Results of pos as an experiment: :func:`import_pos`."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tailtrim._native import VERSION
from tailtrim.analysis import analyze
from tailtrim.errors import OutputError, ResultsError, TailtrimError
from tailtrim.laboratory.experiment.record import write_json
from tailtrim.results.experiments import RECORD, SCHEMA, Outcome
from tailtrim_pos.results import csv_tables, distribution
from tailtrim_pos.results.pos_data import Captures, Logs, Tables, data_of, interrupts_of
from tailtrim_pos.results.pos_results import PosResults, PosRun, read, told_left_out
from tailtrim_pos.results.rates import offered, rates_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tailtrim.results.summary import Throughput
    from tailtrim_pos.results.pos_results import Upload

#: Names that published experiments give the variable that only counts repetitions.
REPETITIONS = ("repetition", "repeat")
_MISSING = "the results have no such run"
_NOTHING = "the run has no captures, histogram, percentiles or log of rates"


@dataclass(frozen=True, slots=True)
class Imported:
    """An experiment that was made of results, and notices for its reader."""

    path: Path
    outcomes: tuple[Outcome, ...]
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of an experiment: its folder, label, loop variables, repetition and data.

    ``rates`` are those of logs.
    """

    run: PosRun
    outcome: Outcome
    loop: dict[str, Any]
    repetition: int
    data: Captures | Tables | Logs | None
    rates: Throughput | None


def import_pos(  # noqa: PLR0913 - keyword-only options, each with a default
    results: Path,
    out: Path,
    *,
    skip_s: str | float = 1,
    repetition: str | None = None,
    keep_captures: bool = False,
    progress: Callable[[float | None], object] | None = None,
) -> Imported:
    """Make an experiment of a folder of pos results.

    Args:
        results: the folder, in the layout of 2020 or of 2026.
        out: where the experiment is to be; it must not exist, or be empty.
        skip_s: seconds after the first match whose samples do not count, of captures.
        repetition: the loop variable that counts repetitions; by default ``repetition`` or
            ``repeat`` if there is one.
        keep_captures: copy the captures into the run directories.
        progress: called with the share of the runs that is done.

    Raises:
        ResultsError: there are no results, or none of their runs has latencies or rates.
        OutputError: the experiment cannot be written.
        ValueError: an option makes no sense.

    """
    found = read(results)
    names = dict.fromkeys(name for run in found.runs for name in _flat(run.loop or {}))
    if repetition is not None and repetition not in names:
        known = ", ".join(names) or "none"
        raise ValueError(f"unknown loop variable {repetition!r}, expected one of {known}")
    counting = repetition or next((name for name in REPETITIONS if name in names), None)
    runs = _runs(found, counting)
    if all(run.data is None for run in runs):
        raise ResultsError(_nothing(results, runs))
    _make(out)
    load = offered([(run.loop, run.rates) for run in runs if run.rates is not None])
    outcomes = []
    for place, run in enumerate(runs):
        outcomes.append(_leave(run, out, load, skip_s=skip_s, keep_captures=keep_captures))
        if progress is not None:
            progress((place + 1) / len(runs))
    outcomes += [
        Outcome(_folder(number), _label(_without(loop, counting)), floor=False, failed=_MISSING)
        for number, loop in found.missing
    ]
    outcomes.sort(key=lambda one: (len(one.run), one.run))
    write_json(out / RECORD, _record(found, outcomes, counting))
    notices = [told_left_out(found.left_out)] if found.left_out else []
    return Imported(out, tuple(outcomes), tuple(notices))


def _runs(found: PosResults, counting: str | None) -> list[_Run]:
    values: dict[str, int] = {}
    runs = []
    for run in found.runs:
        loop = _flat(run.loop or {})
        which = 0
        if counting in loop:
            told = json.dumps(loop[counting])
            which = values.setdefault(told, len(values))
        without = _without(run.loop or {}, counting)
        data, rates, failed = None, None, None
        try:
            data = data_of(run)
            if isinstance(data, Logs):
                rates = rates_of([one.path for one in data.uploads])
        except ResultsError as error:
            data, failed = None, str(error)
        skipped = None if data is not None or failed else _NOTHING
        outcome = Outcome(
            _folder(run.number),
            _label(without) or found.name,
            floor=False,
            invalid=tuple(run.problems),
            failed=failed,
            skipped=skipped,
        )
        runs.append(_Run(run, outcome, without, which, data, rates))
    return runs


def _nothing(results: Path, runs: Sequence[_Run]) -> str:
    failed = next((run.outcome.failed for run in runs if run.outcome.failed), None)
    told = f"{results}: no run has latencies or rates"
    if failed is not None:
        return f"{told}: {failed}"
    expected = "captures such as latencies-pre_run0.pcap.zst and latencies-post_run0.pcap.zst"
    return f"{told}, expected {expected}, histogram or percentiles as CSV, or MoonGen's log"


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise OutputError(f"{out}: is not empty, so nothing is written to it")
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror}") from error


def _leave(
    run: _Run, out: Path, load: str | None, *, skip_s: str | float, keep_captures: bool
) -> Outcome:
    """Leave the run directory of a run; return what became of it."""
    place = out / run.outcome.run
    try:
        if isinstance(run.data, Captures):
            captures = run.data.ingress.path, run.data.egress.path
            analyze(*captures, skip_s=skip_s, out=place)
            kept = dict(interrupts_of(run.run))
            if keep_captures:
                kept |= {one.path.name: one for one in (run.data.ingress, run.data.egress)}
            _copy(kept, place)
        elif isinstance(run.data, Logs):
            inputs = [one.path for one in run.data.uploads]
            distribution.leave(place, None, None, inputs, throughput=run.rates)
        elif run.data is not None:
            _leave_tables(run.data, place)
        else:
            return run.outcome
    except OutputError:
        raise
    except TailtrimError as error:
        # An error of one run is recorded with the run; the other runs are still imported.
        raw = {**asdict(run.outcome), "failed": str(error)}
        return Outcome(**raw)
    traffic = {"rate_pps": run.loop[load]} if load is not None and run.rates is not None else {}
    told = {"loop": run.loop, "repetition": run.repetition, "traffic": traffic, "dut": {}}
    write_json(place / "loop.json", told)
    write_json(place / "outcome.json", asdict(run.outcome))
    return run.outcome


def _copy(kept: dict[str, Upload], place: Path) -> None:
    for name, upload in kept.items():
        try:
            shutil.copyfile(upload.path, place / name, follow_symlinks=False)
        except OSError as error:
            raise OutputError(f"{place / name}: cannot be written: {error.strerror}") from error


def _leave_tables(tables: Tables, place: Path) -> None:
    counted, shares = tables.histogram, tables.percentiles
    histogram = None if counted is None else csv_tables.histogram(counted.path)
    percentiles = None if shares is None else csv_tables.percentiles(shares.path)
    inputs = [one.path for one in (counted, shares) if one is not None]
    distribution.leave(place, histogram, percentiles, inputs)


def _record(found: PosResults, outcomes: Sequence[Outcome], counting: str | None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "plan": {"name": found.name},
        "imported": {
            "from": "pos",
            "layout": found.layout,
            "nodes": list(found.nodes),
            "repetition": counting,
            "left_out": list(found.left_out),
        },
        "order": [one.label for one in outcomes],
        "versions": {"tailtrim": VERSION, "python": platform.python_version()},
        "host": {},
        "environment": {},
        "command": sys.argv,
        "outcomes": [asdict(one) for one in outcomes],
    }


def _folder(number: int) -> str:
    return f"run-{number:03d}"


def _without(loop: dict[str, Any], counting: str | None) -> dict[str, Any]:
    return {name: value for name, value in _flat(loop).items() if name != counting}


def _label(loop: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in loop.items())


def _flat(loop: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return loop variables with values that a plan may have; lists and maps within as text."""
    flat: dict[str, Any] = {}
    for name, value in loop.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
        else:
            plain = isinstance(value, str | int | float)
            flat[f"{before}{name}"] = value if plain else json.dumps(value)
    return flat
