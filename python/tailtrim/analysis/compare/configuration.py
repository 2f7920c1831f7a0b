"""Differences of configuration that could explain a difference of latency."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.errors import RunDirectoryError
from tailtrim.results.typed_json import read_object

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tailtrim.analysis.compare.sources import Group, Repetition

#: Rates closer than this are the same: a generator may miss its own by as much and its run still
#: counts (``limits.sent_share`` of a plan, 0.99 by default).
_SAME_RATE = 0.01
#: Parts of a plan that the runs themselves tell better, or that are names.
_RESOLVED = ("name", "dut", "traffic", "loop", "repeat", "order", "seed")
#: Where settings of the analysis are, which every run directory has.
_ANALYSIS = "analysis"
_AUDIT = "tailtrim.audit/1"


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting with two values; ``None`` where a side does not tell."""

    where: str
    what: str
    a: str | None
    b: str | None


def differences(a: Group, b: Group) -> tuple[Difference, ...]:
    """Return the settings that differ, those of the host and the plan first."""
    left, right = _settings(a), _settings(b)
    found = []
    for where in dict.fromkeys((*left, *right)):
        if where not in left or where not in right:
            # A setting that one side did not record cannot differ; the missing record is reported.
            told = [None if where not in side else "recorded" for side in (left, right)]
            found.append(Difference(where, "record", *told))
            continue
        keys = dict.fromkeys((*left[where], *right[where]))
        found += [
            Difference(where, key, left[where].get(key), right[where].get(key))
            for key in keys
            if left[where].get(key) != right[where].get(key)
        ]
    return (*found, *_rates(a, b))


def compared(a: Group, b: Group) -> int:
    """Return how many settings of what was measured both sides record."""
    left, right = _settings(a), _settings(b)
    both = left.keys() & right.keys() - {_ANALYSIS}
    return sum(len(left[where].keys() & right[where].keys()) for where in both)


def _settings(group: Group) -> dict[str, dict[str, str]]:
    """Return settings by where they were found; several values of repetitions in one text."""
    merged: dict[str, dict[str, dict[str, None]]] = {}
    for where, key, value in _told(group):
        merged.setdefault(where, {}).setdefault(key, {})[value] = None
    return {
        where: {key: ", ".join(values) for key, values in keys.items()}
        for where, keys in merged.items()
    }


def _told(group: Group) -> Iterator[tuple[str, str, str]]:
    record = group.experiment
    for where in ("host", "versions"):
        for key, value in _flat(record.get(where)):
            yield where, key, value
    for key, value in _flat(record.get("plan")):
        if key.split(".")[0] not in _RESOLVED:
            yield "plan", key, value
    for repetition in group.repetitions:
        yield from _of_run(repetition)


def _of_run(repetition: Repetition) -> Iterator[tuple[str, str, str]]:
    path = repetition.path
    if path is not None:
        # An audit of the host is in the folder of the run or in that of the experiment.
        for place in (path / "audit.json", path.resolve().parent / "audit.json"):
            if (audit := _read(place)).get("schema") == _AUDIT:
                yield from _of_audit(audit)
                break
        loop = _read(path / "loop.json")
        for part in ("dut", "traffic"):
            for key, value in _flat(loop.get(part)):
                yield part, key, value
    summary = repetition.summary
    yield _ANALYSIS, "trim", f"{summary.trim_ns / 1e9:g} s"
    yield _ANALYSIS, "window", f"{summary.window_ns / 1e9:g} s"
    signature = summary.signature
    yield _ANALYSIS, "signature", str(signature.selection or signature.bytes)
    yield _ANALYSIS, "masks", " ".join(signature.masks) or "none"


def _of_audit(audit: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for key, value in _flat(audit.get("host")):
        yield "audit", f"host.{key}", value
    for check in audit.get("checks", ()):
        # Counters differ each time; settings and requests are configuration.
        if isinstance(check, dict) and "id" in check and check.get("level") != "seen":
            said = f"{check.get('verdict')}: {check.get('said')}"
            yield "audit", f"{check['id']} {check.get('title', '')}".strip(), said


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of JSON data as text by their dotted names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif prefix:
        yield prefix, value if isinstance(value, str) else json.dumps(value)


def _rates(a: Group, b: Group) -> Iterator[Difference]:
    rates = [_mean_rate(group) for group in (a, b)]
    if None in rates:
        return
    low, high = sorted(rate or 0.0 for rate in rates)
    if high > low * (1 + _SAME_RATE):
        yield Difference("traffic", "rate seen", *(f"{rate:,.0f} packets/s" for rate in rates))


def _mean_rate(group: Group) -> float | None:
    rates = [run.summary.rate_pps for run in group.repetitions]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except RunDirectoryError:
        return {}
