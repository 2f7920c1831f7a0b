"""Predicted latency and highest rate of a device under other loads: :func:`predicted`."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.analysis.queueing.estimate import Estimate, highest_rate
from tailtrim.analysis.queueing.model import QueueModel, queue_model
from tailtrim.analysis.queueing.promise import Promise, promised
from tailtrim.analysis.queueing.replay import Change, Load, band, replay, widening
from tailtrim.analysis.slo.bad_packets import clusters_of
from tailtrim.errors import NotPredictedError
from tailtrim.results import RunDirectory
from tailtrim.results.tabular import Tabular, of_rows
from tailtrim.units import percent

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from tailtrim.analysis.queueing.fifo import Floats

SCHEMA = "tailtrim.prediction/1"
QUANTILES = ("0.5", "0.9", "0.99", "0.999", "0.9999", "0.99999")
# The rates that are predicted unless others are asked for, as parts of R_max.
_PARTS = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95)
#: A quantile is told where it is exceeded in so many episodes of a replay. Fewer are those of a few
#: stalls, of which a run shows too few to say how long others would be.
EPISODES = 20
#: Predictions of the published captures are off by up to a tenth (docs/predict.md). By a quarter, a
#: model is wrong: the device does something that it has no part for.
_MISS = 1.25
FITS, NEAR, OVERLOAD = "fits", "may overload", "overload"


@dataclass(frozen=True, slots=True)
class Stolen:
    """Time that a cause takes of each second, in µs."""

    cause: str
    us_per_s: Estimate


@dataclass(frozen=True, slots=True)
class PredictedQuantile:
    """A quantile of latency in ns, and its band of 95 % (``docs/predict.md`` says how it holds)."""

    p: str
    value_ns: float
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Point:
    """A load and what it makes of latency; ``state`` compares the rate with R_max."""

    rate_pps: float
    burst: int
    state: str
    quantiles: tuple[PredictedQuantile, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """Latency at a position in a burst, from 1: its median and its 99th percentile."""

    rate_pps: float
    burst: int
    position: int
    p50: PredictedQuantile
    p99: PredictedQuantile


@dataclass(frozen=True, slots=True)
class Compared:
    """A quantile that was measured at a rate, and what was predicted for it."""

    run: str
    rate_pps: float
    loss: float | None
    p: str
    measured_ns: int
    measured_low_ns: int | None
    measured_high_ns: int | None
    predicted: PredictedQuantile | None

    @property
    def misses(self) -> bool:
        """Whether band and interval are farther apart than a model may be wrong."""
        if self.predicted is None:
            return False
        low_ns = self.measured_low_ns or self.measured_ns
        high_ns = self.measured_high_ns or max(self.measured_ns, low_ns)
        return low_ns > _MISS * self.predicted.high_ns or _MISS * high_ns < self.predicted.low_ns


@dataclass(frozen=True, slots=True)
class Prediction(Tabular):
    """The prediction of a device; see the fields of :class:`QueueModel`.

    ``r_max_pps`` and ``points`` are with the changes that were asked for. ``batch_least`` says that
    the run's bursts have no more packets than its batches: these could be larger.
    """

    run: str
    basis: str
    traced: bool
    rate_pps: float
    t_cpu_ns: Estimate
    transport_ns: float
    stolen: tuple[Stolen, ...]
    stolen_us_per_s: Estimate
    r_max_pps: Estimate
    batch: int
    batch_least: bool
    burst: int
    changes: tuple[str, ...]
    points: tuple[Point, ...]
    positions: tuple[Position, ...]
    compared: tuple[Compared, ...]
    promise: Promise | None
    warnings: tuple[str, ...]
    device: QueueModel = field(repr=False, compare=False)

    @property
    def tables(self) -> tuple[str, ...]:
        """``points``, ``stolen``, ``positions`` and ``compared``."""
        return ("points", "stolen", "positions", "compared")

    def table(self, name: str) -> pa.Table:
        """Return a table by its name: a row for each load, cause, position or measured quantile."""
        kind = {"points": Point, "stolen": Stolen, "positions": Position, "compared": Compared}
        return of_rows(kind[name], getattr(self, name))

    @property
    def found_pps(self) -> tuple[float | None, float | None]:
        """The measured rates between which a loss of 0.5 % began."""
        rates = {(one.rate_pps, one.loss) for one in self.compared if one.loss is not None}
        over = [rate for rate, loss in rates if loss >= _LOST]
        under = [rate for rate, loss in rates if loss < _LOST and rate < min(over, default=np.inf)]
        return max(under, default=None), min(over, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return the form that ``--json`` prints: an upper bound that R_max lacks is ``null``."""
        shown = replace(self, device=None)  # type: ignore[arg-type]
        found = asdict(shown)
        del found["device"]
        if math.isinf(self.r_max_pps.high):
            found["r_max_pps"]["high"] = None
        return {"schema": SCHEMA, **found, "found_pps": self.found_pps}


