"""The explanation of a run: :func:`explain`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailtrim import _native, units
from tailtrim.analysis.explain.interrupts import InterruptRate, read_interrupts
from tailtrim.analysis.explain.traced import Host, traced, traced_by
from tailtrim.analysis.options import probability
from tailtrim.analysis.result import Analysis
from tailtrim.errors import RunDirectoryError
from tailtrim.results import EVENTS, RunDirectory
from tailtrim.results.tabular import Tabular, of_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import pyarrow as pa

SCHEMA = "tailtrim.explanation/1"

# A counter is off by one interrupt at either end of a run, which is 1 % of a hundred: vectors that
# are rarer may not be named. CPUs that count a little more than the tick (251 Hz) still count it.
_SAME_RATE = 0.01


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval of 95 %."""

    value_ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class PeriodicCause:
    """A cause that recurs.

    ``error_hz`` is the error of the frequency (95 %). ``height_ns`` is the highest latency of a
    packet that it delayed, ``delay_ns`` that less the median; ``every`` 3 is what takes longer
    every third time; causes with the same ``source`` come from one clock. ``excess`` is how much
    longer the packets in its window take than others on average, ``width`` how long it delays
    packets, ``touched`` the share of all packets in its window. ``late_share`` is the share of the
    late packets that are in its rows, ``share`` that of the stalls; ``events`` are the stalls that
    it was found by. ``purity`` is the share of the occurrences that met a packet and delayed it
    until their end. ``aliases_hz`` are other frequencies that fit the packets as well. ``clock_hz``
    is the frequency of a clock of which it may be every n-th occurrence. ``wanders`` says that the
    clock is not stable, or that few occurrences delay packets. ``met`` and ``expected`` are the
    shares of its occurrences that delayed a packet, and that packets at random times would have
    met. ``vectors`` are interrupts of this rate.
    """

    frequency_hz: float
    error_hz: float
    height_ns: int
    events: int
    delay_ns: int
    period_ns: float
    every: int
    source: int
    share: float
    excess: Interval
    width: Interval
    touched: float
    late_share: float
    purity: float
    aliases_hz: tuple[float, ...]
    clock_hz: float | None
    wanders: bool
    occurrences: int
    met: float
    expected: float
    undersampled: bool
    beat_hz: float | None
    aliased: bool
    vectors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """Detection limit for a usual clock that was not found.

    A cause of this frequency that delays packets for longer than ``longer_than_ns`` would have been
    found at the share ``covered`` of its phases. None: packets meet too few phases.
    """

    frequency_hz: float
    longer_than_ns: int | None
    covered: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Something that delays every ``packets``-th packet by about ``delay_ns``."""

    packets: int
    events: int
    delay_ns: int
    frequency_hz: float


@dataclass(frozen=True, slots=True)
class PhaseDifference:
    """Two causes of one frequency, by their places: the second one comes ``apart_ns`` later.

    ``moved_ns`` is by how much that changes over the run, within the error of the frequencies.
    """

    causes: tuple[int, int]
    apart_ns: float
    moved_ns: float


@dataclass(frozen=True, slots=True)
class LateRow:
    """Late packets of one kind: their number, and the sum of their latency beyond the median.

    Each late packet is in one row. ``kind`` is ``cause`` (which prolonged their turns), ``behind``
    (they queue behind such packets), ``several`` (causes have more than half of their excess, but
    none alone) or ``not_periodic``. ``cause`` is a place among ``periodic`` and, behind these,
    ``batches``. ``stalls`` are those that began with one of the packets.
    """

    kind: str
    name: str
    cause: int | None
    packets: int
    stalls: int
    excess_ns: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """Sending schedule of the packets: their interval, and whether it is constant."""

    interval_ns: float
    constant: bool


@dataclass(frozen=True, slots=True)
class Explanation(Tabular):
    """Why the packets of a run were late; ``directory`` is that of the run."""

    run: str
    median_ns: int
    late_above_ns: int
    late_packets: int
    stalls: int
    searched_ns: int
    truncated: bool
    schedule: Schedule
    periodic: tuple[PeriodicCause, ...]
    batches: tuple[Batch, ...]
    rows: tuple[LateRow, ...]
    phase_differences: tuple[PhaseDifference, ...]
    limits: tuple[Limit, ...]
    interrupts: tuple[InterruptRate, ...]
    host: Host | None
    directory: RunDirectory = field(repr=False, compare=False)
    #: Packets that are not explained: they entered while the generator stood still.
    set_aside: int = 0

    def __repr__(self) -> str:
        """Name the run and the essential numbers."""
        return f"<Explanation of {self.run!r}: {self.late_packets} late packets>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the reader about the schedule and the basis of the explanation."""
        warnings = []
        undersampled = [
            cause
            for cause in self.periodic
            if cause.undersampled and self.schedule.constant and cause.every == 1
        ]
        if undersampled:
            beats = "; ".join(
                f"{cause.frequency_hz:.2f} Hz: {_beat(cause)}" for cause in undersampled
            )
            warnings.append(
                f"the packets, {units.time(self.schedule.interval_ns)} apart, undersample what"
                f" is shorter than that ({beats}); a Poisson schedule, or another rate, samples it"
                " evenly"
            )
        if self.set_aside:
            warnings.append(
                f"{self.set_aside:,} packets are not explained: they entered while the generator's"
                " CPU stood still in the middle of sending"
            )
        if self.truncated:
            searched_s = self.searched_ns / 1e9
            warnings.append(f"only the first {searched_s:.0f} s were searched for periodic causes")
        return tuple(warnings)

    @property
    def excess_ns(self) -> int:
        """Sum of the latency of all late packets beyond the median."""
        return sum(row.excess_ns for row in self.rows)

    @property
    def unexplained(self) -> int:
        """Stalls that began with a packet of no periodic cause."""
        return sum(row.stalls for row in self.rows if row.kind == "not_periodic")

    @property
    def tables(self) -> tuple[str, ...]:
        """``periodic``, ``rows``, ``batches``, ``limits``; before them with a trace ``causes``."""
        return (*(("causes",) if self.host else ()), "periodic", "rows", "batches", "limits")

    def table(self, name: str) -> pa.Table:
        """Return a table by its name: a row for each cause, kind of packets, batch or limit."""
        if name == "causes" and self.host is not None:
            return _causes(self.host)
        kinds = {"periodic": PeriodicCause, "rows": LateRow, "batches": Batch, "limits": Limit}
        return of_rows(kinds[name], getattr(self, name))

    @property
    def basis(self) -> str:
        """Basis of the explanation: ``trace``, or ``statistics`` without one."""
        return "statistics" if self.host is None else "trace"

    def as_json(self) -> dict[str, Any]:
        """Return the form that ``--json`` prints."""
        found = asdict(self)
        del found["directory"]
        return {
            "schema": SCHEMA,
            **found,
            "excess_ns": self.excess_ns,
            "unexplained": self.unexplained,
            "basis": self.basis,
            "warnings": list(self.warnings),
        }


