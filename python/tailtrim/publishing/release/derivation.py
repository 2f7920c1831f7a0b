"""A run's numbers derived again: from its captures, or from its samples where it has none.

Samples are packets that were matched, each with both stamps. Taken for round trips that all came
back, the same statistics give the same latencies, intervals and worst packets. Statistics that need
packets without a sample are not derived: losses, gaps, the traffic of each second.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailtrim.analysis import analyze
from tailtrim.analysis.options import WELL, Departures
from tailtrim.analysis.roundtrip.write_run import Series, write_run
from tailtrim.errors import ReleaseError
from tailtrim.laboratory.experiment.matching import departures
from tailtrim.publishing.release.layout import TAPS
from tailtrim.publishing.release.redaction import name_of
from tailtrim.publishing.release.safe_files import record
from tailtrim.results import DEPARTURES, TABLES, RunDirectory
from tailtrim.results.layout import SUMMARY
from tailtrim.results.minutes import by_minute

if TYPE_CHECKING:
    from pathlib import Path

#: A capture of a run is a file in its folder, and no other.
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
#: Keys of the summary that can be derived from samples alone, and the tables.
_OF_SAMPLES = ("samples", "latency_ns", "worst")
_TABLES_OF_SAMPLES = ("quantile", "histogram", "worst", "sample")
#: Columns that samples do not give, since they have no packets.
_OF_PACKETS = ("signature_high", "signature_low")


@dataclass(frozen=True, slots=True)
class Derived:
    """A run derived again: its place, and its parts that can be compared with the released one.

    ``parts`` are keys of the summary, ``None`` for all of it, none where nothing could be derived,
    for what ``why`` says; ``without`` are columns that were not derived.
    """

    run: RunDirectory
    parts: tuple[str, ...] | None
    tables: tuple[str, ...]
    without: tuple[str, ...] = ()
    why: str = ""


def captures_of(run: Path) -> tuple[str, str] | None:
    """Return the names of the captures in a run directory; ``None`` where they are not there.

    Raises:
        ReleaseError: its summary names a file outside of it.

    """
    place = run / SUMMARY
    taps = record(place).get("taps") if place.is_file() else None
    if not isinstance(taps, dict):
        return None
    names = [
        name_of(str(taps[tap].get("capture"))) for tap in TAPS if isinstance(taps.get(tap), dict)
    ]
    for name in names:
        if not _FILE.fullmatch(name):
            raise ReleaseError(f"{place}: {name!r} is not a file of the run")
    if len(names) < len(TAPS) or not all((run / name).is_file() for name in names):
        return None
    ingress, egress = names
    return ingress, egress


def derive(run: RunDirectory, out: Path) -> Derived:
    """Derive a run again, and leave it as a run directory.

    Raises:
        CaptureError: a capture cannot be read.
        ReleaseError: the record of the run is not whole.

    """
    captures = captures_of(run.path)
    if captures is None:
        return _from_samples(run, out)
    departed, correction_ns = _departures(run.path), _correction_ns(run.path)
    out = out.absolute()
    with contextlib.chdir(run.path):
        # From there, so that the summary names the captures alone, wherever the release is.
        analyze(
            *captures,
            skip_s=run.summary.trim_ns / 10**9,
            quantiles=[quantile.p for quantile in run.summary.latency_ns.quantiles],
            departures=departed,
            correction_ns=correction_ns,
            clock_fit=run.summary.clock_fit is not None,
            out=out,
        )
    return Derived(RunDirectory(out), None, TABLES)


def _from_samples(run: RunDirectory, out: Path) -> Derived:
    import numpy as np  # noqa: PLC0415 - takes longer to import than most commands run

    if by_minute(run.path):
        return Derived(run, (), (), why="kept by minute, without captures and samples")
    minimum = run.summary.latency_ns.min
    if minimum is not None and minimum < 0:
        # Clocks of two taps: a round trip cannot end before it began.
        why = "no captures, and negative latencies, which samples alone do not derive"
        return Derived(run, (), (), why=why)
    table = run.table("sample")
    entered, left = (table[name].to_numpy() for name in ("ingress_ns", "egress_ns"))
    series = Series(run.name, entered, np.ones(len(entered), dtype=bool), left - entered, 1)
    write_run(out, series)
    return Derived(RunDirectory(out), _OF_SAMPLES, _TABLES_OF_SAMPLES, _OF_PACKETS)


def _departures(run: Path) -> Departures:
    log = run / DEPARTURES
    if not log.is_file():
        return WELL
    shares = bool(record(run / "generator.json").get("shares_cpu"))
    try:
        return departures(log, record(run / "capture.json"), shares_cpu=shares)
    except ValueError as error:
        raise ReleaseError(str(error)) from error


def _correction_ns(run: Path) -> int:
    place = run / "nodes.json"
    if not place.is_file():
        return 0
    told: Any = record(place).get("correction")
    ns = told.get("ns") if isinstance(told, dict) else 0
    if not isinstance(ns, int):
        raise ReleaseError(f"{place}: correction.ns is not a number of ns")
    return ns