# The loss ratio of a partial drop rate in FD.io CSIT's reports.
_LOST = 0.005


def predicted(  # noqa: PLR0913 - keyword-only options
    run: RunDirectory | str | os.PathLike[str],
    *,
    floor: RunDirectory | str | os.PathLike[str] | None = None,
    spare: RunDirectory | None = None,
    others: Sequence[RunDirectory] = (),
    rates_pps: Sequence[float] = (),
    burst: int | None = None,
    without: Sequence[str] = (),
    faster: float = 0.0,
    batch: int | None = None,
    promise: str | None = None,
    cpu: int | None = None,
) -> Prediction:
    """Predict the highest rate of a device, and its latency at other rates and in bursts.

    Args:
        run: a run with a trace, or one whose packets queue, or any with a floor.
        floor: a run of a forwarder that does nothing, on the same path.
        spare: a floor that is used only where too few packets queue.
        others: runs of the same device at other rates, to compare the prediction with.
        rates_pps: packets a second; by default some up to R_max.
        burst: so many packets come back to back; by default they come as in the run.
        without: causes that are taken away, by a part of their names; ``tick`` is the kernel's.
        faster: by which share the CPU is faster, such as 0.2.
        batch: packets that the device takes at once, at most.
        promise: such as ``p99.9 < 200us``; the highest rate and the largest burst that hold it.
        cpu: the CPU that serves packets, where the trace covers several.

    Raises:
        RunDirectoryError: a run cannot be read, or does not say what a packet takes.
        NotPredictedError: the prediction misses what was measured.
        ValueError: an option makes no sense.

    """
    directory = run if isinstance(run, RunDirectory) else RunDirectory(run)
    least = floor if isinstance(floor, RunDirectory) or floor is None else RunDirectory(floor)
    _check(faster, rates_pps, burst=burst, batch=batch)
    whole = queue_model(directory, floor=least, spare=spare, cpu=cpu)
    device = whole.without(tuple(without))
    change = Change(1 / (1 + faster), batch)
    r_max = highest_rate(device.stolen_ns_per_s, device.t_cpu_ns.scaled(change.scale))
    _require_fit(whole, directory)
    compared = tuple(
        row for other in others for row in _compared(device, other, burst, change, r_max)
    )
    changes = _changes(without, faster, batch)
    if not changes and burst is None:
        _require_hits(one for one in compared if _state(one.rate_pps, r_max) == FITS)
    loads = [Load(rate, burst) for rate in _rates(device, r_max, rates_pps)]
    points, positions = _points(device, loads, change, r_max, rates_pps)
    held = None
    if promise is not None:
        held = promised(device, promise, change, most_pps=r_max, burst=burst)
    stolen = tuple(Stolen(one.name, one.ns_per_s.scaled(1e-3)) for one in device.causes)
    return Prediction(
        run=directory.name,
        basis=device.basis,
        traced=device.traced,
        rate_pps=device.packets.rate_pps,
        t_cpu_ns=device.t_cpu_ns.scaled(change.scale),
        transport_ns=device.transport_ns,
        stolen=stolen,
        stolen_us_per_s=device.stolen_ns_per_s.scaled(1e-3),
        r_max_pps=r_max,
        batch=change.batch or device.packets.batch,
        batch_least=change.batch is None and 1 < device.packets.batch >= device.packets.bursts[0],
        burst=burst or device.packets.bursts[0],
        changes=changes,
        points=points,
        positions=positions,
        compared=compared,
        promise=held,
        warnings=device.warnings,
        device=device,
    )


def _check(faster: float, rates_pps: Sequence[float], **packets: int | None) -> None:
    if faster <= -1:
        raise ValueError(f"faster {faster:g}: expected more than -1, such as 0.2")
    for name, number in packets.items():
        if number is not None and number < 1:
            raise ValueError(f"{name} {number}: expected 1 or more")
    if any(rate <= 0 for rate in rates_pps):
        raise ValueError("rates: expected more than 0 packets a second")


def _require_fit(device: QueueModel, run: RunDirectory) -> None:
    """Refuse a model that does not predict the very run that it was made from.

    Raises:
        NotPredictedError: it does not.

    """
    r_max = highest_rate(device.stolen_ns_per_s, device.t_cpu_ns)
    _require_hits(_compared(device, run, None, Change(1.0, None), r_max))


def _require_hits(rows: Iterable[Compared]) -> None:
    missed = [row for row in rows if row.misses]
    if not missed:
        return
    row = missed[0]
    error = NotPredictedError(
        f"{row.run}: not predicted, since the model misses what was measured at"
        f" {row.rate_pps / 1e3:,.1f} kpkt/s: {_missed(row)}"
    )
    for other in missed[1:]:
        error.add_note(f"{other.run} at {other.rate_pps / 1e3:,.1f} kpkt/s: {_missed(other)}")
    raise error


