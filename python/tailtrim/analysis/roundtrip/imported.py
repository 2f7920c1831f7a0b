"""Files of other tools as run directories, one for each pair of hosts."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tailtrim.analysis.roundtrip.compression import reading
from tailtrim.analysis.roundtrip.hpct import HpctPing, read_results
from tailtrim.analysis.roundtrip.irtt import read_irtt
from tailtrim.analysis.roundtrip.write_run import Series, write_run
from tailtrim.errors import Remedy, RoundTripError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tailtrim.results import Summary

_ETHERNET = 14
_LEVELS = ("application", "software", "hardware")


class Imported(NamedTuple):
    """Name, place and summary of each run, and how many other results were passed over."""

    runs: list[tuple[str, Path, Summary]]
    others: Counter[str]


def leave_runs(files: Sequence[Path], out: Path | None, *, level: str = "application") -> Imported:
    """Read files of one tool and leave a run directory for each pair of hosts.

    Raises:
        ValueError: the level is unknown, or there are round trips and no place for them.
        RoundTripError: a file cannot be read, or holds no round trips.
        OutputError: a directory cannot be written.

    """
    if level not in _LEVELS:
        message = f"unknown level {level!r}, expected one of {', '.join(_LEVELS)}"
        raise ValueError(message)
    others: Counter[str] = Counter()
    every = [_of_irtt(files), *_of_hpct(files, level, others)]
    found = [series for series in every if series is not None]
    if not found:
        raise RoundTripError(f"{files[0]}: {_nothing(others)}")
    if out is None:
        failure = ValueError(
            f"{files[0]}: round trips become run directories, expected a place for them"
        )
        failure.add_note(Remedy("{out} names it"))
        raise failure
    places = [out] if len(found) == 1 else [out / str(at) for at in range(len(found))]
    runs = [
        (series.name, place, write_run(place, series, inputs=files))
        for series, place in zip(found, places, strict=True)
    ]
    return Imported(runs, others)


def _nothing(others: Counter[str]) -> str:
    if not others:
        return "no round trips here, expected ping results"
    has = {"Jitter": "means of rounds", "Traceroute": "hops"}
    told = " and ".join(f"{name} results ({has[name]})" for name in sorted(others))
    return (
        f"{told} of HiPerConTracer, which have no single round trips; expected its Ping results:"
        " measure with hipercontracer --ping"
    )


def _is_json(path: Path) -> bool:
    with reading(path) as file:
        return file.read(64).lstrip().startswith("{")


def _of_irtt(files: Sequence[Path]) -> Series | None:
    sessions = [read_irtt(path) for path in files if _is_json(path)]
    if not sessions:
        return None
    # A lost packet and one without its time are the same here: no sample.
    took_ns = np.array([ns for session in sessions for ns in session.round_trip_ns], np.int64)
    return Series(
        name=f"irtt to {sessions[0].remote}",
        sent_ns=np.array([ns for session in sessions for ns in session.sent_ns], np.int64),
        answered=took_ns >= 0,
        round_trip_ns=took_ns,
        # Above UDP.
        length=sessions[0].packet_bytes + 28 + _ETHERNET,
    )


def _of_hpct(files: Sequence[Path], level: str, others: Counter[str]) -> list[Series]:
    groups: dict[str, list[HpctPing]] = defaultdict(list)
    for path in files:
        if _is_json(path):
            continue
        pings, passed_over = read_results(path)
        others.update(passed_over)
        for ping in pings:
            name = f"{ping.module} {ping.source} to {ping.destination}"
            name += f" class {ping.traffic_class:#x}" if ping.traffic_class else ""
            groups[name].append(ping)
    return [_of_pings(name, pings, level) for name, pings in sorted(groups.items())]


def _of_pings(name: str, pings: list[HpctPing], level: str) -> Series:
    took = np.array([getattr(ping, f"{level}_ns") for ping in pings], np.int64)
    answered = np.array([ping.answered for ping in pings], bool)
    if answered.any() and not (took[answered] >= 0).any():
        raise RoundTripError(f"{name}: no round trip has a {level} time, choose another level")
    # An answered probe without a time at this level is neither a sample nor lost: it is left out.
    kept = ~answered | (took >= 0)
    return Series(
        name=name,
        sent_ns=np.array([ping.sent_ns for ping in pings], np.int64)[kept],
        answered=answered[kept],
        round_trip_ns=took[kept],
        length=pings[0].packet_bytes + _ETHERNET,
    )
