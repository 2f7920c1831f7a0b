"""What the warm-ups of devices saw that are kept up between runs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tailtrim.report import units

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailtrim.rundir import RunDirectory

_COUNTS = {"page_faults": "page faults", "shootdowns": "TLB shootdowns"}
_LATENCIES = {"p50_ns": "p50", "p99_ns": "p99"}


def warm_ups(runs: Iterable[tuple[str, RunDirectory]]) -> list[tuple[str, str]]:
    """Return the warm-up of each device in words, by the device's name and its first run's.

    Args:
        runs: complete runs with their names.

    """
    told: dict[str, tuple[str, str]] = {}
    for name, run in runs:
        record = run.device()
        device, warmed = record.get("device"), record.get("warm_up")
        if isinstance(device, str) and isinstance(warmed, dict) and device not in told:
            told[device] = f"{device} (from {name} on)", _words(warmed)
    return list(told.values())


def _words(warmed: dict[str, Any]) -> str:
    try:
        first, last = warmed["windows"][0], warmed["windows"][-1]
        changed = [
            f"{name} {units.count(first[key])} \N{RIGHTWARDS ARROW} {units.count(last[key])}"
            for key, name in _COUNTS.items()
            if first[key] is not None
        ]
        changed += [
            f"{name} {units.microseconds(first[key])} \N{RIGHTWARDS ARROW}"
            f" {units.microseconds(last[key])} µs"
            for key, name in _LATENCIES.items()
            if first[key] is not None and last[key] is not None
        ]
        took = f"warmed up {warmed['took_s']:.1f} s"
        if not warmed["steady"]:
            took = f"not steady within {warmed['limit_s']:g} s ({', '.join(last['changes'])})"
    except (LookupError, TypeError, ValueError):
        return "its warm-up is not readable"
    return f"{took}: {', '.join(changed)}"