#: Columns of the table of a trace's causes; the verdict has more fields.
_OF_CAUSE = ("kind", "name", "detail", "events", "late_packets", "excess_ns", "share_ppm")


def _causes(host: Host) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - takes longer to import than most commands run

    causes = host.verdict["causes"]
    return pa.table({name: [cause.get(name) for cause in causes] for name in _OF_CAUSE})


def _beat(cause: PeriodicCause) -> str:
    if cause.beat_hz is None:
        beat = "always the same phase"
    else:
        beat = f"all phases {cause.beat_hz:.3g} times per second"
    few = ", too seldom for this run to show all of them" if cause.aliased else ""
    return f"{beat}, and {100 * cause.met:.1f} % of its occurrences met a packet{few}"


def explain(
    run: RunDirectory | Analysis | str | os.PathLike[str],
    *,
    interrupts: Sequence[str | os.PathLike[str]] = (),
    cpu: int | None = None,
    late_from: str | float | None = None,
    trace: str | os.PathLike[str] | None = None,
) -> Explanation:
    """Explain the late packets of a run.

    Args:
        run: a run directory, or the result of the analysis that left it (``out``).
        interrupts: counters of interrupts during the run; their vectors are named where their rate
            is that of a periodic cause.
        cpu: the CPU that serves packets; needed where the trace covers several.
        late_from: packets from this quantile on are explained one by one, if there is a trace; by
            default 0.999.
        trace: a trace of the host that served the packets (``tailtrim trace --out``); by default
            that in the directory.

    Returns:
        Periodic causes, and the verdict of the trace where the directory has one.

    Raises:
        RunDirectoryError: the directory, its trace or the counters cannot be read, or they are of
            another time.
        ValueError: an option makes no sense.

    """
    quantile = _native.quantile(probability("0.999" if late_from is None else late_from))
    if isinstance(run, Analysis):
        if run.directory is None:
            raise ValueError("the analysis left no run directory, expected analyze(…, out=…)")
        run = run.directory
    directory = run if isinstance(run, RunDirectory) else RunDirectory(run)
    samples = directory.table("sample")
    if not samples.num_rows:
        raise RunDirectoryError(f"{directory.path}: no packet was matched, so none was late")
    if cpu is not None and trace is None and not (directory.path / EVENTS).exists():
        raise ValueError(f"{directory.path}: has no trace, so there is no CPU to choose")
    # First: a trace of another time is told before a search of seconds.
    if trace is None:
        host = traced(directory, cpu=cpu, late_from=quantile)
    else:
        host = traced_by(Path(trace), directory, cpu=cpu, late_from=quantile)
    if late_from is not None and host is None:
        raise ValueError(f"{directory.path}: has no trace, so packets are not explained one by one")
    rates = _rates(interrupts, samples) if interrupts else ()
    found = json.loads(_native.periodic_causes(samples))
    schedule = Schedule(found.pop("packet_interval_ns"), found.pop("constant_rate"))
    periodic = tuple(_cause(data, rates) for data in found.pop("causes"))
    batches = tuple(Batch(**data) for data in found.pop("batches"))
    apart = tuple(
        PhaseDifference(**data | {"causes": tuple(data["causes"])})
        for data in found.pop("phase_differences")
    )
    names = [*_names(periodic, apart), *(f"batch of {batch.packets} packets" for batch in batches)]
    return Explanation(
        run=directory.name,
        schedule=schedule,
        periodic=periodic,
        batches=batches,
        rows=tuple(LateRow(name=_named(data, names), **data) for data in found.pop("rows")),
        phase_differences=apart,
        limits=tuple(Limit(**data) for data in found.pop("limits")),
        interrupts=rates,
        host=host,
        directory=directory,
        set_aside=directory.summary.ingress.stalled,
        **found,
    )