def _missed(row: Compared) -> str:
    low_ns, high_ns = row.measured_low_ns, row.measured_high_ns
    spans = [(row.predicted.low_ns, row.predicted.high_ns)] if row.predicted else []
    spans.append((low_ns or row.measured_ns, high_ns or row.measured_ns))
    told = [f"{low / 1e3:,.1f} to {high / 1e3:,.1f} µs" for low, high in spans]
    return f"p{percent(row.p)} predicted {', measured '.join(told)}"


def _rates(device: QueueModel, r_max: Estimate, asked: Sequence[float]) -> list[float]:
    """Return the rates that are asked for, or the run's own and parts of R_max."""
    if asked:
        return sorted(set(asked))
    own = min(device.packets.rate_pps, r_max.value)
    return sorted({own, *(float(f"{part * r_max.value:.3g}") for part in _PARTS)})


def _changes(without: Sequence[str], faster: float, batch: int | None) -> tuple[str, ...]:
    told = [f"without {name}" for name in without]
    if faster:
        told.append(f"on a CPU {100 * abs(faster):g} % {'faster' if faster > 0 else 'slower'}")
    if batch is not None:
        told.append(f"batches of up to {batch}")
    return tuple(told)


def _points(
    device: QueueModel, loads: list[Load], change: Change, r_max: Estimate, asked: Sequence[float]
) -> tuple[tuple[Point, ...], tuple[Position, ...]]:
    points: list[Point] = []
    positions: list[Position] = []
    for load in loads:
        burst = load.burst or device.packets.bursts[0]
        state = _state(load.rate_pps, r_max)
        if state == OVERLOAD:
            points.append(Point(load.rate_pps, burst, state, ()))
            continue
        found = list(replay(device, load, change))
        wider = widening(device, load.rate_pps)
        told = tuple(_quantiles(found, QUANTILES, wider))
        points.append(Point(load.rate_pps, burst, state, told))
        if burst > 1 and (load.rate_pps in asked or load.rate_pps == device.packets.rate_pps):
            positions.extend(_positions(found, load, burst, wider))
    return tuple(points), tuple(positions)


def _state(rate_pps: float, r_max: Estimate) -> str:
    if rate_pps >= r_max.high:
        return OVERLOAD
    return NEAR if rate_pps >= r_max.low else FITS


def _quantiles(
    replayed: list[Floats], asked: Sequence[str], wider: float
) -> list[PredictedQuantile]:
    """Return the quantiles of latencies in order of arrival that the replays support."""
    ordered = [np.sort(one) for one in replayed]
    told = []
    for p in asked:
        values = [float(one[max(math.ceil(one.size * float(p)), 1) - 1]) for one in ordered]
        if _episodes(p, replayed, values) < EPISODES:
            break
        told.append(PredictedQuantile(p, *band(values, wider)))
    return told


def _episodes(p: str, replayed: list[Floats], values: list[float]) -> float:
    """Return in how many episodes packets reach a quantile, in the median replay.

    In a busy period, latencies go above the quantile and below it many times: these are one
    episode. A quantile that half as many packets again reach as have to is the latency of many: it
    is known.
    """
    late = [one >= value for one, value in zip(replayed, values, strict=True)]
    if np.median([one.mean() for one in late]) > 1.5 * (1 - float(p)):
        return math.inf
    return float(np.median([clusters_of(np.flatnonzero(one), one.size).size for one in late]))


def _positions(replayed: list[Floats], load: Load, burst: int, wider: float) -> list[Position]:
    """Return latency by position in the burst, where there are bursts enough for each."""
    found = []
    for place in range(burst):
        told = _quantiles([one[place::burst] for one in replayed], ("0.5", "0.99"), wider)
        if len(told) == 2:  # noqa: PLR2004 - both are supported
            found.append(Position(load.rate_pps, burst, place + 1, *told))
    return found


def _compared(
    device: QueueModel, other: RunDirectory, burst: int | None, change: Change, r_max: Estimate
) -> list[Compared]:
    summary = other.summary
    rate_pps = summary.rate_pps
    if rate_pps is None:
        return []
    told: dict[str, PredictedQuantile] = {}
    if _state(rate_pps, r_max) != OVERLOAD:
        replayed = list(replay(device, Load(rate_pps, burst), change))
        wider = widening(device, rate_pps)
        told = {one.p: one for one in _quantiles(replayed, QUANTILES, wider)}
    return [
        Compared(
            other.name,
            rate_pps,
            summary.loss,
            quantile.p,
            quantile.value,
            quantile.low,
            quantile.high,
            told.get(quantile.p),
        )
        for quantile in summary.latency_ns.quantiles
        if quantile.p in QUANTILES and quantile.value is not None and quantile.supported
    ]
