"""Ticks of an axis: where they are, and what stands there."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tailtrim.units import percent

if TYPE_CHECKING:
    from tailtrim.publishing.report.figures.figure import Axis

# A decade or two have room for labels at 1, 2 and 5.
_FEW_DECADES = 2.6
#: Stretches between the ticks of a linear axis at most.
_MOST = 8


class Ticks(NamedTuple):
    """Values with a label, and those without one."""

    major: list[tuple[float, str]]
    minor: list[float]


def ticks_of(axis: Axis) -> Ticks:
    """Return the ticks of an axis, ascending."""
    if axis.names:
        return Ticks([(float(lane), name) for lane, name in enumerate(axis.names)], [])
    if axis.scale == "linear":
        return Ticks([(value, number(value)) for value in _linear(axis.low, axis.high)], [])
    decades = math.log10(axis.high / axis.low)
    if axis.scale == "nines":
        major = [(10.0**n, nines(10.0**n)) for n in range(int(decades) + 1)]
    else:
        steps = (1, 2, 5) if decades < _FEW_DECADES else (1,)
        major = [(value, number(value)) for value in _logarithmic(axis, steps)]
    labelled = {value for value, _ in major}
    return Ticks(major, [v for v in _logarithmic(axis, range(1, 10)) if v not in labelled])


def _linear(low: float, high: float) -> list[float]:
    least = (high - low) / _MOST
    power = 10.0 ** math.floor(math.log10(least))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
    # Rounded, so that three steps of 0.1 are 0.3.
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(-math.floor(math.log10(step)), 0)
    return [round(n * step, digits) + 0.0 for n in range(first, last + 1)]


def _logarithmic(axis: Axis, steps: range | tuple[int, ...]) -> list[float]:
    first, last = math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high))
    values = (float(f"{step}e{power}") for power in range(first, last + 1) for step in steps)
    return [value for value in values if axis.low * (1 - 1e-9) <= value <= axis.high]


def number(value: float) -> str:
    """Return a tick's number, thousands apart."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"  # noqa: PLR2004
    return text.replace("-", "\N{MINUS SIGN}")


def nines(value: float) -> str:
    """Return the percentile at ``1/(1 - p)``, which is a power of ten.

    >>> nines(1000.0)
    '99.9 %'

    """
    digits = round(np.log10(value))
    return f"{percent('0.' + '9' * digits) if digits else '0'} %"
