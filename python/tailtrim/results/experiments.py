"""Experiments that were run, to be read: :func:`recorded`, and their runs as one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunDirectoryError
from tailtrim.results import RunDirectory
from tailtrim.results.tabular import Tabular
from tailtrim.results.typed_json import parsed, typed

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa

    from tailtrim.results import Summary


SCHEMA = "tailtrim.experiment/1"
RECORD = "experiment.json"
#: Record of a search for changes, beside that of the experiment whose runs its trials are.
SEARCH = "trim.json"
AUDIT = "audit.json"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a run: why it is not to be trusted (``invalid``), or broke (``failed``).

    ``skipped`` says why this host cannot have the device or the factor that the run is about,
    ``left_out`` which of several factors it cannot have, ``untraced`` why a run that was to have a
    trace has only counters of interrupts, ``repeated`` why earlier attempts failed, in which a
    node died.
    """

    run: str
    label: str
    floor: bool
    invalid: tuple[str, ...] = ()
    failed: str | None = None
    skipped: str | None = None
    left_out: tuple[str, ...] = ()
    untraced: str | None = None
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run and its outcome; ``directory`` is ``None`` where it failed or was skipped.

    ``loop`` are the values of its loop variables; ``dut``, ``traffic`` and ``boot`` are the
    plan's settings of its device, its load and its boot.
    """

    outcome: Outcome
    directory: RunDirectory | None
    repetition: int = 0
    loop: dict[str, Any] = field(default_factory=dict)
    traffic: dict[str, Any] = field(default_factory=dict)
    traced: bool = False
    dut: dict[str, Any] = field(default_factory=dict)
    boot: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name that distinguishes it from the other runs."""
        told = self.outcome.label
        told += f" #{self.repetition + 1}" if self.repetition else ""
        told += " (floor)" if self.outcome.floor else ""
        return f"{told} (invalid)" if self.outcome.invalid else told

    @property
    def problem(self) -> str | None:
        """Why it is not to be trusted, or not there; ``None`` where all is well."""
        outcome = self.outcome
        if outcome.failed:
            return f"failed: {outcome.failed}"
        if outcome.skipped:
            return f"skipped: {outcome.skipped}"
        return f"invalid: {'; '.join(outcome.invalid)}" if outcome.invalid else None


def floor_of(run: RecordedRun, runs: Sequence[RecordedRun]) -> RecordedRun | None:
    """Return the floor of a run: the wire with the same traffic, if possible of its repetition."""
    same = [
        one
        for one in runs
        if one.outcome.floor and one.directory is not None and one.traffic == run.traffic
    ]
    if run.outcome.floor or not same:
        return None
    return min(same, key=lambda one: (bool(one.outcome.invalid), one.repetition != run.repetition))


