"""Counters of interrupts over time, as the papers' DuTs sampled them.

A table separated by semicolons: a column for each line of ``/proc/interrupts`` and CPU, such as
``LOC_Local_timer_interrupts_CPU2``, and ``timestamp_us``.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    import os

_COLUMN = re.compile(r"(?P<vector>[^_]+)_?(?P<what>.*?)_?CPU(?P<cpu>\d+)")
_TIME = "timestamp_us"


@dataclass(frozen=True, slots=True)
class InterruptRate:
    """Count and rate of an interrupt on a CPU: ``vector`` such as LOC or a number."""

    vector: str
    what: str
    cpu: int
    count: int
    frequency_hz: float


def read_interrupts(path: str | os.PathLike[str]) -> tuple[InterruptRate, ...]:
    """Read the rate of every interrupt that was counted at all, most frequent first.

    Raises:
        RunDirectoryError: when the file is missing or no such table.

    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            header, *rows = list(csv.reader(file, delimiter=";")) or [[]]
    except (OSError, UnicodeDecodeError, ValueError, csv.Error) as error:
        raise RunDirectoryError(f"{path}: the interrupts cannot be read: {error}") from error
    if _TIME not in header or len(rows) < 2:  # noqa: PLR2004 - a rate needs two readings
        message = f"{path}: expected columns separated by ';', one of them {_TIME}, and two rows"
        raise RunDirectoryError(message)
    time = header.index(_TIME)
    try:
        elapsed_s = (float(rows[-1][time]) - float(rows[0][time])) / 1e6
    except (ValueError, IndexError) as error:
        raise RunDirectoryError(f"{path}: invalid time in column {_TIME}: {error}") from error
    if elapsed_s <= 0:
        raise RunDirectoryError(f"{path}: column {_TIME} is not in increasing order")
    rates = []
    for index, name in enumerate(header):
        column = _COLUMN.fullmatch(name)
        count = _counted(rows, index)
        if column and count:
            what = column["what"].replace("_", " ")
            cpu = int(column["cpu"])
            rates.append(InterruptRate(column["vector"], what, cpu, count, count / elapsed_s))
    return tuple(sorted(rates, key=lambda rate: (-rate.frequency_hz, rate.vector, rate.cpu)))


def _counted(rows: list[list[str]], index: int) -> int:
    """Difference of the first and last count; cells are empty where the host had no number."""
    counts = [int(row[index]) for row in rows if index < len(row) and row[index].isdigit()]
    return max(counts[-1] - counts[0], 0) if counts else 0
