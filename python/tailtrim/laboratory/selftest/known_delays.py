"""Error of the meter: it measures nothing (the wire), and delays that are known.

The reference forwarder keeps each packet for a known time and logs when it came and how long it
really was kept, from the kernel's stamp on arrival to the moment before it was sent. The path to
the device and from it takes time, too: as much as with the same device that keeps packets for no
time, which is measured in turns with it. That is the floor of a known delay. The expected value
is the delay in the device plus that floor; the rest of the measured value is the error.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.devices.forward import Forward
from tailtrim.laboratory.selftest.path_delay import PathDelays, path_delays

if TYPE_CHECKING:
    from tailtrim.laboratory.experiment import Experiment
    from tailtrim.laboratory.plan import Run
    from tailtrim.results import RunDirectory
    from tailtrim.results.experiments import Outcome

SCHEMA = "tailtrim.selftest/2"

#: The quantiles that are compared.
QUANTILES = ("0.5", "0.99", "0.999")
#: The device that keeps packets for no time.
NO_DELAY = "constant:0us"
#: The parts of the path, for people.
PARTS = {
    "to_device_ns": "from the first tap to the device's receive stamp",
    "from_device_ns": "from the device's send call to the second tap",
}

# A delay is recovered within 1 µs or 1 %.
_ABSOLUTE_NS = 1_000
_RELATIVE = 0.01
#: Of the order in which the floor is added to delays.
_SEED = 1


@dataclass(frozen=True, slots=True)
class MeasuredQuantile:
    """A quantile: its true and its measured value, and the difference."""

    p: str
    true: int
    measured: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Reason:
    """The part of the path that took another time than with the device that keeps packets for none.

    ``part`` is a key of :data:`PARTS`.
    """

    part: str
    ns: int
    floor_ns: int


@dataclass(frozen=True, slots=True)
class RecoveredQuantile:
    """A quantile of a known delay, of the round whose error is the median of all rounds.

    ``floor_ns`` is what the path of the device that keeps packets for no time adds to ``true``,
    ``error_ns`` what was ``measured`` beyond both. ``reason`` says why that is too much.
    """

    p: str
    true: int
    floor_ns: int
    measured: int
    error_ns: int
    bound_ns: int
    reason: Reason | None

    @property
    def recovered(self) -> bool:
        """Whether the error is within its bound."""
        return abs(self.error_ns) <= self.bound_ns


@dataclass(frozen=True, slots=True)
class DelayCheck:
    """A known delay: its quantiles, and whether all were recovered."""

    delay: str
    rounds: int
    packets: int
    truth: list[RecoveredQuantile]
    recovered: bool
    spoilt: list[str]


@dataclass(frozen=True, slots=True)
class Selftest:
    """The floors of the meter, and its error against each known delay.

    ``floor_ns`` is the wire's, ``device_ns`` that of the device which keeps packets for no time.
    """

    floor_ns: list[MeasuredQuantile]
    device_ns: list[MeasuredQuantile]
    spoilt: dict[str, list[str]]
    checks: list[DelayCheck]

    @property
    def recovered(self) -> bool:
        """Whether all known delays were recovered within their bounds."""
        return all(check.recovered for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return it as it is printed by ``--json``; ``truth`` is that of the best check."""
        best = min(self.checks, key=lambda check: max(abs(one.error_ns) for one in check.truth))
        return {
            "schema": SCHEMA,
            "floor_ns": [asdict(one) for one in self.floor_ns],
            "device_ns": [asdict(one) for one in self.device_ns],
            "truth": [asdict(one) for one in best.truth],
            "recovered": self.recovered,
            "checks": [asdict(check) for check in self.checks],
            "spoilt": self.spoilt,
        }


