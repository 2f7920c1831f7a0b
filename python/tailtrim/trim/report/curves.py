"""Latency by percentile over several runs with the same changes: :func:`curve_of`, :func:`path`.

At each percentile the curve is the geometric mean of the runs' percentiles, with Student's interval
over the runs: what the tests of a search compare. Lost packets count as infinitely late, so a curve
ends where one of its runs has lost the packet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tailtrim.report.figures.percentiles import places
from tailtrim.report.inputs.run_tables import ReportedRun
from tailtrim.rundir import RunDirectory
from tailtrim.student import critical
from tailtrim.trim import path as paths
from tailtrim.trim.report.spread import CONFIDENCE, spread_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailtrim.report.arrays import Floats
    from tailtrim.trim.recorded import RecordedSearch
    from tailtrim.trim.report.spread import Spread
    from tailtrim.trim.trial import Seen

#: Runs that were done after all was decided: no choice was made by them.
_FRESH = ("confirm", paths.PHASE)


@dataclass(frozen=True, slots=True)
class Curve:
    """A step of the path.

    ``x`` is 1/(1 - p). ``low_ns`` and ``high_ns`` are NaN where a single run has no interval.
    """

    name: str
    changes: frozenset[str]
    runs: tuple[str, ...]
    phases: tuple[str, ...]
    samples: int
    x: Floats
    value_ns: Floats
    low_ns: Floats
    high_ns: Floats
    #: At the quantile of the search.
    tail: Spread


def path(search: RecordedSearch) -> list[Curve]:
    """Return the curves from the baseline to all that is kept, as far as each step was measured.

    Raises:
        RunDirectoryError: a run is damaged.

    """
    found = search.result.found if search.result else ()
    curves: list[Curve] = []
    before: frozenset[str] | None = None
    for changes in paths.steps(found):
        seen = _runs(search, changes)
        if not seen:
            continue
        added = sorted(changes - before) if before is not None else sorted(changes)
        curves.append(curve_of(search, seen, " ".join(f"+ {one}" for one in added) or "baseline"))
        before = changes
    return curves


def curve_of(search: RecordedSearch, seen: Sequence[Seen], name: str) -> Curve:
    """Return the curve of trials with the same changes."""
    runs = [_quantiles(search, one) for one in seen]
    x = places(min(sent for sent, _, _ in runs))
    logs = np.array([_logs(x, *run) for run in runs])
    known = np.isfinite(logs).all(axis=0)
    x, logs = x[known], logs[:, known]
    mean = logs.mean(axis=0)
    reach = np.full(x.size, np.nan)
    if len(runs) > 1:
        spread = logs.std(axis=0, ddof=1) / math.sqrt(len(runs))
        reach = critical(len(runs) - 1, CONFIDENCE) * spread
    return Curve(
        name,
        seen[0].trial.changes,
        tuple(folder_of(one) for one in seen),
        tuple(dict.fromkeys(one.trial.phase for one in seen)),
        sum(int(counts[-1]) for _, _, counts in runs),
        x,
        np.exp(mean),
        np.exp(mean - reach),
        np.exp(mean + reach),
        spread_of([one.observation.tail_ns for one in seen if one.observation.tail_ns]),
    )


def folder_of(seen: Seen) -> str:
    """Return the name of a trial's run directory."""
    return f"run-{seen.trial.number:03d}"


def _runs(search: RecordedSearch, changes: frozenset[str]) -> list[Seen]:
    """Return the trials of a step: those after the decisions, otherwise all."""
    usable = [
        one
        for one in search.seen
        if one.trial.changes == changes
        and one.observation.tail_ns
        and (search.path / folder_of(one) / "summary.json").is_file()
    ]
    fresh = [one for one in usable if one.trial.phase in _FRESH]
    return fresh or usable


def _quantiles(search: RecordedSearch, seen: Seen) -> tuple[int, Any, Any]:
    """Return how many packets were sent, their latencies, and how many have at most each."""
    run = ReportedRun(0, folder_of(seen), RunDirectory(search.path / folder_of(seen)))
    values, up_to = run.ranks
    ingress = run.summary.ingress
    return int(up_to[-1]) + ingress.lost + ingress.beyond_window, values, up_to


def _logs(x: Floats, sent: int, values: Any, up_to: Any) -> Floats:
    """Return the logs of the quantiles of all packets sent; infinite among the lost ones."""
    ranks = np.clip(sent - np.floor(sent / x), 1, sent)
    place = np.searchsorted(up_to, ranks)
    known = place < values.size
    found = np.full(x.size, np.inf)
    found[known] = values[place[known]]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.where(found > 0, np.log(found), np.nan)
    return logs
