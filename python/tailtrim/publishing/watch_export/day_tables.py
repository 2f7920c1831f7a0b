"""Spans of a watch as Parquet, by day (UTC): one file with all probes, one with all minutes."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tailtrim.analysis.watched import NONE, OUTCOMES
from tailtrim.errors import OutputError
from tailtrim.publishing.export import Conversion
from tailtrim.results.drafts import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.analysis.watched import Account, Minute

#: So many probes are in one group of rows.
_TOGETHER = 1 << 20
_NAMES = (("host", pa.string()), ("target", pa.string()))
_PROBES = pa.schema([*_NAMES, ("sent_ns", pa.int64()), ("latency_ns", pa.int64())])
_MINUTES = pa.schema(
    [
        *_NAMES,
        ("begin_ns", pa.int64()),
        *((name, pa.int64()) for name in OUTCOMES),
        ("worst_begin_ns", pa.int64()),
        ("worst_latency_ns", pa.int64()),
        ("worst_residence_ns", pa.int64()),
        ("worst_own_host_ns", pa.int64()),
    ]
)


def write(accounts: Sequence[Account], _name: str, out: Path) -> Conversion:
    """Write ``probes/DAY.parquet`` and ``minutes/DAY.parquet``.

    A probe without an answer in time has no latency.

    Raises:
        RoundTripError: a file cannot be read.
        OutputError: a file cannot be written, or is there already.

    """
    with ExitStack() as stack:
        tables = _Tables(out, stack)
        for account in accounts:
            held: list[Minute] = []
            for minute in account.minutes():
                is_full = sum(len(one.sent_ns) for one in held) >= _TOGETHER
                if held and (is_full or _day(held[0]) != _day(minute)):
                    tables.enter(account, held)
                    held = []
                held.append(minute)
            if held:
                tables.enter(account, held)
        return Conversion(tuple(tables.writers))


class _Tables:
    """Files that are open, by place."""

    def __init__(self, out: Path, stack: ExitStack) -> None:
        self.writers: dict[Path, pq.ParquetWriter] = {}
        self._out, self._stack = out, stack

    def enter(self, account: Account, minutes: Sequence[Minute]) -> None:
        """Write minutes of one day."""
        day = _day(minutes[0])
        took_ns = np.concatenate([one.took_ns for one in minutes])
        probes = {
            "sent_ns": np.concatenate([one.sent_ns for one in minutes]),
            "latency_ns": pa.array(took_ns, mask=took_ns == NONE),
        }
        self._write(self._out / "probes" / f"{day}.parquet", _PROBES, account, probes)
        rows: dict[str, Any] = {"begin_ns": [one.begin_ns for one in minutes]}
        rows |= {name: [one.counts[name] for one in minutes] for name in OUTCOMES}
        for name in ("begin_ns", "latency_ns", "residence_ns", "own_host_ns"):
            rows[f"worst_{name}"] = [getattr(one.worst, name, None) for one in minutes]
        self._write(self._out / "minutes" / f"{day}.parquet", _MINUTES, account, rows)

    def _write(
        self, place: Path, schema: pa.Schema, account: Account, columns: dict[str, Any]
    ) -> None:
        if place not in self.writers:
            if place.exists():
                # It may have another part of the day, or other targets.
                raise OutputError(f"{place}: exists: choose another --out, or remove it")
            file = self._stack.enter_context(replacing(place))
            self.writers[place] = self._stack.enter_context(
                pq.ParquetWriter(file, schema, compression="zstd")
            )
        rows = len(next(iter(columns.values())))
        for name, text in (("host", account.target.host), ("target", account.target.name)):
            columns[name] = pa.repeat(pa.scalar(text, pa.string()), rows)
        # A name that is not text is no reason to fail: it is that of a folder.
        self.writers[place].write_table(pa.table(columns, schema=schema))


def _day(minute: Minute) -> str:
    return datetime.fromtimestamp(minute.begin_ns // 10**9, UTC).strftime("%Y-%m-%d")