def evaluate(experiment: Experiment) -> Selftest:
    """Compare what the runs of a selftest measured with what was true.

    Raises:
        RunDirectoryError: a run is missing, or has no log of delays.

    """
    complete = experiment.complete()
    floors = [(outcome, result) for run, outcome, result in complete if run.dut.preset == "wire"]
    if not floors or len(complete) < len(experiment.runs):
        raise RunDirectoryError(f"{experiment.path}: not all runs of the selftest are complete")
    wire_outcome, wire = floors[0]
    rounds: dict[str, list[PathDelays]] = {}
    spoilt: dict[str, list[str]] = {"wire": list(wire_outcome.invalid)}
    for delay, outcome, result in sorted(_delayed(complete), key=lambda one: one[1].run):
        rounds.setdefault(delay, []).append(path_delays(result))
        spoilt.setdefault(delay, []).extend(outcome.invalid)
    floor = rounds.pop(NO_DELAY)
    checks = [check(delay, paths, floor, spoilt[delay]) for delay, paths in rounds.items()]
    return Selftest(_wire(wire), _device(floor), spoilt, checks)


def _delayed(
    complete: list[tuple[Run, Outcome, RunDirectory]],
) -> list[tuple[str, Outcome, RunDirectory]]:
    return [
        (run.dut.delay, outcome, result)
        for run, outcome, result in complete
        if isinstance(run.dut, Forward) and run.dut.delay is not None
    ]


def check(
    delay: str, paths: list[PathDelays], floors: list[PathDelays], spoilt: list[str]
) -> DelayCheck:
    """Compare the rounds of a known delay with those of none.

    Args:
        delay: its name.
        paths: a round each.
        floors: the same of the device that keeps packets for no time, in turns with them.
        spoilt: why rounds are not to be trusted.

    """
    rounds = list(zip(paths, floors, strict=True))
    truth = [_recovered(rounds, p) for p in QUANTILES]
    packets = sum(path.kept_ns.size for path in paths)
    recovered = all(one.recovered for one in truth)
    return DelayCheck(delay, len(rounds), packets, truth, recovered, spoilt)


def _recovered(rounds: list[tuple[PathDelays, PathDelays]], p: str) -> RecoveredQuantile:
    every = sorted((_of_round(*one, p) for one in rounds), key=lambda one: one.error_ns)
    return every[len(every) // 2]


def _of_round(path: PathDelays, floor: PathDelays, p: str) -> RecoveredQuantile:
    true, measured = quantile(path.kept_ns, p), quantile(path.latency_ns, p)
    # A long delay and a long path meet by chance only.
    random = np.random.default_rng(_SEED)
    expected = quantile(path.kept_ns + random.choice(floor.added_ns, path.kept_ns.size), p)
    error_ns = measured - expected
    bound_ns = max(_ABSOLUTE_NS, int(true * _RELATIVE))
    reason = _reason(path, floor, p, error_ns) if abs(error_ns) > bound_ns else None
    return RecoveredQuantile(p, true, expected - true, measured, error_ns, bound_ns, reason)


def _reason(path: PathDelays, floor: PathDelays, p: str, error_ns: int) -> Reason:
    """Return the part of the path that differs most in the direction of the error."""
    sign = 1 if error_ns > 0 else -1
    parts = [
        Reason(part, quantile(getattr(path, part), p), quantile(getattr(floor, part), p))
        for part in PARTS
    ]
    return max(parts, key=lambda part: sign * (part.ns - part.floor_ns))


def _wire(result: RunDirectory) -> list[MeasuredQuantile]:
    values = {q.p: q.value for q in result.summary.latency_ns.quantiles}
    found = [(p, values.get(p)) for p in QUANTILES]
    missing = [p for p, value in found if value is None]
    if missing:
        raise RunDirectoryError(f"{result.path}: too few packets for quantile {missing[0]}")
    return [MeasuredQuantile(p, 0, value, value) for p, value in found if value is not None]


def _device(floors: list[PathDelays]) -> list[MeasuredQuantile]:
    """Return what is measured of the device that keeps packets for no time, all rounds together."""
    kept = np.concatenate([path.kept_ns for path in floors])
    latency = np.concatenate([path.latency_ns for path in floors])
    every = [(p, quantile(kept, p), quantile(latency, p)) for p in QUANTILES]
    return [MeasuredQuantile(p, true, value, value - true) for p, true, value in every]


def quantile(values: np.ndarray[Any, np.dtype[np.int64]], p: str) -> int:
    """Return the quantile by nearest rank.

    >>> quantile(np.arange(100, 0, -1), "0.99")
    99

    """
    rank = ceil(Fraction(p) * values.size)
    return int(np.partition(values, max(rank, 1) - 1)[max(rank, 1) - 1])