class RecordedExperiment(Tabular):
    """Record of an experiment, complete or not.

    ``began`` is its start in UTC, as text, ``None`` in records of early versions; ``host`` has
    ``kernel``, ``machine``, ``cpus`` and others, of the host that ran it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the record.

        Raises:
            RunDirectoryError: the record is missing, or has another version.

        """
        self.path = Path(path)
        place = self.path / RECORD
        try:
            record = parsed(place.read_text(encoding="utf-8"))
            if record["schema"] != SCHEMA:
                found = record["schema"]
                raise RunDirectoryError(f"{place}: the schema is {found!r}, expected {SCHEMA!r}")
            #: The plan, as its experiment has it.
            self.plan: dict[str, Any] = dict(record["plan"])
            self.name = str(self.plan["name"])
            self.began: str | None = record.get("began")
            self.host: dict[str, Any] = dict(record["host"])
            #: Testbed of the plan: ``"local"``, or the nodes of a testbed file.
            self.testbed: Any = self.plan.get("testbed", "local")
            self.versions: dict[str, str] = dict(record["versions"])
            self.command: list[str] = list(record["command"])
            self.runs = tuple(_run(self.path, outcome_of(raw)) for raw in record["outcomes"])
        except OSError as error:
            raise RunDirectoryError(f"{place}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            message = f"{place}: not the record of an experiment ({error})"
            raise RunDirectoryError(message) from error

    def __repr__(self) -> str:
        """Name the place and the number of runs."""
        return f"<Experiment {str(self.path)!r} of {len(self.runs)} runs>"

    @property
    def complete(self) -> list[tuple[RecordedRun, RunDirectory]]:
        """The runs that have a result, in order."""
        return [(run, run.directory) for run in self.runs if run.directory is not None]

    @property
    def tables(self) -> tuple[str, ...]:
        """``runs``: a row for each run."""
        return ("runs",)

    def table(self, _: str) -> pa.Table:
        """Return the runs: the outcome of each, its loop variables, rate, loss and latencies."""
        return run_table(self.runs)


def outcome_of(raw: Any) -> Outcome:
    """Return the outcome of a run, as the record has it.

    Raises:
        KeyError, ValueError: that is no outcome.

    """
    return typed(Outcome, raw)


def is_experiment(path: Path) -> bool:
    """Whether there is the record of an experiment."""
    return (path / RECORD).is_file()


def is_search(path: Path) -> bool:
    """Whether there is the record of a search for changes."""
    return (path / SEARCH).is_file()


def recorded(path: Path) -> RecordedExperiment:
    """Read the record of an experiment, complete or not.

    Raises:
        RunDirectoryError: the record is missing, or has another version.

    """
    return RecordedExperiment(path)


def runs_of(path: Path) -> list[tuple[str, RunDirectory]]:
    """Return the complete runs of an experiment with their names, or the run at ``path``.

    Raises:
        RunDirectoryError: it is neither, or no run of the experiment is complete.

    """
    if not is_experiment(path):
        run = RunDirectory(path)
        return [(run.name, run)]
    found = [(run.name, directory) for run, directory in recorded(path).complete]
    if not found:
        raise RunDirectoryError(f"{path}: no run of the experiment is complete")
    return found


def _run(path: Path, outcome: Outcome) -> RecordedRun:
    place = path / outcome.run
    if outcome.failed or outcome.skipped or not (place / "summary.json").is_file():
        return RecordedRun(outcome, None)
    try:
        told = parsed((place / "loop.json").read_text(encoding="utf-8"))
        repetition = int(told["repetition"])
        loop, traffic, dut, boot = (
            dict(told.get(key) or {}) for key in ("loop", "traffic", "dut", "boot")
        )
        traced = bool(told.get("traced"))
    except (OSError, ArithmeticError, ValueError, KeyError, TypeError, AttributeError):
        return RecordedRun(outcome, RunDirectory(place))
    return RecordedRun(outcome, RunDirectory(place), repetition, loop, traffic, traced, dut, boot)


def run_table(runs: Sequence[RecordedRun]) -> pa.Table:
    """Return a row for each run.

    ``run``, ``name``, ``floor``, ``repetition``, ``problem`` (why it is not to be trusted or not
    there, null where all is well), ``loop_NAME`` for each loop variable, ``samples``, ``rate_pps``,
    ``loss``, ``min_ns``, ``mean_ns``, ``max_ns``, ``received_pps`` where packets were only counted,
    and for each quantile ``pX_ns`` with its interval ``pX_low_ns`` and ``pX_high_ns``. Values that
    a run does not have are null.
    """
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    rows = [_row(run) for run in runs]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pa.table({name: _of_one_type(values) for name, values in columns.items()})


def _row(run: RecordedRun) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": run.outcome.run,
        "name": run.name,
        "floor": run.outcome.floor,
        "repetition": run.repetition,
        "problem": run.problem,
    }
    row |= {f"loop_{name}": value for name, value in run.loop.items()}
    return row if run.directory is None else row | _numbers(run.directory.summary)


def _numbers(summary: Summary) -> dict[str, Any]:
    latency = summary.latency_ns
    row: dict[str, Any] = {
        "samples": summary.samples,
        "rate_pps": summary.rate_pps,
        "loss": summary.loss,
        "min_ns": latency.min,
        "mean_ns": latency.mean and latency.mean.value,
        "max_ns": latency.max,
    }
    if summary.throughput is not None:
        row["received_pps"] = summary.throughput.received_pps
    for one in latency.quantiles:
        name = f"p{(Decimal(one.p) * 100).normalize():f}"
        row |= {f"{name}_ns": one.value, f"{name}_low_ns": one.low, f"{name}_high_ns": one.high}
    return row


def _of_one_type(values: list[Any]) -> list[Any]:
    """Return values that Arrow can hold in a column: loop variables may be numbers and words."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds <= {int, float}:
        return values
    return [None if value is None else str(value) for value in values]
