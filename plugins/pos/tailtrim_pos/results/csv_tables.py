"""Histograms and percentiles as CSV files: of MoonGen, and of the scripts behind the TUM papers.

========================================== ====================================================
``1024,3``                                 MoonGen's histogram: latency in ns and count, no header
``latency_bucket,count``                   the papers' histogram: lower end of each bucket in ns
``perc_50,perc_90,…,maximum``              percentiles of 2020, one row
``percentile,value,onefraconeminus…``      percentiles of 2021, a row each; the share as a number
========================================== ====================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from tailtrim.errors import ResultsError
from tailtrim_pos.results.bounded import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_BYTES = 256 << 20
#: Limit of a latency in ns and of a count: the tables' integers can hold it, with room for sums.
_MOST = 2**53
_OLD = "perc_"


@dataclass(frozen=True, slots=True)
class Histogram:
    """Latencies in ns, ascending, and how often each occurred; ``bucket_ns`` is 1 where exact."""

    latencies_ns: tuple[int, ...]
    counts: tuple[int, ...]
    bucket_ns: int = 1

    @property
    def samples(self) -> int:
        """Number of latencies."""
        return sum(self.counts)

    def at(self, p: Decimal) -> int:
        """Return the latency at rank ceil(p N)."""
        rank = max(math.ceil(p * self.samples), 1)
        for latency_ns, count in zip(self.latencies_ns, self.counts, strict=True):
            rank -= count
            if rank <= 0:
                return latency_ns
        return self.latencies_ns[-1]


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Latencies in ns by share below, ascending; ``max_ns`` is ``None`` where it is not told."""

    values_ns: dict[Decimal, int]
    max_ns: int | None


def histogram(path: Path) -> Histogram:
    """Read a histogram.

    Raises:
        ResultsError: the file is something else.

    """
    rows = list(_rows(path))
    header = rows[0][1] if rows and not _is_number(rows[0][1][0]) else None
    if header is not None and header[:2] not in (["latency_bucket", "count"], ["latency", "count"]):
        raise ResultsError(
            f"{path}: expected the columns latency and count, not {','.join(header)[:100]!r}"
        )
    counts: dict[int, int] = {}
    for line, cells in rows[1:] if header else rows:
        if len(cells) != 2:  # noqa: PLR2004 - latency and count
            raise ResultsError(f"{path}: line {line}: expected latency,count")
        latency_ns = _whole(path, line, cells[0])
        counts[latency_ns] = counts.get(latency_ns, 0) + _whole(path, line, cells[1])
    kept = sorted(latency_ns for latency_ns, count in counts.items() if count)
    if not kept:
        raise ResultsError(f"{path}: the histogram holds no latency")
    bucketed = header is not None and header[0] == "latency_bucket"
    return Histogram(
        tuple(kept),
        tuple(counts[latency_ns] for latency_ns in kept),
        math.gcd(*kept) if bucketed else 1,
    )


def percentiles(path: Path) -> Percentiles:
    """Read percentiles.

    Raises:
        ResultsError: the file is something else.

    """
    rows = list(_rows(path))
    header = rows[0][1] if rows else []
    if header[:2] == ["percentile", "value"]:
        found = {
            _share(path, line, cells[0]): _whole(path, line, cells[1])
            for line, cells in rows[1:]
            if len(cells) >= 2 and cells[1]  # noqa: PLR2004 - percentile and value
        }
        inner = {p: value for p, value in sorted(found.items()) if 0 < p < 1}
        if inner:
            return Percentiles(inner, found.get(Decimal(1)))
    elif header and header[0].startswith(_OLD) and len(rows) > 1 and len(rows[1][1]) == len(header):
        line, cells = rows[1]
        named = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
        inner = {
            _share(path, line, f"0.{name.removeprefix(_OLD)}"): _whole(path, line, cell)
            for name, cell in named.items()
            if name.startswith(_OLD)
        }
        if inner:
            largest = named.get("maximum")
            return Percentiles(inner, None if largest is None else _whole(path, line, largest))
    expected = "columns percentile,value or a row of perc_50,perc_90,…,maximum"
    raise ResultsError(f"{path}: no percentiles here, expected {expected}")


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    for line, text in enumerate(text_of(path, _MOST_BYTES).splitlines(), 1):
        if text.strip():
            yield line, [cell.strip() for cell in text.split(",")]


def _is_number(text: str) -> bool:
    return _decimal(text) is not None


def _decimal(text: str) -> Decimal | None:
    try:
        found = Decimal(text) if len(text) <= 40 else None  # noqa: PLR2004 - more than any float
    except InvalidOperation:
        return None
    return found if found is not None and found.is_finite() else None


def _whole(path: Path, line: int, text: str) -> int:
    """Return a number to the nearest whole one: MoonGen's latencies have parts of nanoseconds."""
    found = _decimal(text)
    if found is None or not 0 <= found <= _MOST:
        raise ResultsError(
            f"{path}: line {line}: expected a number from 0 to 2^53, not {text[:40]!r}"
        )
    return round(found)


def _share(path: Path, line: int, text: str) -> Decimal:
    found = _decimal(text)
    if found is None or not 0 <= found <= 1:
        raise ResultsError(f"{path}: line {line}: expected a share from 0 to 1, not {text[:40]!r}")
    return found.normalize()
