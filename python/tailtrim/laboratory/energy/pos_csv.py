"""The CSV files of pos_energy, written and read.

Nothing documents them; published ones (tumi8/GreenDIGIT-Environmental-Impact-Assessment-for-Testbed
-Experiments) have a row each second: ``timestamp,current_mA,voltage_V,power_active_W,
energy_counter_Wh``. The time is local and without separators, down to µs. The counter has its value
in the first row, and the energy added since then in all others. With several outlets, each quantity
has a column for each: ``current_mA_0,current_mA_1,voltage_V_0,…``.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from tailtrim.errors import OutputError, ResultsError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.laboratory.energy.series import Reading
    from tailtrim.laboratory.nodes.meters import Channel

_TIME = "timestamp"
_QUANTITIES = ("current_mA", "voltage_V", "power_active_W", "energy_counter_Wh")
_FORMAT = "%Y%m%d%H%M%S%f"
_J_PER_WH = 3_600.0


@dataclass(frozen=True, slots=True)
class Row:
    """A row: when, local time, and of each outlet current, voltage, power and energy so far.

    A value that a meter does not give is NaN. ``energy_wh`` counts from the first row on.
    """

    time: datetime
    current_ma: tuple[float, ...]
    voltage_v: tuple[float, ...]
    power_w: tuple[float, ...]
    energy_wh: tuple[float, ...]


def rows(channels: Sequence[Channel], readings: Sequence[Reading]) -> list[Row]:
    """Return the rows of what a meter said: of energy counters the power since the reading before.

    Channels that are parts of others are left out: evaluations add the outlets of a node up.
    """
    whole = [number for number, channel in enumerate(channels) if channel.whole]
    found: list[Row] = []
    before = readings[:1]
    for reading in readings:
        counted_s = reading.at_s - before[0].at_s if before else 0.0
        power: list[float] = []
        energy: list[float] = []
        for number in whole:
            value, last = reading.values[number], before[0].values[number]
            added_j = (value.energy_j or 0.0) - (last.energy_j or 0.0)
            if added_j < 0:
                added_j += channels[number].wraps_j or 0.0
            counted = added_j / counted_s if counted_s > 0 else math.nan
            power.append(counted if value.power_w is None else value.power_w)
            past = found[-1].energy_wh[len(energy)] if found else 0.0
            first = readings[0].values[number].energy_wh
            if value.energy_wh is not None and first is not None:
                energy.append(value.energy_wh - first)
            elif value.power_w is None:
                energy.append(past + added_j / _J_PER_WH)
            else:
                mean = (value.power_w + (last.power_w or 0.0)) / 2
                energy.append(past + mean * counted_s / _J_PER_WH)
        current = [_or_nan(reading.values[number].current_a) * 1e3 for number in whole]
        voltage = [_or_nan(reading.values[number].voltage_v) for number in whole]
        local = reading.time.astimezone()
        row = Row(
            time=local,
            current_ma=tuple(current),
            voltage_v=tuple(voltage),
            power_w=tuple(power),
            energy_wh=tuple(energy),
        )
        found.append(row)
        before = [reading]
    return found


def write(path: Path, channels: Sequence[Channel], readings: Sequence[Reading]) -> None:
    """Write what a meter said.

    Raises:
        OutputError: it cannot be written.

    """
    outlets = sum(channel.whole for channel in channels)
    told = rows(channels, readings)
    first = [
        _or_nan(value.energy_wh if value.energy_wh is not None else _counter_wh(value.energy_j))
        for value, channel in zip(readings[0].values if readings else (), channels, strict=False)
        if channel.whole
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(_header(outlets))
            for number, row in enumerate(told):
                energy = row.energy_wh if number else first
                values = (*row.current_ma, *row.voltage_v, *row.power_w, *energy)
                lines.writerow([row.time.strftime(_FORMAT), *map(_told, values)])
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def read(path: Path) -> list[Row]:
    """Read such a file, of pos or of :func:`write`.

    Raises:
        ResultsError: it cannot be read, or is not such a file; says where.

    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise ResultsError(f"{path}: cannot be read: {told}") from error
    header = lines[0] if lines else []
    outlets = (len(header) - 1) // len(_QUANTITIES)
    if outlets < 1 or header != _header(outlets):
        expected = ",".join(_header(1))
        raise ResultsError(f"{path}: line 1: expected {expected}, not {','.join(header)[:80]!r}")
    found: list[Row] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            time = datetime.strptime(line[0], _FORMAT).astimezone()
            values = [float(word) if word else math.nan for word in line[1:]]
            current, voltage, power, counter = (
                tuple(values[at * outlets :][:outlets]) for at in range(len(_QUANTITIES))
            )
            if len(line) != len(header):
                raise ValueError(f"{len(line)} values, expected {len(header)}")  # noqa: TRY301
        except (ValueError, IndexError) as error:
            raise ResultsError(f"{path}: line {number}: {error}") from error
        # The first row has the counter itself.
        energy = counter if found else (0.0,) * outlets
        row = Row(time=time, current_ma=current, voltage_v=voltage, power_w=power, energy_wh=energy)
        found.append(row)
    return found


def joules(found: Sequence[Row]) -> float:
    """Return the energy of all outlets, by trapezoids of their power: the counter is too coarse."""
    return sum(
        (after.time - before.time).total_seconds() * (sum(before.power_w) + sum(after.power_w)) / 2
        for before, after in pairwise(found)
    )


def _header(outlets: int) -> list[str]:
    if outlets == 1:
        return [_TIME, *_QUANTITIES]
    return [_TIME, *(f"{name}_{one}" for name in _QUANTITIES for one in range(outlets))]


def _counter_wh(energy_j: float | None) -> float | None:
    return None if energy_j is None else energy_j / _J_PER_WH


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _told(value: float) -> str:
    """Write a number with as many digits as it has; ``None`` becomes an empty field."""
    return "" if math.isnan(value) else f"{value:.6f}".rstrip("0").rstrip(".")
