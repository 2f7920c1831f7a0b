"""Prediction of a search beside its result: values for figures, and sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tailtrim import units
from tailtrim.errors import RunDirectoryError
from tailtrim.laboratory.capacity.trial import Purpose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tailtrim.analysis.queueing import Estimate
    from tailtrim.laboratory.capacity.record import Capacity
    from tailtrim.laboratory.capacity.result import GoalResult

_BURST = "packets in a burst"
_PDR = "PDR"
#: Loads of at least this are shown in thousands, or millions.
_THOUSANDS = 10_000


@dataclass(frozen=True, slots=True)
class PredictedCurve:
    """Latency against load, in ns by quantile, from one run; ``r_max_pps`` is where it ends."""

    run: str
    rate_pps: float
    r_max_pps: Estimate
    points: tuple[tuple[float, Mapping[str, Estimate]], ...]

    @classmethod
    def of(cls, prediction: dict[str, Any] | None) -> PredictedCurve | None:
        """Read the prediction of a record; ``None`` where nothing was predicted.

        Raises:
            RunDirectoryError: it is damaged.

        """
        if prediction is None or "problem" in prediction:
            return None
        from tailtrim.analysis.queueing import Estimate  # noqa: PLC0415 - most pages have none

        try:
            points = tuple(
                (
                    float(point["rate_pps"]),
                    {
                        one["p"]: Estimate(one["value_ns"], one["low_ns"], one["high_ns"])
                        for one in point["quantiles"]
                    },
                )
                for point in prediction["points"]
            )
            r_max = _estimate(prediction["r_max_pps"])
            return cls(str(prediction["run"]), float(prediction["rate_pps"]), r_max, points)
        except (KeyError, TypeError, ValueError) as error:
            raise RunDirectoryError(f"capacity.json: not a prediction ({error})") from error


def per_packet(capacity: Capacity) -> float:
    """Return one packet a second in the unit of the loads."""
    packets = capacity.search.get("largest_pps")
    return capacity.search["largest"] / packets if packets else 1.0


def largest_burst(prediction: dict[str, Any] | None) -> float | None:
    """Return the largest burst that was predicted to keep the promise."""
    promise = (prediction or {}).get("promise")
    return promise["burst"]["value"] if promise is not None else None


class LoadUnit(NamedTuple):
    """Unit in which the loads of a search are told; ``scale`` is one of it in the search's unit."""

    name: str
    scale: float

    @classmethod
    def of(cls, capacity: Capacity) -> LoadUnit:
        """Return the unit that fits the largest load."""
        name, largest = capacity.search["unit"], capacity.search["largest"]
        if name == "packets/s" and largest >= _THOUSANDS:
            return cls("kpkt/s", 1e3)
        if name == "bit/s" and largest >= _THOUSANDS:
            return cls("Mbit/s", 1e6)
        return cls(name, 1.0)

    def text(self, load: float | None) -> str:
        """Return a load of the search as a number of this unit; a dash where it is not known."""
        return (
            units.NONE if load is None else f"{load / self.scale:,.{0 if self.scale == 1 else 1}f}"
        )


def sentences(capacity: Capacity) -> Iterator[str]:
    """Yield predictions beside results, and the device's own counters."""
    prediction = capacity.prediction
    if prediction is not None and "problem" in prediction:
        yield f"Not predicted: {prediction['problem']}."
    curve, of_burst = PredictedCurve.of(prediction), capacity.search["unit"] == _BURST
    if curve is not None:
        unit = LoadUnit.of(capacity)
        factor = per_packet(capacity) / unit.scale
        if of_burst:
            yield f"Predicted from {curve.run}, at {curve.rate_pps / 1e3:,.1f} kpkt/s."
        else:
            pdr = [one for one in capacity.goals if one.goal == _PDR]
            # One run does not say how much trials differ: its interval is not told here.
            value = f"{curve.r_max_pps.value * factor:,.1f}"
            yield (
                f"R_max: predicted {value} from {curve.run} at"
                f" {curve.rate_pps * factor:,.1f} {unit.name}, found {_found(pdr, unit)}"
                f" {unit.name} ({_PDR})."
            )
        yield from _promise(capacity, prediction or {}, unit, of_burst=of_burst)
    yield from _own(capacity)


def _promise(
    capacity: Capacity, prediction: dict[str, Any], unit: LoadUnit, *, of_burst: bool
) -> Iterator[str]:
    """Yield the prediction of the promise: the highest rate, or the largest burst."""
    if problem := prediction.get("promise_problem"):
        yield f"The promise is not predicted: {problem}."
    promise = prediction.get("promise")
    if promise is None:
        return
    named = [one for one in capacity.goals if one.goal not in {"NDR", _PDR}]
    most = promise["burst" if of_burst else "rate"]
    factor = 1.0 if of_burst else per_packet(capacity) / unit.scale
    value, low, high = (
        "none" if most[edge] is None else f"{most[edge] * factor:,.{0 if of_burst else 1}f}"
        for edge in ("value", "surely", "perhaps")
    )
    more = " or more" if most["beyond"] else ""
    yield (
        f"{promise['text']}: predicted up to {value}{more} ({low} to {high}), found"
        f" {_found(named, unit)} {unit.name}."
    )


def _own(capacity: Capacity) -> Iterator[str]:
    """Yield the device's own counters, in the trials from the highest lower bound on."""
    lowers = [one.lower.load for one in capacity.goals if one.lower is not None]
    uppers = [one.upper.load for one in capacity.goals if one.upper is not None]
    lowest = max(lowers, default=min(uppers, default=math.inf))
    counted = [
        seen.own_pps
        for trial, seen in capacity.trials
        if seen is not None
        and seen.own_pps
        and seen.invalid is None
        and trial.purpose is not Purpose.WARM_UP
        and trial.load >= lowest
    ]
    if counted:
        least, most = min(counted), max(counted)
        taken = [units.SECOND / pps for pps in (most, least)]
        style = units.Times.of([taken])
        yield (
            f"By its own count a packet took the device {style.span(*taken)}"
            f" in the trials there ({len(counted)}): it was able to forward {least / 1e3:,.1f} to"
            f" {most / 1e3:,.1f} kpkt/s."
        )


def _found(goals: Sequence[GoalResult], unit: LoadUnit) -> str:
    """Return the bounds of the first of the goals."""
    lower, upper = (goals[0].lower, goals[0].upper) if goals else (None, None)
    if lower is not None and upper is not None:
        return f"{unit.text(lower.load)} to {unit.text(upper.load)}"
    if lower is not None:
        return f"at least {unit.text(lower.load)}"
    return "nothing" if upper is None else f"less than {unit.text(upper.load)}"


def _estimate(data: dict[str, Any]) -> Estimate:
    from tailtrim.analysis.queueing import Estimate  # noqa: PLC0415 - most pages have none

    high = math.inf if data["high"] is None else float(data["high"])
    return Estimate(float(data["value"]), float(data["low"]), high)
