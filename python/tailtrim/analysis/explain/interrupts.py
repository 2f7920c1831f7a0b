"""Counters of interrupts over time, as the papers' DuTs sampled them.

A table separated by semicolons: a column for each line of ``/proc/interrupts`` and CPU, such as
``LOC_Local_timer_interrupts_CPU2``, and ``timestamp_us``; those of ``tailtrim trace`` have
``realtime_ns``, too, the clock of the packets.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tailtrim import units
from tailtrim.errors import RunDirectoryError

if TYPE_CHECKING:
    import os

_COLUMN = re.compile(r"(?P<vector>[^_]+)_?(?P<what>.*?)_?CPU(?P<cpu>\d+)")
_TIME, _REALTIME = "timestamp_us", "realtime_ns"


@dataclass(frozen=True, slots=True)
class InterruptRate:
    """Count and rate of an interrupt on a CPU: ``vector`` such as LOC or a number."""

    vector: str
    what: str
    cpu: int
    count: int
    frequency_hz: float


def read_interrupts(
    path: str | os.PathLike[str], *, run_ns: tuple[int, int] | None = None
) -> tuple[InterruptRate, ...]:
    """Read the rate of every interrupt that was counted at all, most frequent first.

    Args:
        path: the table.
        run_ns: begin and end of the run in which they have to be counted, if its clock is known.

    Raises:
        RunDirectoryError: when the file is missing or no such table, or of another time.

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
    if run_ns is not None and _REALTIME in header:
        _check_time(path, rows, header.index(_REALTIME), run_ns)
    rates = []
    for index, name in enumerate(header):
        column = _COLUMN.fullmatch(name)
        count = _counted(rows, index)
        if column and count:
            what = column["what"].replace("_", " ")
            cpu = int(column["cpu"])
            rates.append(InterruptRate(column["vector"], what, cpu, count, count / elapsed_s))
    return tuple(sorted(rates, key=lambda rate: (-rate.frequency_hz, rate.vector, rate.cpu)))


def _check_time(
    path: str | os.PathLike[str], rows: list[list[str]], column: int, run_ns: tuple[int, int]
) -> None:
    try:
        counted_ns = int(rows[0][column]), int(rows[-1][column])
    except (ValueError, IndexError) as error:
        raise RunDirectoryError(f"{path}: invalid time in column {_REALTIME}: {error}") from error
    if counted_ns[0] > run_ns[1] or counted_ns[1] < run_ns[0]:
        counted, run = (" to ".join(map(units.moment, span)) for span in (counted_ns, run_ns))
        raise RunDirectoryError(
            f"{path}: is not of the time of the run: it covers {counted}, the run {run}; expected"
            " counters that were read on the device's host while the packets passed"
        )


def _counted(rows: list[list[str]], index: int) -> int:
    """Difference of the first and last count; cells are empty where the host had no number."""
    counts = [int(row[index]) for row in rows if index < len(row) and row[index].isdigit()]
    return max(counts[-1] - counts[0], 0) if counts else 0
