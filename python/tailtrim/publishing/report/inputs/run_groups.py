"""Groups of the runs of an experiment: sweeps of a loop variable, devices, floors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tailtrim.results.experiments import RecordedRun

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kMG]?)(pps|bit/s|bursts/s)")
_FACTORS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


@dataclass(frozen=True, slots=True)
class Variable:
    """A loop variable whose values are numbers: ``values`` are all, ascending."""

    name: str
    #: Label of the axis, and the unit of a value that is read off it.
    label: str
    unit: str
    values: tuple[float, ...]
    #: Length of one unit of the axis in the unit of the plan.
    scale: float = 1.0

    def of(self, run: RecordedRun) -> float | None:
        """Return the value that a run has, on the axis."""
        number = _number(run.loop.get(self.name))
        return None if number is None else number[0] / self.scale


def variables(runs: Sequence[RecordedRun]) -> list[Variable]:
    """Return the loop variables that have several values, all of them numbers; the load first."""
    names = dict.fromkeys(name for run in runs for name in run.loop)
    found = [one for name in names if (one := _variable(name, runs)) is not None]
    return sorted(found, key=lambda one: not one.label.startswith("Offered load"))


def _variable(name: str, runs: Sequence[RecordedRun]) -> Variable | None:
    having = [run for run in runs if name in run.loop]
    numbers = [_number(run.loop[name]) for run in having]
    known = [number for number in numbers if number is not None]
    units = {unit for _, unit in known}
    if len(known) < len(numbers) or len(units) > 1 or len({value for value, _ in known}) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    (unit,) = units
    values = tuple(sorted({value for value, _ in known}))
    packets = all(_offered_pps(run) == float(run.loop[name]) for run in having if not unit)
    if unit == "pps" or (packets and not unit):
        return Variable(name, "Offered load (kpkt/s)", "kpkt/s", _by(values, 1e3), 1e3)
    if unit == "bit/s":
        return Variable(name, "Offered load (Mbit/s)", "Mbit/s", _by(values, 1e6), 1e6)
    if unit:
        return Variable(name, f"Offered load ({unit})", unit, values)
    return Variable(name, name, "", values)


def _offered_pps(run: RecordedRun) -> float | None:
    """Return the packets per second of a run whose plan says them, in either way."""
    number = _number(run.traffic.get("rate_pps"))
    if number is not None:
        return number[0]
    number = _number(run.traffic.get("rate"))
    return number[0] if number and number[1] == "pps" else None


def _by(values: tuple[float, ...], scale: float) -> tuple[float, ...]:
    return tuple(value / scale for value in values)


def _number(value: Any) -> tuple[float, str] | None:
    """Read a number and its unit; ``None`` where a value is something else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    if isinstance(value, str) and (found := _RATE.fullmatch(value)):
        return float(found[1]) * _FACTORS[found[2]], found[3]
    return None


def series(run: RecordedRun, variable: Variable) -> Hashable:
    """Return the common key of runs that differ only in a loop variable, or in repetition."""
    others = sorted((name, str(value)) for name, value in run.loop.items() if name != variable.name)
    return run.outcome.floor, run.traced, tuple(others)


def series_name(run: RecordedRun, variable: Variable) -> str:
    """Return the name of a series: the run's label without the value of the variable."""
    told = f"{variable.name}={run.loop.get(variable.name)}"
    name = run.outcome.label
    for part in (f"{told}, ", f", {told}", f" {told}", told):
        if part in name:
            name = name.replace(part, "", 1)
            break
    return f"{name.strip()} (floor)" if run.outcome.floor else name.strip()