def _rates(paths: Sequence[str | os.PathLike[str]], samples: pa.Table) -> tuple[InterruptRate, ...]:
    """Read counters of interrupts; those that have the clock of the packets must be of the run."""
    import pyarrow.compute as pc  # noqa: PLC0415 - takes longer to import than most commands run

    run_ns = pc.min(samples["ingress_ns"]).as_py(), pc.max(samples["egress_ns"]).as_py()
    return tuple(rate for path in paths for rate in read_interrupts(path, run_ns=run_ns))


def _cause(data: dict[str, Any], rates: Sequence[InterruptRate]) -> PeriodicCause:
    frequency_hz = data["frequency_hz"]
    named = dict.fromkeys(
        rate.vector for rate in rates if abs(rate.frequency_hz / frequency_hz - 1) <= _SAME_RATE
    )
    sampling = data.pop("sampling")
    del data["phase_ns"]
    data["excess"] = Interval(**data["excess"])
    data["width"] = Interval(**data["width"])
    data["aliases_hz"] = tuple(data["aliases_hz"])
    return PeriodicCause(**data, **sampling, vectors=tuple(named))


def _names(causes: Sequence[PeriodicCause], apart: Sequence[PhaseDifference]) -> list[str]:
    """Return the name of each cause: its frequency, and by how much it is later than another."""
    later = {one.causes[1]: units.time(one.apart_ns) for one in reversed(apart)}
    return [
        f"{'about ' if cause.wanders else ''}{cause.frequency_hz:.1f} Hz"
        + (f", {later[place]} later" if place in later else "")
        for place, cause in enumerate(causes)
    ]


def _named(row: dict[str, Any], names: Sequence[str]) -> str:
    """Return the name of a row."""
    of_cause = "" if row["cause"] is None else names[row["cause"]]
    return {
        "cause": of_cause,
        "behind": f"queueing behind {of_cause}",
        "several": "several of these",
        "not_periodic": "not periodic",
    }[row["kind"]]
