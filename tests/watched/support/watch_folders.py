"""Folders as ``tailtrim watch`` leaves them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tailtrim.analysis import watched

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

#: 2020-01-01, UTC.
DAY_S = 1_577_836_800
DAY_NS = DAY_S * 10**9
MINUTE_NS = 60 * 10**9
NOW = datetime.fromtimestamp(DAY_S + 12 * 3600, UTC)
NOW_NS = DAY_NS + 12 * 60 * MINUTE_NS
_REST = ("late", "altered", "undelivered", "refused", "missed", "cut", "unstamped", "disturbed")


def minute(number: int, latency_ns: Sequence[int | None], **values: Any) -> dict[str, Any]:
    """Return the line of a minute of the first day, with a probe each ms."""
    lost = sum(ns is None for ns in latency_ns)
    begin_ns = DAY_NS + number * MINUTE_NS
    worst = max((ns for ns in latency_ns if ns is not None), default=None)
    told = {"begin_ns": begin_ns, "latency_ns": worst, "residence_ns": 7, "own_host_ns": None}
    return {
        "begin_ns": begin_ns,
        **dict.fromkeys(_REST, 0),
        "due": len(latency_ns),
        "answered": len(latency_ns) - lost,
        "lost": lost,
        "arrivals": {"duplicate": 1},
        "health": {"lateness_max_ns": 5, "clock_stepped_ns": 0, "stolen_ns": None},
        "worst": None if worst is None else told,
        "at_us": list(range(0, 1000 * len(latency_ns), 1000)),
        "latency_ns": list(latency_ns),
        **values,
    }


def frame(line: dict[str, Any] | bytes) -> bytes:
    """Return a line as the watch writes it."""
    text = line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode()
    compressed: bytes = pa.Codec("zstd").compress(text + b"\n", asbytes=True)
    return compressed


def target(
    folder: Path, frames: Iterable[dict[str, Any] | bytes], day: str = "2020-01-01", **told: Any
) -> Path:
    """Write a target with these minutes of one day, each a frame of its own, or these bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    described = {"schema": watched.SCHEMA, "name": folder.name, "timeout_ns": 10**9, **told}
    (folder / "target.json").write_text(json.dumps(described))
    parts = [one if isinstance(one, bytes) else frame(one) for one in frames]
    (folder / f"{day}.jsonl.zst").write_bytes(b"".join(parts))
    return folder


def account(folder: Path, text: str = "2020-01-01") -> watched.Account:
    """Return the account of a span of a target, whose minutes were read."""
    (one,) = watched.targets_of(folder)
    found = watched.Account(one, watched.span(text, NOW))
    for _ in found.minutes():
        pass
    return found
